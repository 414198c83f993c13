"""The API's settings; process.settings says how they are read."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from process.addresses import LOOPBACK, HostPort
from process.cluster_name import DEFAULT_CLUSTER
from process.kafka_connection import KafkaConnection
from process.opensearch_connection import OpenSearchConnection
from process.service_settings import ServiceSettings
from process.settings import ClusterName, Duration, EnvironmentSettings, Flag, ListenAddress, Size
from process.tracing import TracingSettings
from process.variables import variable

CERTIFICATE_VARIABLES: Final = (variable("api_cert_file"), variable("api_key_file"))


class Switch(EnvironmentSettings):
    """Read first: an API that is switched off needs no other setting."""

    api_enabled: bool = True
    """off: `serve` prints that and ends with status 0; where a supervisor would restart it, scale it to zero."""


class Listening(EnvironmentSettings):
    api_cert_file: Annotated[Path | None, Flag(metavar="FILE")] = None
    """The certificate for HTTPS, in PEM form; followed when it changes. Without it: plain HTTP."""
    api_key_file: Annotated[Path | None, Flag(metavar="FILE")] = None
    """The certificate's private key."""

    @model_validator(mode="after")
    def _has_both_files_or_none(self) -> Self:
        certificate, key = CERTIFICATE_VARIABLES
        if bool(self.api_cert_file) != bool(self.api_key_file):
            raise ValueError(f"{key if self.api_cert_file else certificate}: is missing, HTTPS needs both files")
        return self


class Settings(ServiceSettings, TracingSettings, OpenSearchConnection, Listening, KafkaConnection, Switch):
    cluster_name: Annotated[ClusterName, Flag(metavar="NAME")] = DEFAULT_CLUSTER
    """The cluster that a path without ``/clusters/…`` is about."""
    opensearch_timeout: Annotated[Duration, Field(gt=timedelta(0), le=timedelta(minutes=5))] = timedelta(seconds=10)
    """How long one request to OpenSearch may take."""
    api_listen: Annotated[ListenAddress, Flag(("--listen", "--api-listen"), metavar="HOST:PORT")] = HostPort(
        LOOPBACK, 9090
    )
    """The address to listen on; a port alone is one of 127.0.0.1, port 0 takes a free one and prints it."""
    api_cached_pods: Annotated[int, Field(ge=1), Flag(metavar="NUMBER")] = 1000
    """How many pods are answered from memory: those decided or requested last."""
    api_cache_size: Annotated[Size, Field(ge=1024**2)] = 256 * 1024**2
    """The size of their attempts together, as JSON; an attempt on 5,000 nodes takes about 200 kB."""
    api_replayed_records: Annotated[int, Field(ge=0), Flag(metavar="NUMBER")] = 50_000
    """How many of the topic's last records are read at the start, of all partitions together."""
