"""Settings of every process that runs for long: its log, and the address of its metrics."""

from typing import Annotated, Literal

from pydantic import BeforeValidator

from runtime.settings.settings import EnvironmentSettings, Flag, ListenAddressIfGiven


def _to_lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


class LogSettings(EnvironmentSettings):
    """Settings of every command that logs."""

    log_format: Annotated[Literal["text", "json"], BeforeValidator(_to_lower), Flag(metavar="text|json")] = "text"
    """Format of log lines: for people, or as one JSON object a line."""
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        BeforeValidator(_to_lower),
        Flag(metavar="debug|info|warning|error"),
    ] = "info"
    """Lowest level of the log lines to write."""


class ServiceSettings(LogSettings):
    """Settings of every command that runs until it is stopped."""

    metrics_address: Annotated[ListenAddressIfGiven, Flag(metavar="HOST:PORT")] = None
    """Serve /metrics, /healthz and /readyz there; a port alone is one of 127.0.0.1."""
