"""Spans for OpenTelemetry, where the settings name a collector.

Where they name none, nothing of OpenTelemetry is imported and no span is made: the caller's trace is passed on as it
came.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Annotated, Final, Literal, NamedTuple, Protocol

from pydantic import AfterValidator

from process.command_line.install_command import install_command
from process.configuration import addresses
from process.configuration.settings import EnvironmentSettings, Flag
from process.errors import SettingError
from schemas.codec.trace_context import NO_TRACE, Trace

Kind = Literal["server", "client", "producer", "consumer"]
About = Mapping[str, str]
"""What a span is about, as ``logs.about`` makes it."""
NOTHING: Final[About] = MappingProxyType({})


def _url_if_given(value: str) -> str:
    return addresses.url(value) if value else ""


class TracingSettings(EnvironmentSettings):
    """For services that a decision passes through."""

    otlp_endpoint: Annotated[str, AfterValidator(_url_if_given), Flag(metavar="URL")] = ""
    """Send a span of each decision to this OpenTelemetry collector by OTLP over HTTP (http://collector:4318); needs the
    extra `otel`. OTEL_TRACES_SAMPLER, OTEL_EXPORTER_OTLP_HEADERS and others of OpenTelemetry hold too. Without it, no
    span is made."""


class Span(Protocol):
    """Something that takes time, of the trace of a decision."""

    @property
    def trace(self) -> Trace:
        """What the spans that follow belong to; false where there is no trace."""

    def describe(self, name: str, about: About = NOTHING, attributes: About = NOTHING) -> None:
        """What is known of it only after it began; an empty ``name`` leaves that of its beginning.

        ``attributes`` have OpenTelemetry's names already.
        """

    def end(self, error: str = "") -> None: ...


class PassedOn(NamedTuple):
    """No span: what follows continues the trace of its cause."""

    trace: Trace = NO_TRACE

    def describe(self, name: str, about: About = NOTHING, attributes: About = NOTHING) -> None:
        """Does nothing."""

    def end(self, error: str = "") -> None:
        """Does nothing."""


class Tracing(Protocol):
    """Makes spans."""

    is_on: bool

    def begin(
        self, name: str, parent: Trace = NO_TRACE, about: About = NOTHING, *, kind: Kind, began_ns: int = 0
    ) -> Span:
        """A span below ``parent``; without one, the first of a trace whose id is that of the attempt.

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


@contextmanager
def tracing(settings: TracingSettings, service: str) -> Iterator[Tracing]:
    """What makes the spans of ``service``; at the end those that wait are sent, for two seconds at most.

    Raises ``SettingError`` where a collector is named and OpenTelemetry is not installed.
    """
    if not settings.otlp_endpoint:
        yield NO_TRACING
        return
    try:
        # A quarter of a second to import: only who wants spans pays for it.
        from process.telemetry.otlp import OtlpTracing
    except ImportError as error:
        raise SettingError(
            f"--otlp-endpoint needs OpenTelemetry: {install_command('schedulerlog[otel]')} ({error})"
        ) from None
    found = OtlpTracing(settings.otlp_endpoint, f"schedulerlog-{service}")
    try:
        yield found
    finally:
        found.close()
