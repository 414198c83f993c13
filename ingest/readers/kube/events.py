"""The scheduling events of one attempt as schedulerlog's events."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from engine.hami.node_lock import is_contention
from engine.hami.reason_codes import EXTENDER_REASON_CODES
from ingest.readers.kube.node_verdicts import NodeVerdicts, PodFacts, collect_verdicts
from ingest.readers.kube.open_attempts import EventGroup
from ingest.readers.kube.scheduling_events import SchedulingEvent
from schemas.codec.records import MAX_VALUE_BYTES
from schemas.events import (
    FILTER_END,
    OFFERED_NODES,
    REFUSED,
    AttemptConcluded,
    AttemptEvent,
    BindConcluded,
    Condition,
    Event,
    LockHolder,
    NodesJudged,
    PodObserved,
    PodRef,
    Provenance,
    Refusal,
    Request,
)
from schemas.ids import derive_attempt_id

if TYPE_CHECKING:
    # The judge imports every filter: readers of logs, which have no objects, do without it.
    from ingest.readers.kube.judged_records import JudgedRefusal

SOURCE: Final = "kube-events"
PREEMPTED: Final = "Preempted"
"""The type of the condition that a preempted pod is observed with: Kubernetes has only an event for it."""

_WHICH_NODES: Final = "which nodes were refused"
_REFUSED_BEFORE: Final = re.compile(r"\d+/\d+ nodes are available: ")
"""Beginning of kube-scheduler's text about a refusal, also of a pod as such."""
_CONCLUDING: Final = ("failed", "refused", "fits", "chosen", "failed by code")


def build_events(
    cluster: str,
    group: EventGroup,
    facts: PodFacts,
    known_by: datetime,
    before: AttemptConcluded | None = None,
    *,
    reader: str = SOURCE,
    judged: "JudgedRefusal | None" = None,
) -> Iterator[Event]:
    """Build the events of an attempt, and an observation of each pod that was preempted.

    ``known_by`` is the time that goes into the attempt's id, ``reader`` the source that read them.
    ``before`` is the pod's latest attempt that chose a node: a bind without other events is the end of that attempt.
    ``judged``: verdicts on the objects of the cluster, for events that only count nodes.
    """
    for event in group.select("preempted"):
        yield _observe_preempted(cluster, event, facts)
    bind = max(group.select("bound", "not bound"), key=lambda event: event.time, default=None)
    if bind and before and group.kinds <= {"bound", "not bound", "preempted"} and _is_bind_of(bind, before):
        yield _build_bind(_copy_head(before), bind, bind.node or before.chosen or facts.node)
    elif first := next((event for event in group.events if event.kind != "preempted"), None):
        head = _build_head(cluster, group, first, facts, known_by) | {"reader": reader}
        if judged and counts_nodes(nodes := collect_verdicts(group, facts)):
            yield from _build_judged_attempt(group, facts, head, nodes, judged)
        else:
            yield from _build_attempt(group, facts, head, bind)


def counts_nodes(nodes: NodeVerdicts) -> bool:
    """Tell whether events about a refusal count nodes without naming one, by rules that the cluster's objects tell.

    An extender has rules of its own. Without counts, the pod was refused before any node was looked at.
    """
    if nodes.verdicts or nodes.is_cut:
        return False
    if nodes.counts:
        return not nodes.error and EXTENDER_REASON_CODES.isdisjoint(nodes.counts)
    return bool(_REFUSED_BEFORE.match(nodes.message))


def _build_judged_attempt(
    group: EventGroup, facts: PodFacts, head: dict[str, Any], nodes: NodeVerdicts, judged: "JudgedRefusal"
) -> Iterator[AttemptEvent]:
    """Build an attempt with verdicts that were worked out on the cluster's objects."""
    yield from judged.iterate_records(head)
    conclusion = _build_conclusion(head, group, nodes, facts, len(judged.nodes))
    reconstruction = judged.to_reconstruction(nodes.counts, nodes.message, head["pod"].namespace)
    judged_nodes = len(judged.verdicts.reasons)
    is_proved = reconstruction.agreement == "equal" and judged_nodes >= nodes.known_total
    gaps = [gap for gap in _list_gaps(nodes, group) if gap != _WHICH_NODES or not is_proved]
    yield conclusion.model_copy(
        update={
            "requests": judged.add_requests(conclusion.requests),
            "judged_nodes": judged_nodes,
            "judged_devices": judged.device_rows,
            "device_records": len(judged.devices),
            "reconstruction": reconstruction,
            "provenance": Provenance(not_reported=gaps),
        }
    )


def _build_attempt(
    group: EventGroup, facts: PodFacts, head: dict[str, Any], bind: SchedulingEvent | None
) -> Iterator[AttemptEvent]:
    nodes = collect_verdicts(group, facts)
    judged = list(_build_node_records(head, nodes))
    yield from judged
    if group.select(*_CONCLUDING) or judged:
        yield _build_conclusion(head, group, nodes, facts, len(judged))
    if bind:
        yield _build_bind(head, bind, bind.node or nodes.picked or facts.node)


def _is_bind_of(bind: SchedulingEvent, attempt: AttemptConcluded) -> bool:
    is_same_pod = not bind.pod.uid or not attempt.pod.uid or bind.pod.uid == attempt.pod.uid
    return is_same_pod and bind.scheduler == attempt.scheduler and bind.node in ("", attempt.chosen)


def _copy_head(attempt: AttemptConcluded) -> dict[str, Any]:
    return {
        name: getattr(attempt, name) for name in ("cluster", "attempt_id", "pod", "scheduler", "reader", "started_at")
    }


def _observe_preempted(cluster: str, event: SchedulingEvent, facts: PodFacts) -> PodObserved:
    condition = Condition(
        type=PREEMPTED, status="True", reason=event.reason, message=event.text, last_transition_at=event.time
    )
    return PodObserved(
        cluster=cluster, pod=_choose_pod_ref(event, facts), observed_at=event.time, phase="",
        node=event.node or facts.node, conditions=[condition],
    )  # fmt: skip


def _choose_pod_ref(event: SchedulingEvent, facts: PodFacts) -> PodRef:
    return event.pod if event.pod.uid or facts.ref is None else facts.ref


def _build_head(
    cluster: str, group: EventGroup, first: SchedulingEvent, facts: PodFacts, known_by: datetime
) -> dict[str, Any]:
    """Build the fields that all events of the attempt share."""
    pod = _choose_pod_ref(first, facts)
    return {
        "cluster": cluster,
        "attempt_id": derive_attempt_id(cluster, first.scheduler, pod.uid or str(pod), known_by),
        "pod": pod,
        "scheduler": first.scheduler,
        "reader": SOURCE,
        "started_at": group.started_at,
    }


def _build_node_records(head: dict[str, Any], nodes: NodeVerdicts) -> Iterator[NodesJudged]:
    # The parts and their ids must be the same when the events are read again.
    names = sorted(nodes.verdicts)
    start = 0
    for part, size in enumerate(_divide_nodes(names, nodes.reasons)):
        yield _build_record(head, part, names[start : start + size], nodes)
        start += size


def _divide_nodes(names: list[str], reasons: Mapping[str, tuple[str, str]]) -> Iterator[int]:
    """Divide the nodes into records of at most half of what Kafka takes; yields the number of nodes in each."""
    size = used_bytes = 0
    for name in names:
        # Twice the text, for the escapes of JSON; 80 bytes for the numbers in the columns.
        cost = len(name) + sum(len(text.encode(errors="replace")) * 2 for text in reasons.get(name, ())) + 80
        if size and used_bytes + cost > MAX_VALUE_BYTES // 2:
            yield size
            size = used_bytes = 0
        size, used_bytes = size + 1, used_bytes + cost
    if size:
        yield size


def _build_record(head: dict[str, Any], part: int, names: list[str], nodes: NodeVerdicts) -> NodesJudged:
    verdicts = sorted({nodes.verdicts[name] for name in names})
    refused = {name for name in names if nodes.verdicts[name] == REFUSED}
    reasons = sorted({nodes.reasons[name] for name in refused})
    return NodesJudged(
        **head, part=part, containers=[""], verdicts=verdicts, nodes=names,
        refusals=[Refusal(bare=reason or "no reason given", cause=cause) for reason, cause in reasons],
        verdict=[verdicts.index(nodes.verdicts[name]) for name in names],
        score=[nodes.scores.get(name, 0.0) for name in names],
        refused_by=[-1] * len(names),
        refusal=[reasons.index(nodes.reasons[name]) if name in refused else -1 for name in names],
    )  # fmt: skip


def _build_conclusion(
    head: dict[str, Any], group: EventGroup, nodes: NodeVerdicts, facts: PodFacts, node_records: int
) -> AttemptConcluded:
    chosen = nodes.picked
    ends = [event.time for event in group.events if event.kind not in ("bound", "not bound", "preempted")]
    return AttemptConcluded(
        **head,
        ended_at=max([*ends, group.started_at]),
        requests=list(facts.requests) or [Request(container="")],
        description=facts.description,
        offered_nodes=nodes.known_total,
        judged_nodes=len(nodes.verdicts),
        judged_devices=0,
        device_records=0,
        node_records=node_records,
        chosen=chosen,
        error="" if chosen else nodes.error,
        refused_nodes={} if chosen else nodes.counts,
        nominated=nodes.nominated,
        scheduler_message=nodes.message,
        provenance=Provenance(not_reported=_list_gaps(nodes, group)),
    )


def _list_gaps(nodes: NodeVerdicts, group: EventGroup) -> list[str]:
    """List what the events do not report: they are written for people, and count nodes rather than name them."""
    total = nodes.known_total
    names_only_chosen = nodes.picked is not None and len(nodes.verdicts) == total == 1
    gaps = {
        _WHICH_NODES: not nodes.error and len(nodes.verdicts) < total,
        "the nodes that were not chosen": names_only_chosen,
        # Of the events about a choice only HAMi's counts the nodes.
        OFFERED_NODES: names_only_chosen and not group.select("fits"),
        FILTER_END: not group.select(*_CONCLUDING),
        "the end of a text that was cut": nodes.is_cut,
    }
    return [gap for gap, is_open in gaps.items() if is_open]


def _build_bind(head: dict[str, Any], bind: SchedulingEvent, node: str) -> BindConcluded:
    is_bound = bind.kind == "bound"
    is_locked = not is_bound and is_contention(bind.text)
    return BindConcluded(
        **head,
        node=node,
        bound=is_bound,
        error="" if is_bound else bind.text,
        # An event names the node and not the holder.
        lock_holder=LockHolder() if is_locked else None,
        bind_started_at=bind.time,
        ended_at=bind.time,
    )
