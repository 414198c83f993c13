"""What an answer shows of pods in namespaces that the caller may not read: amounts, and no name.

What hides a name is the reference to the pod, never a search for its name in a text: a field of the record, or
NAMESPACE/NAME in the words of a scheduler.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final, TypeVar

from api.authority.access import Access, filter_readable_namespaces
from api.authority.rights import get_pod, list_pods
from api.http.cluster import Cluster
from engine.summaries.named_pods import HIDDEN_POD, hide_other_pods, hide_pods_in_attempt
from schemas.answers.attempts import AttemptFound, Episode
from schemas.answers.nodes import NodeListed
from schemas.answers.placements import Finding, Holder, NodeOccupancy, PodObservation
from schemas.events import AttemptSummarized

Item = TypeVar("Item")
Replace = Callable[[str], str]

HIDDEN: Final = "{} lines, for callers who may list the pods of all namespaces"


def occupancy_without_others(occupancy: NodeOccupancy, readable: Collection[str]) -> NodeOccupancy:
    """The occupancy with the sums of each device, and the names of pods in ``readable`` alone."""
    shown = [pod for pod in occupancy.pods if pod.namespace in readable]
    devices = [
        device.model_copy(update={"held_by": [_holder(holder, readable) for holder in device.held_by]})
        for device in occupancy.devices
    ]
    others = len(occupancy.pods) - len(shown)
    return occupancy.model_copy(update={"devices": devices, "pods": shown, "other_pods": others})


def _holder(holder: Holder, readable: Collection[str]) -> Holder:
    if holder.namespace in readable:
        return holder
    # The start would tell one pod of a namespace from another, as its names would.
    hidden = {"namespace": "", "name": "", "container": "", "attempt_id": "", "started_at": ""}
    return holder.model_copy(update=hidden)


def lock_without_others(node: NodeListed, readable: Collection[str]) -> NodeListed:
    """The node; the holder of its lock is named if its namespace is in ``readable``."""
    if node.lock is None or node.lock.pod.partition("/")[0] in readable:
        return node
    return node.model_copy(update={"lock": node.lock.model_copy(update={"pod": HIDDEN_POD if node.lock.pod else ""})})


async def attempt_shown(
    access: Access, cluster: Cluster, attempt: AttemptSummarized, *, has_detail: bool = True
) -> AttemptSummarized:
    """The attempt as its caller may see it: in the scheduler's words and as the holder of a lock, a pod of another
    namespace is named only to who may read it. The same one where nothing is hidden.

    ``has_detail``: whether the answer has the holder of a lock.
    """
    hidden = hide_pods_in_attempt(attempt)
    if hidden is not attempt and not await access.allows(cluster, list_pods()):
        attempt = hidden
    is_whole = not has_detail or await _may_see_lock_holder(access, cluster, attempt)
    return attempt if is_whole else _without_lock_holder(attempt)


async def texts_shown(
    access: Access,
    cluster: Cluster,
    namespace: str | None,
    items: Sequence[Item],
    with_texts: Callable[[Item, Replace], Item],
) -> Sequence[Item]:
    """Items about pods of ``namespace``; their texts name pods of others only to who may list all pods.

    None: the caller may list them. ``with_texts`` changes each text of an item.
    """
    if namespace is None:
        return items
    hidden = [with_texts(item, partial(hide_other_pods, namespace=namespace)) for item in items]
    return items if hidden == items or await access.allows(cluster, list_pods()) else hidden


def found_with_texts(found: AttemptFound, replace: Replace) -> AttemptFound:
    return found.model_copy(update={"summary": replace(found.summary)})


def episode_with_texts(episode: Episode, replace: Replace) -> Episode:
    phases = {
        "filter": episode.filter | {"summary": replace(episode.filter["summary"])},
        "bind": episode.bind.model_copy(update={"summary": replace(episode.bind.summary)}),
    }
    return episode.model_copy(update=phases | {"changes": list(map(replace, episode.changes))})


def observation_with_texts(observed: PodObservation, replace: Replace) -> PodObservation:
    conditions = [
        condition.model_copy(update={"message": replace(condition.message)}) for condition in observed.conditions
    ]
    return observed.model_copy(update={"conditions": conditions})


async def _may_see_lock_holder(access: Access, cluster: Cluster, attempt: AttemptSummarized) -> bool:
    """Is there no pod that held a lock against the attempt, or one that the caller may read?"""
    holder = attempt.bind.lock_holder if attempt.bind else None
    if holder is None or not holder.pod:
        return True
    namespace, _, name = holder.pod.partition("/")
    return await access.allows(cluster, get_pod(namespace, name))


def _without_lock_holder(attempt: AttemptSummarized) -> AttemptSummarized:
    """The attempt, with when its node was locked and not by whom."""
    if attempt.bind is None or attempt.bind.lock_holder is None:
        return attempt
    holder = attempt.bind.lock_holder.model_copy(update={"pod": HIDDEN_POD})
    return attempt.model_copy(update={"bind": attempt.bind.model_copy(update={"lock_holder": holder})})


async def findings_shown(access: Access, cluster: Cluster, findings: Sequence[Finding]) -> Sequence[Finding]:
    """What the caller sees of findings about pods that they may read: numbers always, of the evidence what is about
    such pods.

    A line of which it is not recorded which pod it is about is for callers who may list all pods.
    """
    if await access.allows(cluster, list_pods()):
        return findings
    others = {pod for finding in findings for pod in finding.evidence_pods if pod != _pod(finding)}
    readable = await filter_readable_namespaces(access, cluster, {pod.partition("/")[0] for pod in others})
    return [_with_readable_lines(finding, readable) for finding in findings]


def _with_readable_lines(finding: Finding, readable: Collection[str]) -> Finding:
    if len(finding.evidence_pods) != len(finding.evidence):
        return finding.model_copy(update={"evidence": [HIDDEN.format(len(finding.evidence))], "evidence_pods": []})
    is_shown = [pod == _pod(finding) or pod.partition("/")[0] in readable for pod in finding.evidence_pods]
    lines = [line if shown else HIDDEN_POD for line, shown in zip(finding.evidence, is_shown, strict=True)]
    pods = [pod if shown else "" for pod, shown in zip(finding.evidence_pods, is_shown, strict=True)]
    return finding.model_copy(update={"evidence": lines, "evidence_pods": pods})


def _pod(finding: Finding) -> str:
    return f"{finding.namespace}/{finding.name}"
