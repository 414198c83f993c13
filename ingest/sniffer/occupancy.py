"""Which pod is on which node, from when to when: from observations of pods, in any order."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from schemas.events import PodObserved

ENDED: Final = frozenset(("Succeeded", "Failed"))
DELETED: Final = "Deleted"
"""The condition of a pod that is gone; Kubernetes has none, because it has no pod then."""


@dataclass(frozen=True, slots=True)
class Stay:
    """``until`` is None while the pod is there."""

    pod: str
    node: str
    since: datetime
    until: datetime | None = None


def stays(observations: Iterable[PodObserved]) -> list[Stay]:
    """Every stay of a pod on a node, by pod and time. A stay ends with the pod, or where it is seen elsewhere."""
    found: list[Stay] = []
    by_pod: dict[str, list[PodObserved]] = {}
    for each in observations:
        by_pod.setdefault(str(each.pod), []).append(each)
    for pod, seen in sorted(by_pod.items()):
        found += _stays_of(pod, sorted(seen, key=lambda each: each.observed))
    return found


def _stays_of(pod: str, seen: list[PodObserved]) -> list[Stay]:
    found: list[Stay] = []
    here: Stay | None = None
    for each in seen:
        has_ended = each.phase in ENDED or any(condition.type == DELETED for condition in each.conditions)
        if here and (has_ended or each.node not in ("", here.node)):
            found.append(Stay(here.pod, here.node, here.since, each.observed))
            here = None
        if here is None and each.node and not has_ended:
            here = Stay(pod, each.node, each.observed)
    return [*found, here] if here else found


def pod_to_node(all_stays: Iterable[Stay]) -> dict[str, str]:
    """Where each pod is now."""
    return {stay.pod: stay.node for stay in all_stays if stay.until is None}


def occupants(all_stays: Iterable[Stay], node: str, at: datetime) -> list[str]:
    """The pods that were on a node at a time, sorted."""
    return sorted(
        stay.pod
        for stay in all_stays
        if stay.node == node and stay.since <= at and (stay.until is None or at < stay.until)
    )
