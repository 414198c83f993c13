"""Connects to an API server: from options to a cluster that follows it, with its metrics."""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from runtime.backoff import RateLimiter
from runtime.kubernetes.client import Client
from runtime.kubernetes.colocated_leadership import ColocatedLeadership
from runtime.kubernetes.credentials import (
    ApiCredentials,
    LoadConfiguration,
    from_kubeconfig,
    load_service_account,
    read_pod_namespace,
)
from runtime.kubernetes.election import Election
from runtime.kubernetes.leadership import Leadership, generate_identity, get_host
from runtime.kubernetes.lease import LeaseTimings
from runtime.kubernetes.resources import Key
from scheduler.cluster.claims import Claims
from scheduler.cluster.cluster_api import Watcher
from scheduler.cluster.kubernetes.cluster import KubernetesCluster
from scheduler.metrics import Metrics


@dataclass(frozen=True, slots=True)
class ApiServerOptions:
    """Options of the connection to an API server."""

    kubeconfig: Path | None = None
    """Path of the kubeconfig; None: the service account of the pod that we run in."""
    context: str | None = None
    """The name of a context of the kubeconfig; None: its current one."""
    qps: float = 0.0
    """Requests a second; 0: no limit."""
    burst: int = 10
    timeout_seconds: float = 10.0
    """Time limit of one request."""
    node_labels: str = ""
    """Only nodes with these labels are used."""
    lease: Key | None = None
    """The Lease that says who leads; None: this scheduler is the only one."""
    terms: LeaseTimings = field(default_factory=LeaseTimings)
    leads_with_kube_scheduler: bool = False
    """The Lease is that of kube-scheduler in our own pod, and we lead while it does."""


def find_lease_namespace() -> str:
    """Find the default namespace of the Lease: our own pod's, else kube-system."""
    return os.environ.get("POD_NAMESPACE") or read_pod_namespace() or "kube-system"


async def connect(server: ApiServerOptions, watcher: Watcher, claims: Claims, metrics: Metrics) -> KubernetesCluster:
    """Connect a cluster that `run` will keep up to date. Raises `KubeConfigError`.

    No request is sent yet; whether the API server answers shows later, in `problem`.
    """
    load: LoadConfiguration = (
        from_kubeconfig(server.kubeconfig, server.context) if server.kubeconfig else load_service_account
    )
    client = Client(
        await ApiCredentials.open(load),
        rate_limiter=RateLimiter(server.qps, server.burst),
        timeout_seconds=server.timeout_seconds,
        count=lambda verb, result: metrics.kube_api_requests.labels(verb, result).inc(),
    )
    election = _create_leadership(server, client)
    cluster = KubernetesCluster(client, watcher, claims, election, node_labels=server.node_labels)
    _watch(metrics, cluster, election)
    return cluster


def _create_leadership(server: ApiServerOptions, client: Client) -> Leadership | None:
    if server.lease is None:
        return None
    if server.leads_with_kube_scheduler:
        return ColocatedLeadership(client, server.lease, get_host(), server.terms)
    return Election(client, server.lease, generate_identity(), server.terms)


def _watch(metrics: Metrics, cluster: KubernetesCluster, election: Leadership | None) -> None:
    metrics.watch(
        "cache_age_seconds",
        # The watch that has been silent longest: the others must not hide that it is dead.
        lambda: time.monotonic() - min(watch.heard_at for watch in cluster.watches),
    )
    metrics.watch(
        "watch_restarts",
        lambda: sum(watch.restarts for watch in cluster.watches),
    )
    metrics.watch(
        "is_leader",
        lambda: float(election is None or election.is_leading),
    )
