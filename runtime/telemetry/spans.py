"""The interface of spans, and what stands for them where no collector is named: the caller's trace is passed on."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, Protocol

from schemas.codec.trace_context import NO_TRACE, Trace

Kind = Literal["server", "client", "producer", "consumer"]
About = Mapping[str, str]
"""Subject of a span, as ``logs.about`` makes it."""
NOTHING: Final[About] = MappingProxyType({})


class Span(Protocol):
    """Something that takes time, of the trace of a decision."""

    @property
    def trace(self) -> Trace:
        """Trace that the following spans belong to; false where there is no trace."""

    def describe(self, name: str, about: About = NOTHING, attributes: About = NOTHING) -> None:
        """Add what is learned about the span only after it began; an empty ``name`` leaves that of its beginning.

        ``attributes`` have OpenTelemetry's names already.
        """

    def end(self, error: str = "") -> None: ...


class PassedOn(NamedTuple):
    """No span: what follows continues the trace of its cause."""

    trace: Trace = NO_TRACE

    def describe(self, name: str, about: About = NOTHING, attributes: About = NOTHING) -> None:
        """Do nothing."""

    def end(self, error: str = "") -> None:
        """Do nothing."""


class Tracing(Protocol):
    """Makes spans."""

    is_on: bool

    def begin(
        self, name: str, parent: Trace = NO_TRACE, about: About = NOTHING, *, kind: Kind, began_ns: int = 0
    ) -> Span:
        """Begin a span below ``parent``; without one, the first of a trace whose id is that of the attempt.

        ``began_ns``: nanoseconds since 1970; 0 is now.
        """


class NoTracing:
    """Makes no spans."""

    is_on = False

    def begin(
        self,
        name: str,  # noqa: ARG002
        parent: Trace = NO_TRACE,
        about: About = NOTHING,  # noqa: ARG002
        *,
        kind: Kind,  # noqa: ARG002
        began_ns: int = 0,  # noqa: ARG002
    ) -> Span:
        return PassedOn(parent)


NO_TRACING: Final = NoTracing()
