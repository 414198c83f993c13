"""Interface of spans, and an implementation without a collector, which passes the caller's trace on."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, Protocol

from schemas.codec.trace_context import NO_TRACE, Trace

Kind = Literal["server", "client", "producer", "consumer"]
Subject = Mapping[str, str]
"""Subject of a span, as ``logs.identify_subject`` makes it."""
NOTHING: Final[Subject] = MappingProxyType({})
Attributes = Mapping[str, str | int]
"""Attributes of a span by OpenTelemetry's names, with the types of its conventions."""
NO_ATTRIBUTES: Final[Attributes] = MappingProxyType({})


class Span(Protocol):
    """Piece of work within the trace of a decision."""

    @property
    def trace(self) -> Trace:
        """Trace that the following spans belong to; false without a trace."""

    def describe(self, name: str, subject: Subject = NOTHING, attributes: Attributes = NO_ATTRIBUTES) -> None:
        """Describe the span after its beginning; an empty ``name`` leaves its first name.

        ``attributes`` have OpenTelemetry's names already.
        """

    def end(self, error: str = "") -> None: ...


class PassedOn(NamedTuple):
    """Stand-in for a span: the following spans continue the trace of its cause."""

    trace: Trace = NO_TRACE

    def describe(self, name: str, subject: Subject = NOTHING, attributes: Attributes = NO_ATTRIBUTES) -> None:
        """Do nothing."""

    def end(self, error: str = "") -> None:
        """Do nothing."""


class Tracing(Protocol):
    """Source of spans."""

    is_on: bool

    def begin(
        self, name: str, parent: Trace = NO_TRACE, subject: Subject = NOTHING, *, kind: Kind, began_ns: int = 0
    ) -> Span:
        """Begin a span below ``parent``; without one, the first of a trace whose id is that of the attempt.

        ``began_ns``: nanoseconds since 1970; 0 is now.
        """


class NoTracing:
    """Source that makes no spans."""

    is_on = False

    def begin(
        self,
        name: str,  # noqa: ARG002
        parent: Trace = NO_TRACE,
        subject: Subject = NOTHING,  # noqa: ARG002
        *,
        kind: Kind,  # noqa: ARG002
        began_ns: int = 0,  # noqa: ARG002
    ) -> Span:
        return PassedOn(parent)


NO_TRACING: Final = NoTracing()
