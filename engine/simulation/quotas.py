"""Kubernetes' quotas on a pod that does not exist yet: the API server refuses to create one that exceeds them.

What counts is what the quota's status says is used, and what pods hold that were placed in the simulation. Quotas with
scopes, and amounts of limits, are not judged. HAMi counts its own resources in quotas by itself.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from engine.diagnosis.outcome import FoundObstacle
from engine.simulation.cluster import SimulationCluster
from engine.snapshot import kinds
from engine.snapshot.fields import FieldError
from engine.snapshot.pods import Pod
from engine.snapshot.quantity import CPU, PODS, format_amount, read_nano, round_nano
from engine.snapshot.requests import Amounts, request_to_place
from runtime.kubernetes.object_fields import get_object, get_text

_REQUESTS: Final = "requests."
_NATIVE: Final = frozenset((CPU, "memory", "ephemeral-storage"))
_COUNTS: Final = frozenset((PODS, "count/pods"))


class ExceededQuota(NamedTuple):
    """An entry of a quota that does not leave what a pod asks for. Amounts in the units of requests."""

    namespace: str
    quota: str
    resource: str
    requested: int
    used: int
    hard: int

    def describe(self) -> FoundObstacle:
        """Describe the refusal of the API server."""
        requested, used, hard = (
            format_amount(self.resource, amount) for amount in (self.requested, self.used, self.hard)
        )
        words = {"quota": self.quota, "namespace": self.namespace, "resource": self.resource}
        return FoundObstacle("QuotaRefusesPod", {**words, "asked": requested, "used": used, "hard": hard})


def find_exceeded_quota(cluster: SimulationCluster, pod: Mapping[str, Any]) -> ExceededQuota | None:
    """Find the first quota that a new pod would exceed; None for a pod that the cluster has already."""
    namespace, name = get_text(pod, "metadata", "namespace"), get_text(pod, "metadata", "name")
    quotas = [quota for quota in cluster.list_kind(kinds.RESOURCE_QUOTA) if _counts_all(quota, namespace)]
    if not quotas:
        return None
    existing = {_get_key(item) for item in cluster.list_kind(kinds.POD)}
    if (namespace, name) in existing:
        return None
    pods = [other for key, other in cluster.snapshot.pods.items() if key[0] == namespace]
    placed = [other for other in pods if other.key not in existing]
    try:
        requested = request_to_place(pod)
        exceeded = (entry for quota in quotas for entry in _iterate_exceeded(quota, namespace, requested, pods, placed))
        return next(exceeded, None)
    except (FieldError, ValueError):
        # The judge says which field of the pod is malformed; a malformed quota is none that an API server stores.
        return None


def _get_key(item: Mapping[str, Any]) -> tuple[str, str]:
    return get_text(item, "metadata", "namespace"), get_text(item, "metadata", "name")


def _counts_all(quota: Mapping[str, Any], namespace: str) -> bool:
    spec = get_object(quota, "spec")
    return get_text(quota, "metadata", "namespace") == namespace and not (
        spec.get("scopes") or spec.get("scopeSelector")
    )


def _iterate_exceeded(
    quota: Mapping[str, Any], namespace: str, requested: Amounts, pods: list[Pod], placed: list[Pod]
) -> Iterator[ExceededQuota]:
    status = get_object(quota, "status", "used")
    for entry, text in get_object(quota, "spec", "hard").items():
        resource = PODS if entry in _COUNTS else entry.removeprefix(_REQUESTS)
        if resource == entry and entry not in _NATIVE | {PODS}:
            continue
        amount = 1 if resource == PODS else requested.get(resource, 0)
        used = _sum_requests(resource, placed if entry in status else pods)
        if entry in status:
            used += round_nano(resource, read_nano(status[entry]))
        hard = round_nano(resource, read_nano(text))
        if amount and used + amount > hard:
            yield ExceededQuota(namespace, get_text(quota, "metadata", "name"), resource, amount, used, hard)


def _sum_requests(resource: str, pods: list[Pod]) -> int:
    return len(pods) if resource == PODS else sum(pod.request.get(resource, 0) for pod in pods)
