"""Spans for OpenTelemetry, where the settings name a collector.

Where they name none, nothing of OpenTelemetry is imported and no span is made.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from pydantic import AfterValidator

from runtime.cli.install_command import install_command
from runtime.errors import SettingError
from runtime.settings import addresses
from runtime.settings.settings import EnvironmentSettings, Flag
from runtime.telemetry.spans import NO_TRACING, Tracing


def _url_if_given(value: str) -> str:
    return addresses.url(value) if value else ""


class TracingSettings(EnvironmentSettings):
    """For services that a decision passes through."""

    otlp_endpoint: Annotated[str, AfterValidator(_url_if_given), Flag(metavar="URL")] = ""
    """Send a span of each decision to this OpenTelemetry collector by OTLP over HTTP (http://collector:4318); needs the
    extra `otel`. OTEL_TRACES_SAMPLER, OTEL_EXPORTER_OTLP_HEADERS and others of OpenTelemetry hold too. Without it, no
    span is made."""


@contextmanager
def tracing(settings: TracingSettings, service: str) -> Iterator[Tracing]:
    """Tracing of ``service``; at the end it sends the waiting spans, for two seconds at most.

    Raises ``SettingError`` where a collector is named and OpenTelemetry is not installed.
    """
    if not settings.otlp_endpoint:
        yield NO_TRACING
        return
    try:
        # A quarter of a second to import: only who wants spans pays for it.
        from runtime.telemetry.otlp import OtlpTracing
    except ImportError as error:
        raise SettingError(
            f"--otlp-endpoint needs OpenTelemetry: {install_command('schedulerlog[otel]')} ({error})"
        ) from None
    found = OtlpTracing(settings.otlp_endpoint, f"schedulerlog-{service}")
    try:
        yield found
    finally:
        found.close()
