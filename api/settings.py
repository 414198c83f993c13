"""The API's settings; runtime.settings.settings says how they are read."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from runtime.settings.addresses import LOOPBACK, HostPort
from runtime.settings.kafka_connection import KafkaConnection
from runtime.settings.names import DEFAULT_CLUSTER
from runtime.settings.node_pools import PoolSettings
from runtime.settings.opensearch_connection import OpenSearchConnection
from runtime.settings.settings import (
    ClusterName,
    Duration,
    EnvironmentSettings,
    Flag,
    ListenAddress,
    ServiceSettings,
    Size,
)
from runtime.settings.variables import derive_variable
from runtime.telemetry.tracing import TracingSettings

_ORIGINS: Final = r"^(https?://[A-Za-z0-9.*-]+(:\d{1,5})?( +|$))*$"
_HOSTS: Final = r"^([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])?(,([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]))*$"
_NAMES: Final = r"^([^\s,]+(,[^\s,]+)*)?$"
_HEADER: Final = r"^[A-Za-z0-9-]+$"
CERTIFICATE_VARIABLES: Final = tuple(
    map(derive_variable, ("api_cert_file", "api_key_file", "api_client_ca_file", "api_proxy_ca_file"))
)


class Switch(EnvironmentSettings):
    """Switch of the API, read first: an API that is switched off needs no other setting."""

    api_enabled: bool = True
    """Switch of the API. off: `serve` prints so and ends with status 0; under a supervisor, scale it to zero."""


class Listening(EnvironmentSettings):
    api_cert_file: Annotated[Path | None, Flag(metavar="FILE")] = None
    """Certificate for HTTPS, in PEM form; the API follows its changes. Without it: plain HTTP."""
    api_key_file: Annotated[Path | None, Flag(metavar="FILE")] = None
    """Private key of the certificate."""

    @model_validator(mode="after")
    def _has_both_files_or_none(self) -> Self:
        certificate, key, *_ = CERTIFICATE_VARIABLES
        if bool(self.api_cert_file) != bool(self.api_key_file):
            raise ValueError(f"{key if self.api_cert_file else certificate}: is missing, HTTPS needs both files")
        return self


class Callers(EnvironmentSettings):
    """Settings about callers."""

    api_authentication: Annotated[Literal["none", "kubernetes"], Flag(metavar="none|kubernetes")] = "none"
    """Authentication. kubernetes: callers send a bearer token and read what their Roles allow. none: everybody reads
    everything."""
    api_audience: str = "schedulerlog"
    """Audience for which a caller's token must have been issued."""
    api_client_ca_file: Annotated[Path | None, Flag(metavar="FILE")] = None
    """Authority of certificates that callers may present instead of a token: CN is the user, each O a group."""
    api_proxy_ca_file: Annotated[Path | None, Flag(metavar="FILE")] = None
    """Authority of the certificate of an authenticating proxy, whose headers name the caller (docs/access.md)."""
    api_proxy_names: Annotated[str, Field(pattern=_NAMES), Flag(metavar="NAME,…")] = ""
    """Common names that the certificate of this proxy may have; required with its authority."""
    api_proxy_user_header: Annotated[str, Field(pattern=_HEADER), Flag(metavar="HEADER")] = "X-Forwarded-User"
    """Header in which this proxy names the user."""
    api_proxy_groups_header: Annotated[str, Field(pattern=_HEADER), Flag(metavar="HEADER")] = "X-Forwarded-Groups"
    """Header in which this proxy names the user's groups, with commas between them."""
    api_proxy_prefix: str = ""
    """Text before each user and group of this proxy, as the API server's --oidc-username-prefix."""
    api_aggregated: bool = False
    """Aggregated API: also answer the API server below /apis/schedulerlog.io; it names the caller (docs/api.md)."""
    api_insecure: bool = False
    """Permission to serve other machines without authentication or without HTTPS, behind a proxy that protects the
    API."""
    api_hosts: Annotated[str, Field(pattern=_HOSTS), Flag(metavar="NAME,…")] = ""
    """Host names that the API answers, without ports; it refuses others with 421. Default: local names on loopback
    without authentication, otherwise all. It protects against DNS rebinding by pages of the web.
    """
    api_frame_ancestors: Annotated[str, Field(pattern=_ORIGINS), Flag(metavar="ORIGINS")] = ""
    """Origins whose pages may show ``/embed/…`` in a frame, such as ``https://platform.example.org``, separated by
    spaces; empty: none."""
    kubeconfig: Annotated[Path | None, Flag(metavar="FILE")] = None
    """Kubeconfig of the cluster; default: the service account of the pod."""
    context: str | None = None
    """Context of the kubeconfig; default: its current one."""


# In the order of the pipeline's settings: `schedulerlog all` has both as one model.
class Settings(
    OpenSearchConnection, PoolSettings, TracingSettings, Callers, Listening, KafkaConnection, ServiceSettings, Switch
):
    cluster_name: Annotated[ClusterName, Flag(metavar="NAME")] = DEFAULT_CLUSTER
    """Cluster that a path without ``/clusters/…`` is about."""
    opensearch_timeout: Annotated[Duration, Field(gt=timedelta(0), le=timedelta(minutes=5))] = timedelta(seconds=10)
    """Time limit of one request to OpenSearch; in the API, of all requests for one answer together."""
    api_listen: Annotated[ListenAddress, Flag(("--listen", "--api-listen"), metavar="HOST:PORT")] = HostPort(
        LOOPBACK, 9090
    )
    """Address to listen on. Only a port means 127.0.0.1; port 0 takes a free port and prints it."""
    api_cached_pods: Annotated[int, Field(ge=1), Flag(metavar="NUMBER")] = 1000
    """Number of pods that the API answers from memory: those decided or requested last."""
    api_cache_size: Annotated[Size, Field(ge=1024**2)] = 256 * 1024**2
    """Total size of these pods' attempts, as JSON; an attempt on 5,000 nodes takes about 200 kB. Cached answers take up
    to a quarter of it in addition."""
    api_replayed_records: Annotated[int, Field(ge=0), Flag(metavar="NUMBER")] = 50_000
    """Number of the topic's last records, over all partitions, that the API reads at its start."""

    api_watches: Annotated[int, Field(ge=0), Flag(metavar="NUMBER")] = 2000
    """Maximum number of open watches; an authenticated caller may have a tenth of it."""

    @model_validator(mode="after")
    def _checks_the_callers_that_show_certificates(self) -> Self:
        certificate, _, client_ca, proxy_ca = CERTIFICATE_VARIABLES
        asking = {
            client_ca: self.api_client_ca_file,
            proxy_ca: self.api_proxy_ca_file,
            derive_variable("api_aggregated"): self.api_aggregated,
        }
        for variable in filter(asking.get, asking):
            if not (self.api_cert_file and self.api_authentication == "kubernetes"):
                authentication = derive_variable("api_authentication")
                raise ValueError(f"{variable}: needs {certificate} and {authentication}=kubernetes")
        if self.api_proxy_ca_file and not self.api_proxy_names:
            names = derive_variable("api_proxy_names")
            raise ValueError(f"{names}: is missing; name the common names of certificates of {proxy_ca} that count")
        return self

    @model_validator(mode="after")
    def _is_protected_where_others_reach_it(self) -> Self:
        if self.api_insecure or self.is_local:
            return self
        listen, insecure = (
            f"{derive_variable('api_listen')}: other machines reach {self.api_listen}",
            derive_variable("api_insecure"),
        )
        if self.api_authentication == "none":
            authentication = derive_variable("api_authentication")
            raise ValueError(
                f"{listen}, and everybody could read everything: set {authentication}=kubernetes, or {insecure}=true"
            )
        if not self.api_cert_file:
            raise ValueError(
                f"{listen}, and tokens would be sent without HTTPS: set {CERTIFICATE_VARIABLES[0]}, or {insecure}=true"
            )
        return self

    @property
    def is_local(self) -> bool:
        """True if only this machine can reach the API."""
        return self.api_listen.is_loopback
