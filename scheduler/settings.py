"""The settings of `python -m scheduler serve`: each is a flag and a variable, checked before anything starts.

The variable of a field is `SCHEDULERLOG_SCHEDULER_` and its name in capitals; runtime.settings.flags says how
a field becomes a flag. The flags that HAMi has too keep HAMi's names.
"""

import os
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from engine.hami.node_lock import EXPIRES_AFTER
from engine.hami.releases import LATEST, HamiRelease, parse_release
from runtime import durations
from runtime.files.state_files import locate_state_folder
from runtime.kubernetes.lease import LeaseTimings
from runtime.settings import variables
from runtime.settings.addresses import LOOPBACK, HostPort
from runtime.settings.flags import Flag
from runtime.settings.names import DEFAULT_CLUSTER
from runtime.settings.settings import (
    ClusterName,
    Duration,
    EnvironmentSettings,
    LabelNames,
    ListenAddress,
    ListenAddressIfGiven,
    Size,
)
from scheduler.bind.bind_request import ANSWER_AFTER

LEASE_NAME = "schedulerlog-scheduler"


def _parse_verbosity(value: object) -> object:
    """Parse `4`, or `=4` as left over from HAMi's `-v=4`. Raises `ValueError`."""
    if not isinstance(value, str):
        return value
    level = value.removeprefix("=")
    if not level.isdecimal() or len(level) > 3:
        raise ValueError(f"{level!r} is not a level, write 0, 2, 4 or 5")
    return int(level)


Verbosity = Annotated[int | None, BeforeValidator(_parse_verbosity), Flag(("--v", "-v"), metavar="0|2|4|5")]
NodePolicy = Literal["binpack", "spread"]


def _parse_version(value: object) -> object:
    """Parse `2.10`, `v2.11.0`. Raises `ValueError`."""
    if not isinstance(value, str):
        return value
    if (release := parse_release(value)) is None:
        raise ValueError(f"{value!r} is no version, write 2.10 or v2.11.0")
    return release


HamiVersion = Annotated[HamiRelease, BeforeValidator(_parse_version)]


def _parse_names(value: object) -> object:
    """Parse names between commas."""
    return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value


SchedulerNames = Annotated[tuple[str, ...], BeforeValidator(_parse_names)]


class Settings(EnvironmentSettings):
    """Settings of the scheduler extender. Durations are as Go writes them: 10s, 5m, 1h30m."""

    variable_prefix = f"{variables.PREFIX}SCHEDULER_"

    cluster: Annotated[Path | None, Flag(metavar="FILE")] = None
    """Nodes and pods as Kubernetes objects in YAML; followed while it runs."""
    kubeconfig: Annotated[Path | None, Flag(metavar="FILE")] = None
    """The API server to follow; default: that of the pod we run in."""
    context: str | None = None
    """A context of the kubeconfig; default: its current one."""
    # HAMi's default is 5 a second: at 9 calls a pod, about 0.55 pods a second.
    kube_qps: Annotated[float, Field(ge=0), Flag(metavar="NUMBER")] = 0
    """Requests a second to the API server; 0: no limit."""
    kube_burst: Annotated[int, Field(ge=1), Flag(metavar="NUMBER")] = 10
    """With --kube-qps: so many at once after a pause."""
    kube_timeout: Duration = durations.parse("10s")
    """The longest that one request to the API server may take."""
    cluster_name: Annotated[ClusterName, Flag(metavar="NAME")] = Field(
        DEFAULT_CLUSTER, validation_alias=variables.CLUSTER_NAME
    )
    """The name of the Kubernetes cluster, where several share Kafka and OpenSearch."""
    node_label_selector: Annotated[str, Flag(metavar="K=V,…")] = ""
    """Use only nodes with these labels."""

    leader_elect: bool = True
    """Answer only while we hold a Lease; for clusters where several schedulers run."""
    leader_elect_with_kube_scheduler: Annotated[bool, Flag(("--leader-elect-with-kube-scheduler",))] = False
    """The Lease is that of kube-scheduler in our own pod ($POD_NAME): lead while it does."""
    # This and the next two default to kube-scheduler's own times.
    leader_elect_lease_duration: Duration = durations.parse("15s")
    """A Lease that was not renewed for so long is taken by another scheduler."""
    leader_elect_renew_deadline: Duration = durations.parse("10s")
    """A leader that could not renew the Lease for so long stops answering."""
    leader_elect_retry_period: Duration = durations.parse("2s")
    """Between two tries to take or renew the Lease."""
    leader_elect_resource_name: str = LEASE_NAME
    """The Lease's name."""
    leader_elect_resource_namespace: str | None = None
    """The Lease's namespace; default: $POD_NAMESPACE, the pod's own, or kube-system."""

    # HAMi's default for --http_bind.
    listen: Annotated[ListenAddress, Flag(("--listen", "--http_bind"), metavar="HOST:PORT")] = HostPort(LOOPBACK, 8080)
    """The address to listen on; a port alone is one of 127.0.0.1, port 0 takes a free one."""
    metrics_bind_address: Annotated[
        ListenAddressIfGiven, Flag(("--metrics-bind-address", "--metrics-address"), metavar="HOST:PORT")
    ] = Field(None, validation_alias=variables.METRICS_ADDRESS)
    """Serve /metrics there too, without TLS; it is always at the address above."""
    cert_file: Annotated[Path | None, Flag(("--cert-file", "--cert_file"), metavar="FILE")] = None
    """The certificate for HTTPS, in PEM form; followed when it changes."""
    key_file: Annotated[Path | None, Flag(("--key-file", "--key_file"), metavar="FILE")] = None
    """The certificate's private key."""
    client_ca_file: Annotated[Path | None, Flag(metavar="FILE")] = None
    """The authority of kube-scheduler's client certificate; with it, filter and bind are refused to everybody else."""
    loopback_callers_only: bool = False
    """Filter and bind are refused to callers from outside of this pod, for a kube-scheduler inside of it; the webhook
    answers everybody."""
    webhook_listen: Annotated[ListenAddressIfGiven, Flag(metavar="HOST:PORT")] = None
    """Serve the webhook there and not at --listen: the API server need not reach what decides."""
    insecure_http: Annotated[bool, Flag(("--insecure-http",))] = False
    """Plain HTTP in place of HTTPS."""
    # HAMi cuts a body at 1 MiB, which some hundred whole nodes exceed (docs/hami-differences.md).
    max_body_size: Annotated[Size, Field(gt=0)] = 32 * 1024**2
    """Longer requests are refused (413)."""

    publish: bool = True
    """Send decisions to Kafka, or leave them in the spool."""
    # Not below the working folder: started from another one, a scheduler would not find what it has to send.
    spool: Annotated[Path, Flag(metavar="FOLDER")] = Field(default_factory=lambda: locate_state_folder() / "spool")
    """The folder for decisions that Kafka does not have yet; default: $XDG_STATE_HOME/schedulerlog/spool, where
    XDG_STATE_HOME is ~/.local/state if it is not set."""
    spool_max_size: Annotated[Size, Field(gt=0)] = 4 * 1024**3
    """The most that folder may take."""
    spool_sync: Annotated[Literal["always", "interval"], Flag(metavar="always|interval")] = "always"
    """always: an answer waits for the disk. interval: the disk follows twice a second."""
    drain_timeout: Annotated[Duration, Field(ge=timedelta(0))] = timedelta(seconds=5)
    """At the end, how long to wait for Kafka to take what is left."""

    pod_labels: Annotated[LabelNames, Flag(metavar="NAME,…", text=",".join)] = Field(
        (), validation_alias=variables.POD_LABELS
    )
    """Labels of pods that are published with their attempts."""

    name: str = "hami-scheduler"
    """This scheduler's name, as in the pods' spec.schedulerName."""
    share_nodes_with: Annotated[SchedulerNames, Flag(metavar="NAME,…", text=",".join)] = ()
    """Decide on nodes too where pods of these schedulers hold devices; those whose pods ask this extender need not be
    named. Where such a scheduler decides by itself, one device can be given away twice."""
    # HAMi's defaults for --node-scheduler-policy and --gpu-scheduler-policy.
    node_policy: Annotated[NodePolicy, Flag(metavar="binpack|spread")] = "binpack"
    """The best node: binpack (fullest) or spread (emptiest)."""
    device_policy: str = "spread"
    """The device that is tried first: spread, binpack, mutex, topology-aware, …"""
    device_config_file: Annotated[Path | None, Flag(metavar="FILE")] = None
    """The table of vendors: HAMi's file, or its ConfigMap, in YAML; default: our engine/fit/device-config.yaml."""
    hami_version: Annotated[HamiVersion, Flag(metavar="VERSION", text=str)] = LATEST
    """The release of HAMi whose rules decide, such as 2.10 or v2.11.0 (docs/hami-differences.md)."""
    # HAMi's default for --node-lock-timeout.
    node_lock_timeout: Duration = EXPIRES_AFTER
    """An older node lock is taken over."""
    # HAMi's default for --node-lock-retry-timeout.
    node_lock_retry_timeout: Duration = durations.parse("28s")
    """Time that a member of a pod group waits for another pod's node lock; 0s: it does not."""
    bind_timeout: Annotated[Duration, Field(gt=timedelta(0))] = ANSWER_AFTER
    """A bind call is answered by then, below kube-scheduler's httpTimeout; no binding is written after it."""
    # A pod that is bound after a mere simulation arrives without devices (docs/decisions/0009).
    whole_nodes: Annotated[Literal["place", "simulate"], Flag(metavar="place|simulate")] = "place"
    """Filter calls with whole nodes (nodeCacheCapable: false). place: as any other. simulate: on empty devices, and
    nothing is recorded, as HAMi does."""
    force_overwrite_default_scheduler: bool = True
    """The webhook takes over pods with devices that name the default scheduler."""
    handshake_timeout: Duration = durations.parse("300s")
    """An older hami.io/node-handshake becomes a node event and a metric; 0s: none does."""

    verbosity: Verbosity = None
    """Print HAMi's log lines: 0 events, 2 scores too, 4 every node, 5 every device. Without it none."""

    @property
    def lease_timings(self) -> LeaseTimings:
        """Raises `ValueError` for times that would let two schedulers lead."""
        duration, renew = self.leader_elect_lease_duration, self.leader_elect_renew_deadline
        return LeaseTimings(
            duration.total_seconds(), renew.total_seconds(), self.leader_elect_retry_period.total_seconds()
        )

    @model_validator(mode="after")
    def _names_one_cluster(self) -> Self:
        if self.cluster and self.kubeconfig:
            raise ValueError("--kubeconfig: --cluster is given too, leave one of them out")
        # Kubernetes sets this variable in every container.
        if not self.cluster and not self.kubeconfig and "KUBERNETES_SERVICE_HOST" not in os.environ:
            raise ValueError("no cluster: give --kubeconfig FILE or --cluster FILE, or run in a pod")
        return self

    @model_validator(mode="after")
    def _lets_one_scheduler_lead(self) -> Self:
        try:
            _ = self.lease_timings
        except ValueError as error:
            raise ValueError(f"--leader-elect-lease-duration: {error}") from None
        return self

    @model_validator(mode="after")
    def _has_a_certificate_or_asks_for_plain_http(self) -> Self:
        certificate, key = self.cert_file, self.key_file
        if self.insecure_http and (certificate or key):
            raise ValueError("--insecure-http: a certificate is given too, leave one of them out")
        if self.insecure_http and self.client_ca_file:
            raise ValueError("--client-ca-file: client certificates need HTTPS, leave --insecure-http out")
        if not self.insecure_http and not certificate and not key:
            raise ValueError("no certificate: give --cert-file and --key-file, or say --insecure-http")
        # HAMi serves plain HTTP where one of the two is missing; here nothing becomes unencrypted by a typing mistake.
        if bool(certificate) != bool(key):
            raise ValueError(f"{'--key-file' if certificate else '--cert-file'}: is missing, HTTPS needs both files")
        return self
