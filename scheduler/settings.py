"""What `python -m scheduler serve` can be told, by flags and by the environment, checked before anything starts."""

import os
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from hami import durations
from hami.vendors import ONLY_NVIDIA, Vendors
from kube.lease import LeaseTimings
from scheduler.bind.binder import LockPolicy
from scheduler.cluster.kubernetes.connect import ApiServerOptions
from scheduler.http.tls import CertificatePair
from scheduler.judge.decision import SchedulingPolicy
from scheduler.node_check_task import CheckPolicy
from scheduler.publish.spool.spool import SpoolLimits

KAFKA_VARIABLE = "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS"


class SettingError(ValueError):
    """A setting is missing or wrong: one line that names it and says what to write."""


@dataclass(frozen=True, slots=True)
class Settings:
    cluster: Path | ApiServerOptions
    """The YAML file that describes the cluster, or where to ask."""
    name: str
    """The scheduler's name, as pods give it in `spec.schedulerName`."""
    host: str
    port: int
    spool: Path
    """The folder for decisions that Kafka does not have yet."""
    kafka: str
    """`host:port[,host:port…]`; empty: nothing is published, decisions stay in the spool."""
    policy: SchedulingPolicy = field(default_factory=SchedulingPolicy)
    vendors: Vendors = ONLY_NVIDIA
    """Whose cards are handed out."""
    limits: SpoolLimits = field(default_factory=SpoolLimits)
    lock: LockPolicy = field(default_factory=LockPolicy)
    certificate: CertificatePair | None = None
    """HTTPS with this pair; None: plain HTTP."""
    checks: CheckPolicy = field(default_factory=CheckPolicy)
    profiling: tuple[str, int] | None = None
    """Host and port of `/debug/pprof/`; None: no profiles."""
    verbosity: int | None = None
    """HAMi's log lines up to this klog level go to stderr; None: no such lines."""
    overwrites_default_scheduler: bool = True
    """The webhook takes pods over that name the default scheduler, as Kubernetes writes it where none was named."""
    simulates_whole_nodes: bool = False
    """A filter call that carries whole nodes is answered without a trace, as HAMi does it (docs/decisions/0009)."""
    max_body_bytes: int = 32 * 1024 * 1024
    drain_seconds: float = 5.0
    """At the end, how long to wait for Kafka to take what is left."""


def bootstrap_servers(said: str | None, *, publishes: bool) -> str:
    """Raises `SettingError` unless brokers are named or nothing is to be published."""
    if not publishes:
        return ""
    if not said:
        raise SettingError(f"no Kafka: give --kafka HOST:PORT, set {KAFKA_VARIABLE}, or say --no-publish")
    for server in said.split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise SettingError(f"--kafka: {server.strip()!r} is no HOST:PORT, write for example 127.0.0.1:9092")
    return said


def cluster(file: Path | None, server: ApiServerOptions) -> Path | ApiServerOptions:
    """Raises `SettingError` unless exactly one cluster is named, or we run in one."""
    if file and server.kubeconfig:
        raise SettingError("--kubeconfig: --cluster is given too, leave one of them out")
    if not file and not server.kubeconfig and "KUBERNETES_SERVICE_HOST" not in os.environ:
        raise SettingError("no cluster: give --kubeconfig FILE or --cluster FILE, or run in a pod")
    return file or server


def lease_terms(duration: timedelta, renew: timedelta, retry: timedelta) -> LeaseTimings:
    """Raises `SettingError` for times that would let two lead."""
    try:
        return LeaseTimings(duration.total_seconds(), renew.total_seconds(), retry.total_seconds())
    except ValueError as error:
        raise SettingError(f"--leader-elect-lease-duration: {error}") from None


def certificate(cert_file: Path | None, key_file: Path | None, *, insecure_http: bool) -> CertificatePair | None:
    """The pair for HTTPS; None where plain HTTP was asked for. Raises `SettingError` for anything in between."""
    if insecure_http:
        if cert_file or key_file:
            raise SettingError("--insecure-http: a certificate is given too, leave one of them out")
        return None
    if not cert_file and not key_file:
        raise SettingError("no certificate: give --cert-file and --key-file, or say --insecure-http")
    if not cert_file or not key_file:
        raise SettingError(f"{'--key-file' if cert_file else '--cert-file'}: is missing, HTTPS needs both files")
    return CertificatePair(cert_file, key_file)


def word(flag: str, said: str, known: tuple[str, ...]) -> str:
    """Raises `SettingError` unless `said` is one of `known`."""
    if said not in known:
        raise SettingError(f"{flag}: {said!r} is not known, write {' or '.join(known)}")
    return said


def duration(flag: str, said: str) -> timedelta:
    try:
        return durations.parse(said)
    except ValueError as error:
        raise SettingError(f"{flag}: {error}") from None


def address(flag: str, said: str) -> tuple[str, int]:
    host, _, port = said.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise SettingError(f"{flag}: {said!r} is no HOST:PORT, write for example 127.0.0.1:6060")
    return host, int(port)


def verbosity(said: str | None) -> int | None:
    """`4`, or `=4` as left over from HAMi's `-v=4`."""
    if said is None:
        return None
    level = said.removeprefix("=")
    if not level.isdecimal() or len(level) > 3:
        raise SettingError(f"--v: {level!r} is no level, write 0, 2, 4 or 5")
    return int(level)


def positive(flag: str, said: int) -> int:
    if said <= 0:
        raise SettingError(f"{flag}: {said} is not above 0")
    return said
