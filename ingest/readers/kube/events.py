"""The scheduling events of one attempt as schedulerlog's events."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from ingest.readers.kube.node_verdicts import NodeVerdicts, PodFacts, node_verdicts
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
    NodesJudged,
    PodObserved,
    PodRef,
    Provenance,
    Refusal,
    Request,
)
from schemas.ids import attempt_id

SOURCE: Final = "kube-events"
PREEMPTED: Final = "Preempted"
"""The type of the condition that a preempted pod is observed with: Kubernetes has only an event for it."""

_CONCLUDING: Final = ("failed", "refused", "fits", "chosen", "failed by code")


def events_of(
    cluster: str, group: EventGroup, facts: PodFacts, known_by: datetime, before: AttemptConcluded | None = None
) -> Iterator[Event]:
    """An attempt, and an observation of each pod that was preempted.

    ``known_by`` is the time that goes into the attempt's id.
    ``before`` is the pod's latest attempt that chose a node: a bind without other events is the end of that attempt.
    """
    for event in group.of("preempted"):
        yield _preempted_pod(cluster, event, facts)
    bind = max(group.of("bound", "not bound"), key=lambda event: event.time, default=None)
    if bind and before and group.kinds <= {"bound", "not bound", "preempted"} and _is_bind_of(bind, before):
        yield _bind(_head_of(before), bind, bind.node or before.chosen or facts.node)
    elif first := next((event for event in group.events if event.kind != "preempted"), None):
        yield from _attempt(group, facts, _head(cluster, group, first, facts, known_by), bind)


def _attempt(
    group: EventGroup, facts: PodFacts, head: dict[str, Any], bind: SchedulingEvent | None
) -> Iterator[AttemptEvent]:
    nodes = node_verdicts(group, facts)
    judged = list(_nodes_judged(head, nodes))
    yield from judged
    if group.of(*_CONCLUDING) or judged:
        yield _concluded(head, group, nodes, facts, len(judged))
    if bind:
        yield _bind(head, bind, bind.node or nodes.picked or facts.node)


def _is_bind_of(bind: SchedulingEvent, attempt: AttemptConcluded) -> bool:
    is_same_pod = not bind.pod.uid or not attempt.pod.uid or bind.pod.uid == attempt.pod.uid
    return is_same_pod and bind.scheduler == attempt.scheduler and bind.node in ("", attempt.chosen)


def _head_of(attempt: AttemptConcluded) -> dict[str, Any]:
    return {
        name: getattr(attempt, name) for name in ("cluster", "attempt_id", "pod", "scheduler", "reader", "started_at")
    }


def _preempted_pod(cluster: str, event: SchedulingEvent, facts: PodFacts) -> PodObserved:
    condition = Condition(
        type=PREEMPTED, status="True", reason=event.reason, message=event.text, last_transition_at=event.time
    )
    return PodObserved(
        cluster=cluster, pod=_pod(event, facts), observed_at=event.time, phase="",
        node=event.node or facts.node, conditions=[condition],
    )  # fmt: skip


def _pod(event: SchedulingEvent, facts: PodFacts) -> PodRef:
    return event.pod if event.pod.uid or facts.ref is None else facts.ref


def _head(
    cluster: str, group: EventGroup, first: SchedulingEvent, facts: PodFacts, known_by: datetime
) -> dict[str, Any]:
    """The fields that all events of the attempt share."""
    pod = _pod(first, facts)
    return {
        "cluster": cluster,
        "attempt_id": attempt_id(cluster, first.scheduler, pod.uid or str(pod), known_by),
        "pod": pod,
        "scheduler": first.scheduler,
        "reader": SOURCE,
        "started_at": group.started_at,
    }


def _nodes_judged(head: dict[str, Any], nodes: NodeVerdicts) -> Iterator[NodesJudged]:
    # The parts and their ids must be the same when the events are read again.
    names = sorted(nodes.verdicts)
    start = 0
    for part, size in enumerate(_record_sizes(names, nodes.reasons)):
        yield _record(head, part, names[start : start + size], nodes)
        start += size


def _record_sizes(names: list[str], reasons: Mapping[str, tuple[str, str]]) -> Iterator[int]:
    """How many nodes go into each record, so that none exceeds half of what Kafka takes."""
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


def _record(head: dict[str, Any], part: int, names: list[str], nodes: NodeVerdicts) -> NodesJudged:
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


def _concluded(
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
        provenance=Provenance(not_reported=_not_reported(nodes, group)),
    )


def _not_reported(nodes: NodeVerdicts, group: EventGroup) -> list[str]:
    """What the events leave open. They are written for people: they count nodes rather than name them."""
    total = nodes.known_total
    names_only_chosen = nodes.picked is not None and len(nodes.verdicts) == total == 1
    gaps = {
        "which nodes were refused": not nodes.error and len(nodes.verdicts) < total,
        "the nodes that were not chosen": names_only_chosen,
        # Of the events about a choice only HAMi's counts the nodes.
        OFFERED_NODES: names_only_chosen and not group.of("fits"),
        FILTER_END: not group.of(*_CONCLUDING),
        "the end of a text that was cut": nodes.is_cut,
    }
    return [gap for gap, is_open in gaps.items() if is_open]


def _bind(head: dict[str, Any], bind: SchedulingEvent, node: str) -> BindConcluded:
    is_bound = bind.kind == "bound"
    return BindConcluded(
        **head,
        node=node,
        bound=is_bound,
        error="" if is_bound else bind.text,
        bind_started_at=bind.time,
        ended_at=bind.time,
    )
