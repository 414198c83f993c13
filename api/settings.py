"""Settings, from environment variables with the prefix ``SCHEDULERLOG_``."""

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "SCHEDULERLOG_"


class Switch(BaseSettings):
    """Read first: an API that is switched off needs no other setting."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, use_attribute_docstrings=True)

    api_enabled: bool = True
    """false: `serve` says so in one line and ends with status 0. Where something restarts it then, scale it to none."""


class Settings(Switch):
    kafka_bootstrap_servers: str = Field(min_length=1)
    """``host:port``, several with commas between. The topic of attempts is read from there."""
    opensearch_url: str = Field(pattern=r"^https?://[^/\s]+/?$")
    """Base URL; name and password may stand in it."""
    opensearch_timeout_seconds: float = Field(default=10.0, gt=0, le=300)
    """After which a request to OpenSearch counts as failed."""
    api_host: str = "127.0.0.1"
    """The address to listen on."""
    api_port: int = Field(default=9090, ge=0, le=65535)
    """The port to listen on; 0 takes a free one and prints it."""
    api_cached_pods: int = Field(default=1000, ge=1)
    """How many pods are answered from memory: those decided or asked for last."""
    api_cached_bytes: int = Field(default=256 * 1024 * 1024, ge=1024 * 1024)
    """What their attempts may take together, in bytes of JSON; an attempt on 5,000 nodes takes about 200 kB."""
    api_replayed_records: int = Field(default=50_000, ge=0)
    """How many of the topic's last records are read at the start, of all partitions together."""

    @field_validator("kafka_bootstrap_servers")
    @classmethod
    def _are_addresses(cls, servers: str) -> str:
        for server in servers.split(","):
            _, colon, port = server.strip().rpartition(":")
            if not colon or not port.isdecimal():
                raise ValueError(f"{server.strip()!r} is not host:port")
        return servers


def problem(error: ValidationError) -> str:
    """The first wrong setting, by its variable's name, in one line."""
    first = error.errors(include_url=False, include_context=False)[0]
    name = PREFIX + str(first["loc"][0]).upper()
    if first["type"] == "missing":
        return f"{name} is not set"
    # Not the value itself: a URL may hold a password.
    return f"{name} is wrong: {first['msg'].removeprefix('Value error, ')}"
