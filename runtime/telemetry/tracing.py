"""Spans for OpenTelemetry, if the settings name a collector; otherwise no span, and no import of OpenTelemetry."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from pydantic import AfterValidator

from runtime.cli.installation import write_install_command
from runtime.errors import SettingError
from runtime.settings import addresses
from runtime.settings.settings import EnvironmentSettings, Flag
from runtime.telemetry.spans import NO_TRACING, Tracing


def _parse_optional_url(value: str) -> str:
    return addresses.parse_url(value) if value else ""


class TracingSettings(EnvironmentSettings):
    """Settings of services that a decision passes through."""

    otlp_endpoint: Annotated[str, AfterValidator(_parse_optional_url), Flag(metavar="URL")] = ""
    """Send a span of each decision to this OpenTelemetry collector by OTLP over HTTP (http://collector:4318); needs the
    extra `otel`. OTEL_TRACES_SAMPLER, OTEL_EXPORTER_OTLP_HEADERS and others of OpenTelemetry hold too. Without it, no
    span is made."""


@contextmanager
def tracing(settings: TracingSettings, service: str) -> Iterator[Tracing]:
    """Tracing of ``service``; at the end it sends the waiting spans, for two seconds at most.

    Raises ``SettingError`` for a collector without an installed OpenTelemetry.
    """
    if not settings.otlp_endpoint:
        yield NO_TRACING
        return
    try:
        # Imported only for a collector, because the import takes a quarter of a second.
        from runtime.telemetry.otlp import OtlpTracing
    except ImportError as error:
        raise SettingError(
            f"--otlp-endpoint needs OpenTelemetry: {write_install_command('schedulerlog[otel]')} ({error})"
        ) from None
    otlp_tracing = OtlpTracing(settings.otlp_endpoint, f"schedulerlog-{service}")
    try:
        yield otlp_tracing
    finally:
        otlp_tracing.close()
