"""One attempt's happenings as events of ours."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from ingest.kube.failure_messages import Refused, refused
from ingest.kube.grouping import Group
from ingest.kube.scheduling_events import Happening
from schemas.codec.records import MAX_VALUE_BYTES
from schemas.events import (
    FITS,
    PICKED,
    REFUSED,
    AttemptConcluded,
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

PUSHED_OUT: Final = "Preempted"
"""The condition that tells of a pod which had to make room; Kubernetes has only an event for it."""
_CUT_MARK: Final = " ..."


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What the pod itself says, as far as it was seen."""

    ref: PodRef | None = None
    requests: tuple[Request, ...] = ()
    nominated: str = ""
    node: str = ""
    message: str = ""
    """Of the condition PodScheduled, which is not cut as events are."""
    phase: str = ""


@dataclass(slots=True)
class _Nodes:
    """The nodes that the happenings name."""

    verdicts: dict[str, str] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    reasons: dict[str, tuple[str, str]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    """Nodes that are counted and not named, by reason."""
    total: int = 0
    error: str = ""
    nominated: str = ""
    said: str = ""
    is_cut: bool = False


def events_of(
    group: Group, facts: PodFacts, known_by: datetime, before: AttemptConcluded | None = None
) -> Iterator[Event]:
    """The attempt that a group tells. A group of nothing but a pod that made room tells of that pod alone.

    ``known_by`` is the time that goes into the attempt's id.
    ``before`` is the pod's latest attempt that chose a node: a bind that comes by itself is the end of it.
    """
    for happening in group.of("pushed out"):
        yield _pushed_out(happening, facts)
    ends = [each for each in group.happenings if each.kind != "pushed out"]
    if not ends:
        return
    nodes = _nodes(group, facts)
    bind = max(group.of("bound", "not bound"), key=lambda each: each.time, default=None)
    if bind and before and group.kinds <= {"bound", "not bound", "pushed out"} and _is_of(bind, before):
        yield _bind(_head_of(before), bind, bind.node or before.chosen or facts.node)
        return
    head = _head(group, ends[0], facts, known_by)
    judged = list(_judged(head, nodes))
    yield from judged
    if group.of("failed", "refused", "fits", "chosen", "failed by code") or judged:
        yield _concluded(head, group, nodes, facts, len(judged))
    if bind:
        picked = next((name for name, verdict in nodes.verdicts.items() if verdict == PICKED), "")
        yield _bind(head, bind, bind.node or picked or facts.node)


def _is_of(bind: Happening, attempt: AttemptConcluded) -> bool:
    same_pod = not bind.pod.uid or not attempt.pod.uid or bind.pod.uid == attempt.pod.uid
    return same_pod and bind.scheduler == attempt.scheduler and bind.node in ("", attempt.chosen)


def _head_of(attempt: AttemptConcluded) -> dict[str, Any]:
    return {name: getattr(attempt, name) for name in ("attempt_id", "pod", "scheduler", "started_at")}


def _pushed_out(happening: Happening, facts: PodFacts) -> PodObserved:
    condition = Condition(
        type=PUSHED_OUT,
        status="True",
        reason=happening.reason,
        message=happening.text,
        last_transition_at=happening.time,
    )
    return PodObserved(
        pod=_pod(happening, facts), observed_at=happening.time, phase="", node=happening.node or facts.node,
        conditions=[condition],
    )  # fmt: skip


def _pod(happening: Happening, facts: PodFacts) -> PodRef:
    return happening.pod if happening.pod.uid or facts.ref is None else facts.ref


def _head(group: Group, first: Happening, facts: PodFacts, known_by: datetime) -> dict[str, Any]:
    pod = _pod(first, facts)
    return {
        "attempt_id": attempt_id(first.scheduler, pod.uid or str(pod), known_by),
        "pod": pod,
        "scheduler": first.scheduler,
        "started_at": group.started_at,
    }


def _nodes(group: Group, facts: PodFacts) -> _Nodes:
    found = _Nodes()
    for happening in group.happenings:
        _READ.get(happening.kind, _nothing)(found, happening, facts)
    return found


def _nothing(_found: _Nodes, _happening: Happening, _facts: PodFacts) -> None:
    """Binds are told by themselves."""


def _by_code(found: _Nodes, happening: Happening, _facts: PodFacts) -> None:
    for name in happening.nodes:
        found.verdicts[name] = REFUSED
        if (known := found.reasons.get(name)) is None:
            found.reasons[name] = (happening.code, "")
        else:
            found.reasons[name] = (known[0], f"{known[1]}, {happening.code}" if known[1] else f"also {happening.code}")
            _count(found, happening.code, 1)
    _count(found, happening.code, happening.count - len(happening.nodes))


def _count(found: _Nodes, reason: str, nodes: int) -> None:
    if nodes > 0:
        found.counts[reason] = found.counts.get(reason, 0) + nodes


def _failed(found: _Nodes, happening: Happening, _facts: PodFacts) -> None:
    found.total = max(found.total, happening.count)
    found.said = found.said or happening.text
    if not happening.count:
        found.error = happening.text


def _fits(found: _Nodes, happening: Happening, _facts: PodFacts) -> None:
    for name, score in happening.scores.items():
        found.verdicts[name], found.scores[name] = FITS, score
    found.verdicts[happening.node] = PICKED
    found.total = max(found.total, happening.refused_count + max(happening.count, len(found.verdicts)))
    found.said = happening.text


def _chosen(found: _Nodes, happening: Happening, _facts: PodFacts) -> None:
    found.verdicts[happening.node] = PICKED
    found.total = max(found.total, len(found.verdicts))
    found.nominated = happening.nominated
    found.said = found.said or happening.text


def _bound_by(found: _Nodes, happening: Happening, facts: PodFacts) -> None:
    """kube-scheduler says no more than where a pod was bound."""
    if happening.node and PICKED not in found.verdicts.values():
        _chosen(found, happening, facts)


def _refused(found: _Nodes, happening: Happening, facts: PodFacts) -> None:
    said = _uncut(refused(happening.text), facts)
    found.said, found.is_cut = said.text, said.is_cut
    found.total = max(found.total, said.total)
    found.nominated = said.nominated or facts.nominated
    # Where HAMi named the nodes, kube-scheduler's counts are of the same ones.
    if found.reasons or found.counts:
        return
    found.error = said.error or found.error
    found.counts.update(said.counts)
    for name, reason in said.nodes.items():
        found.verdicts[name], found.reasons[name] = REFUSED, reason


def _uncut(said: Refused, facts: PodFacts) -> Refused:
    """The pod's condition has the same text, whole."""
    start = said.text.removesuffix(_CUT_MARK)
    is_same = said.text.endswith(_CUT_MARK) and facts.message.startswith(start)
    return refused(facts.message) if is_same else said


_READ: Final = {
    "failed by code": _by_code, "failed": _failed, "fits": _fits, "chosen": _chosen, "refused": _refused,
    "bound": _bound_by,
}  # fmt: skip


def _judged(head: dict[str, Any], nodes: _Nodes) -> Iterator[NodesJudged]:
    """In records of so many nodes that each stays small: names and reasons are at most a few hundred bytes."""
    names = sorted(nodes.verdicts)
    start = 0
    for part, size in enumerate(_sizes(names, nodes.reasons)):
        yield _record(head, part, names[start : start + size], start, nodes)
        start += size


def _sizes(names: list[str], reasons: Mapping[str, tuple[str, str]]) -> Iterator[int]:
    room, taken = MAX_VALUE_BYTES // 2, 0
    size = 0
    for name in names:
        cost = len(name) + sum(len(text.encode(errors="replace")) * 2 for text in reasons.get(name, ())) + 80
        if size and taken + cost > room:
            yield size
            size = taken = 0
        size, taken = size + 1, taken + cost
    if size:
        yield size


def _record(head: dict[str, Any], part: int, names: list[str], start: int, nodes: _Nodes) -> NodesJudged:
    verdicts = sorted({nodes.verdicts[name] for name in names})
    reasons = sorted({nodes.reasons[name] for name in names if nodes.verdicts[name] == REFUSED})
    table = [Refusal(bare=reason or "no reason said", cause=cause) for reason, cause in reasons]
    is_refused = [nodes.verdicts[name] == REFUSED for name in names]
    return NodesJudged(
        **head, part=part, containers=[""], verdicts=verdicts, refusals=table, nodes=names,
        node_index=list(range(start, start + len(names))),
        verdict=[verdicts.index(nodes.verdicts[name]) for name in names],
        score=[nodes.scores.get(name, 0.0) for name in names],
        refused_by=[-1] * len(names),
        refusal=[reasons.index(nodes.reasons[name]) if no else -1 for name, no in zip(names, is_refused, strict=True)],
    )  # fmt: skip


def _concluded(
    head: dict[str, Any], group: Group, nodes: _Nodes, facts: PodFacts, node_records: int
) -> AttemptConcluded:
    chosen = next((name for name, verdict in nodes.verdicts.items() if verdict == PICKED), None)
    ends = [each.time for each in group.happenings if each.kind not in ("bound", "not bound", "pushed out")]
    return AttemptConcluded(
        **head,
        ended_at=max([*ends, group.started_at]),
        requests=list(facts.requests) or [Request(container="")],
        offered_nodes=max(nodes.total, len(nodes.verdicts)),
        judged_nodes=len(nodes.verdicts),
        judged_devices=0,
        device_records=0,
        node_records=node_records,
        chosen=chosen,
        error="" if chosen else nodes.error,
        refused_nodes={} if chosen else nodes.counts,
        nominated=nodes.nominated,
        scheduler_message=nodes.said,
        provenance=Provenance(source="kube-events", not_reported=_not_said(nodes, chosen)),
    )


def _not_said(nodes: _Nodes, chosen: str | None) -> list[str]:
    """Events are made for people: they count where they could name."""
    total = max(nodes.total, len(nodes.verdicts))
    gaps = {
        "which nodes were refused": not nodes.error and len(nodes.verdicts) < total,
        "the nodes that were not chosen": chosen is not None and len(nodes.verdicts) == total == 1,
        "the end of a text that was cut": nodes.is_cut,
    }
    return [gap for gap, is_open in gaps.items() if is_open]


def _bind(head: dict[str, Any], bind: Happening, node: str) -> BindConcluded:
    is_bound = bind.kind == "bound"
    return BindConcluded(
        **head,
        node=node,
        bound=is_bound,
        error="" if is_bound else bind.text,
        bind_started_at=bind.time,
        ended_at=bind.time,
    )
