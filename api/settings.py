"""The API's settings; process.settings says how they are read."""

from pathlib import Path
from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from process.addresses import LOOPBACK, HostPort
from process.cluster_name import DEFAULT_CLUSTER
from process.settings import (
    BootstrapServers,
    ClusterName,
    EnvironmentSettings,
    ListenAddress,
    ListenAddressIfGiven,
    Url,
)
from process.variables import variable

CERTIFICATE_VARIABLES: Final = (variable("api_cert_file"), variable("api_key_file"))


class Switch(EnvironmentSettings):
    """Read first: an API that is switched off needs no other setting."""

    api_enabled: bool = True
    """false: `serve` prints that and ends with status 0; where a supervisor would restart it, scale it to zero."""


def _without_path(url: str) -> str:
    if urlsplit(url).path:
        raise ValueError("has a path, which is not supported: write for example http://127.0.0.1:9200")
    return url


class Listening(EnvironmentSettings):
    api_cert_file: Path | None = None
    """The certificate for HTTPS, in PEM form; followed when it changes. Without it: plain HTTP."""
    api_key_file: Path | None = None
    """The certificate's private key."""
    metrics_address: ListenAddressIfGiven = None
    """Serve /metrics, /healthz and /readyz there too, without TLS."""

    @model_validator(mode="after")
    def _has_both_files_or_none(self) -> Self:
        certificate, key = CERTIFICATE_VARIABLES
        if bool(self.api_cert_file) != bool(self.api_key_file):
            raise ValueError(f"{key if self.api_cert_file else certificate}: is missing, HTTPS needs both files")
        return self


class Settings(Switch, Listening):
    kafka_bootstrap_servers: BootstrapServers
    """Kafka brokers of the attempts topic: ``host:port``, several separated by commas."""
    cluster_name: ClusterName = DEFAULT_CLUSTER
    """The cluster that a path without ``/clusters/…`` is about."""
    opensearch_url: Annotated[Url, AfterValidator(_without_path)]
    """Base URL, with user name and password where OpenSearch needs them."""
    opensearch_timeout_seconds: float = Field(default=10.0, gt=0, le=300)
    """How long a request to OpenSearch may take."""
    api_listen: ListenAddress = HostPort(LOOPBACK, 9090)
    """The address to listen on; port 0 takes a free one and prints it."""
    api_cached_pods: int = Field(default=1000, ge=1)
    """How many pods are answered from memory: those decided or requested last."""
    api_cached_bytes: int = Field(default=256 * 1024 * 1024, ge=1024 * 1024)
    """The size of their attempts together, in bytes of JSON; an attempt on 5,000 nodes takes about 200 kB."""
    api_replayed_records: int = Field(default=50_000, ge=0)
    """How many of the topic's last records are read at the start, of all partitions together."""
