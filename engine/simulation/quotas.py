"""Kubernetes' quotas on a pod that does not exist yet: the API server refuses to create one that exceeds them.

A claim that is made from the pod's template is refused by itself, and the pod waits without it. What counts is what the
quota's status says is used, and what was placed in the simulation. HAMi counts its own resources in quotas by itself.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import join_phrases, shorten_list
from engine.hami.vendors import Vendors
from engine.simulation.claim_templates import make_claims
from engine.simulation.cluster import SimulationCluster
from engine.simulation.quota_usage import (
    COUNT_OF_CLAIMS,
    COUNT_OF_PODS,
    DEVICES,
    counts_pod,
    find_missing_amounts,
    get_resource,
    is_entry_of_pods,
    list_scopes,
    measure_claim,
    measure_pod,
)
from engine.snapshot import kinds
from engine.snapshot.fields import FieldError, Object
from engine.snapshot.quantity import PODS, QuantityError, format_amount, read_nano, round_nano
from engine.snapshot.requests import Nanos
from runtime.kubernetes.object_fields import get_object, get_text
from schemas.json_types import Json

_REQUESTS: Final = "requests."
_LIMITS: Final = "limits."
_COUNTS: Final = frozenset((PODS, COUNT_OF_PODS, COUNT_OF_CLAIMS))


class ExceededQuota(NamedTuple):
    """An entry of a quota that does not leave what a pod or a claim counts. Amounts in billionths."""

    quota: Object
    entry: str
    requested: int
    used: int
    hard: int
    claim: str = ""
    """Name of the claim; empty for the pod."""

    def describe(self) -> FoundObstacle:
        """Describe the refusal of the API server."""
        requested, used, hard = (_format(self.entry, amount) for amount in (self.requested, self.used, self.hard))
        phrase = "quota_one_more" if self.entry in _COUNTS else "quota_claim_asks" if self.claim else "quota_pod_asks"
        scopes = list_scopes(self.quota)
        words: dict[str, Word] = {
            **_name(self.quota),
            "resource": _name_entry(self.entry),
            "asked": write_phrase(phrase, asked=requested),
            "used": used,
            "hard": hard,
            "claim": self.claim,
            "scopes": shorten_list(scopes),
        }
        code = "QuotaRefusesClaim" if self.claim else "QuotaRefusesPod"
        return FoundObstacle(code, words, clauses=["scopes"] if scopes else [])


class MissingAmounts(NamedTuple):
    """Amounts that a quota counts and that containers of the pod do not name."""

    quota: Object
    containers: Mapping[str, Sequence[str]]
    """By entry of the quota."""

    def describe(self) -> FoundObstacle:
        """Describe the refusal of the API server."""
        missing = [
            write_phrase("quota_missing", entry=entry, containers=shorten_list(names))
            for entry, names in self.containers.items()
        ]
        return FoundObstacle("QuotaNeedsAmounts", {**_name(self.quota), "missing": join_phrases(missing)})


QuotaRefusal = ExceededQuota | MissingAmounts


def find_quota_refusal(cluster: SimulationCluster, pod: Json) -> QuotaRefusal | None:
    """Find the first quota that refuses a new pod, or a claim of its templates; None if all leave enough."""
    namespace = get_text(pod, "metadata", "namespace")
    quotas = [quota for quota in cluster.list_kind(kinds.RESOURCE_QUOTA) if _get_namespace(quota) == namespace]
    if not quotas:
        return None
    try:
        return next(_iterate_refusals(cluster, pod, namespace, quotas), None)
    except (FieldError, QuantityError):
        # The judge says which field of the pod is malformed; a malformed quota is none that an API server stores.
        return None


def _iterate_refusals(
    cluster: SimulationCluster, pod: Json, namespace: str, quotas: Sequence[Object]
) -> Iterator[QuotaRefusal]:
    counting = [quota for quota in quotas if counts_pod(quota, pod)]
    for quota in counting:
        if missing := find_missing_amounts(pod, _get_hard(quota)):
            yield MissingAmounts(quota, missing)
    pods = _collect_members(cluster, kinds.POD, namespace)
    usage = {entry: amount for entry, amount in measure_pod(pod).items() if is_entry_of_pods(entry)}
    for quota in counting:
        members = pods.select(lambda other, quota=quota: counts_pod(quota, other))  # type: ignore[misc]
        yield from _iterate_exceeded(quota, usage, members, measure_pod)
    yield from _iterate_refused_claims(cluster, pod, namespace, quotas)


class _Members(NamedTuple):
    """Objects of one kind in a namespace: those of the cluster, and those that the simulation placed."""

    existing: Sequence[Object]
    placed: Sequence[Object]

    def select(self, is_counted: Callable[[Object], bool]) -> "_Members":
        """Select the counted ones."""
        return _Members([*filter(is_counted, self.existing)], [*filter(is_counted, self.placed)])


def _collect_members(cluster: SimulationCluster, kind: str, namespace: str) -> _Members:
    existing = [item for item in cluster.list_kind(kind.partition(".")[0]) if _get_namespace(item) == namespace]
    names = {get_text(item, "metadata", "name") for item in existing}
    table = cluster.snapshot.get_table(kind)
    others = [item for (owner, name), item in table.items() if owner == namespace and name not in names]
    return _Members(existing, [getattr(item, "object", item) for item in others])


def _iterate_exceeded(
    quota: Object, usage: Nanos, members: _Members, measure: Callable[[Object], Nanos], claim: str = ""
) -> Iterator[ExceededQuota]:
    """Iterate over the entries of a quota that would be exceeded. measure: of a member, by entry."""
    status = get_object(quota, "status", "used")
    for entry, text in _get_hard(quota).items():
        requested, hard = usage.get(entry, 0), read_nano(text)
        if not requested:
            continue
        counted = members.placed if entry in status else [*members.existing, *members.placed]
        used = read_nano(status.get(entry, 0)) + sum(measure(item).get(entry, 0) for item in counted)
        if used + requested > hard:
            yield ExceededQuota(quota, entry, requested, used, hard, claim)


def _iterate_refused_claims(
    cluster: SimulationCluster, pod: Json, namespace: str, quotas: Sequence[Object]
) -> Iterator[ExceededQuota]:
    """Iterate over the claims of the pod's templates that a quota refuses; one with scopes counts no claims."""
    classes = {name: value for (_, name), value in cluster.snapshot.get_objects(kinds.DEVICE_CLASS).items()}

    def measure(claim: Object) -> Nanos:
        return measure_claim(claim, classes)

    members = _collect_members(cluster, kinds.RESOURCE_CLAIM, namespace)
    for claim in make_claims(pod, cluster.objects)[1]:
        for quota in quotas:
            if not list_scopes(quota):
                yield from _iterate_exceeded(
                    quota, measure(claim), members, measure, get_text(claim, "metadata", "name")
                )
        members = members._replace(placed=[*members.placed, claim])


def limits_shares(quotas: Iterable[Object], vendors: Vendors) -> bool:
    """Tell whether a quota limits parts of devices, of which HAMi counts by itself what is used."""
    counted = {name for vendor in vendors for name in (vendor.resources.memory, vendor.resources.cores) if name}
    return any(entry.removeprefix(_LIMITS) in counted for quota in quotas for entry in _get_hard(quota))


def _get_namespace(item: Object) -> str:
    return get_text(item, "metadata", "namespace") or "default"


def _get_hard(quota: Object) -> Mapping[str, object]:
    return get_object(quota, "spec", "hard")


def _name(quota: Object) -> dict[str, Word]:
    return {"quota": get_text(quota, "metadata", "name"), "namespace": _get_namespace(quota)}


def _name_entry(entry: str) -> Word:
    """Name what an entry limits, as people say it."""
    if entry.endswith(DEVICES):
        return write_phrase("quota_devices", device_class=entry.removesuffix(DEVICES))
    if entry.startswith(_LIMITS):
        return write_phrase("quota_limits", resource=entry.removeprefix(_LIMITS))
    if entry in (COUNT_OF_PODS, COUNT_OF_CLAIMS):
        return write_phrase("quota_pods_ever" if entry == COUNT_OF_PODS else "quota_claims")
    return entry.removeprefix(_REQUESTS)


def _format(entry: str, nano: int) -> str:
    resource = get_resource(entry)
    return format_amount(resource, round_nano(resource, nano))
