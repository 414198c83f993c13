"""Redaction of pods in namespaces that the caller may not read: answers keep amounts and hide names.

It finds a name by its reference to a pod, never by a search in a text: by a field of the record, or as NAMESPACE/NAME
in the words of a scheduler.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final, TypeVar

from api.authority.access import Access, filter_readable_namespaces
from api.authority.rights import get_pod, list_pods
from api.http.cluster import Cluster
from engine.summaries.named_pods import HIDDEN_POD, hide_other_pods, hide_pods_in_attempt
from schemas.answers.attempts import AttemptFound, Episode
from schemas.answers.nodes import NamespaceOnNode, NodeListed
from schemas.answers.placements import Finding, Holder, NodeOccupancy, PodObservation
from schemas.events import AttemptSummarized

Item = TypeVar("Item")
Replace = Callable[[str], str]

HIDDEN: Final = "{} lines, for callers who may list the pods of all namespaces"


def redact_occupancy(occupancy: NodeOccupancy, readable: Collection[str]) -> NodeOccupancy:
    """Keep the sums of each device, and the names of pods only in the namespaces ``readable``."""
    readable_pods = [pod for pod in occupancy.pods if pod.namespace in readable]
    devices = [
        device.model_copy(update={"held_by": [_redact_holder(holder, readable) for holder in device.held_by]})
        for device in occupancy.devices
    ]
    others = len(occupancy.pods) - len(readable_pods)
    return occupancy.model_copy(update={"devices": devices, "pods": readable_pods, "other_pods": others})


def _redact_holder(holder: Holder, readable: Collection[str]) -> Holder:
    if holder.namespace in readable:
        return holder
    # The start would distinguish pods of a namespace as their names would.
    hidden = {"namespace": "", "name": "", "container": "", "attempt_id": "", "started_at": ""}
    return holder.model_copy(update=hidden)


def redact_listed_node(node: NodeListed, readable: Collection[str]) -> NodeListed:
    """Hide the holder of the node's lock, and the names of namespaces, unless they are ``readable``."""
    lock = node.lock
    if lock and lock.pod and lock.pod.partition("/")[0] not in readable:
        lock = lock.model_copy(update={"pod": HIDDEN_POD})
    return node.model_copy(update={"lock": lock, "held": _redact_held(node.held, readable)})


def _redact_held(held: Sequence[NamespaceOnNode], readable: Collection[str]) -> list[NamespaceOnNode]:
    """Add up the namespaces that are not readable: their number would tell who shares the node."""
    hidden = [entry for entry in held if entry.namespace not in readable]
    amounts = ("pods", "devices", "memory_mib", "cores_percent")
    sums = {name: sum(getattr(entry, name) for entry in hidden) for name in amounts}
    together = [NamespaceOnNode(namespace="", **sums)] if hidden else []
    return [*together, *(entry for entry in held if entry.namespace in readable)]


async def redact_attempt(
    access: Access, cluster: Cluster, attempt: AttemptSummarized, *, has_detail: bool = True
) -> AttemptSummarized:
    """Redact the attempt for its caller: only a caller with the right sees pods of other namespaces in the scheduler's
    words and as the holder of a lock. Returns the same attempt if nothing is hidden.

    ``has_detail``: true if the answer has the holder of a lock.
    """
    hidden = hide_pods_in_attempt(attempt)
    if hidden is not attempt and not await access.allows(cluster, list_pods()):
        attempt = hidden
    is_whole = not has_detail or await _may_see_lock_holder(access, cluster, attempt)
    return attempt if is_whole else _without_lock_holder(attempt)


async def redact_texts(
    access: Access,
    cluster: Cluster,
    namespace: str | None,
    items: Sequence[Item],
    with_texts: Callable[[Item, Replace], Item],
) -> Sequence[Item]:
    """Redact items about pods of ``namespace``: only callers who may list all pods see other pods in their texts.

    ``namespace`` None: the caller may list all pods. ``with_texts`` changes each text of an item.
    """
    if namespace is None:
        return items
    hidden = [with_texts(item, partial(hide_other_pods, namespace=namespace)) for item in items]
    return items if hidden == items or await access.allows(cluster, list_pods()) else hidden


def change_search_item_texts(item: AttemptFound, replace: Replace) -> AttemptFound:
    return item.model_copy(update={"summary": replace(item.summary)})


def change_episode_texts(episode: Episode, replace: Replace) -> Episode:
    phases = {
        "filter": episode.filter | {"summary": replace(episode.filter["summary"])},
        "bind": episode.bind.model_copy(update={"summary": replace(episode.bind.summary)}),
    }
    return episode.model_copy(update=phases | {"changes": list(map(replace, episode.changes))})


def change_observation_texts(observed: PodObservation, replace: Replace) -> PodObservation:
    conditions = [
        condition.model_copy(update={"message": replace(condition.message)}) for condition in observed.conditions
    ]
    return observed.model_copy(update={"conditions": conditions})


async def _may_see_lock_holder(access: Access, cluster: Cluster, attempt: AttemptSummarized) -> bool:
    """Tell whether no pod held a lock against the attempt, or one that the caller may read."""
    holder = attempt.bind.lock_holder if attempt.bind else None
    if holder is None or not holder.pod:
        return True
    namespace, _, name = holder.pod.partition("/")
    return await access.allows(cluster, get_pod(namespace, name))


def _without_lock_holder(attempt: AttemptSummarized) -> AttemptSummarized:
    """Hide the pod that locked the attempt's node, but keep the time."""
    if attempt.bind is None or attempt.bind.lock_holder is None:
        return attempt
    holder = attempt.bind.lock_holder.model_copy(update={"pod": HIDDEN_POD})
    return attempt.model_copy(update={"bind": attempt.bind.model_copy(update={"lock_holder": holder})})


async def redact_findings(access: Access, cluster: Cluster, findings: Sequence[Finding]) -> Sequence[Finding]:
    """Redact findings about pods that the caller may read: keep the numbers, and evidence about readable pods.

    Only callers who may list all pods see lines without a recorded pod.
    """
    if await access.allows(cluster, list_pods()):
        return findings
    others = {pod for finding in findings for pod in finding.evidence_pods if pod != _name_pod(finding)}
    readable = await filter_readable_namespaces(access, cluster, {pod.partition("/")[0] for pod in others})
    return [_with_readable_lines(finding, readable) for finding in findings]


def _with_readable_lines(finding: Finding, readable: Collection[str]) -> Finding:
    if len(finding.evidence_pods) != len(finding.evidence):
        return finding.model_copy(update={"evidence": [HIDDEN.format(len(finding.evidence))], "evidence_pods": []})
    is_shown = [pod == _name_pod(finding) or pod.partition("/")[0] in readable for pod in finding.evidence_pods]
    # A line about a readable pod may name others.
    lines = [
        hide_other_pods(line, pod.partition("/")[0]) if is_readable else HIDDEN_POD
        for line, pod, is_readable in zip(finding.evidence, finding.evidence_pods, is_shown, strict=True)
    ]
    pods = [pod if is_readable else "" for pod, is_readable in zip(finding.evidence_pods, is_shown, strict=True)]
    return finding.model_copy(update={"evidence": lines, "evidence_pods": pods})


def _name_pod(finding: Finding) -> str:
    return f"{finding.namespace}/{finding.name}"
