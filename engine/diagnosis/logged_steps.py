"""Obstacles that the facts of a scheduler's log explain: what its lines say before and after a verdict.

A verdict names what a node lacked; the lines around it say why it lacked it. An obstacle is replaced where a fact
explains all of its nodes, and gets a clause where a fact adds names and numbers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts, Evidence
from engine.diagnosis.logged_facts import LoggedFact, LoggedKind, select_facts
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.refused_nodes import HAMI_LOG, NODE_LINES_LEVEL
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import (
    describe_moment,
    enumerate_names,
    quote,
    shorten_list,
    to_attempt_evidence,
)
from engine.hami.reason_codes import ReasonCode
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import AttemptSummarized

MAX_HOLDERS: Final = 3
_HELD: Final = frozenset(
    (
        ReasonCode.CARD_INSUFFICIENT_MEMORY, ReasonCode.CARD_INSUFFICIENT_CORE, ReasonCode.CARD_TIME_SLICING_EXHAUSTED,
        ReasonCode.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT, ReasonCode.CARD_COMPUTE_UNITS_EXHAUSTED,
    )
)  # fmt: skip
"""Reasons for which it matters who holds the devices."""
_MODE_CODES: Final[Mapping[LoggedKind, str]] = {
    "node reserved": "NodeReservedForHamiCore", "mode not offered": "HamiCoreNotOffered"
}  # fmt: skip


def explain_by_log(
    obstacles: Iterable[FoundObstacle], facts: DiagnosisFacts, attempt: AttemptSummarized
) -> list[FoundObstacle]:
    """Explain the obstacles of an attempt by the facts of its log."""
    if facts.log_ended_at is None:
        return list(obstacles)
    return [refined for obstacle in obstacles for refined in _explain_by_facts(obstacle, facts, attempt)]


def _explain_by_facts(
    obstacle: FoundObstacle, facts: DiagnosisFacts, attempt: AttemptSummarized
) -> list[FoundObstacle]:
    code = obstacle.code
    if code in (ReasonCode.NODE_UNREGISTERED, ReasonCode.FILTERING_FAILED):
        return _explain_unregistered(obstacle, facts, attempt)
    if code == ReasonCode.MODE_NOT_FIT and (reserved := _find_mode_obstacle(obstacle, facts)):
        return [reserved]
    if code in _HELD and (holders := _list_holders(obstacle, facts)):
        return [_add_holders(obstacle, holders, facts)]
    if code == ReasonCode.RESOURCE_QUOTA_NOT_FIT and (fact := _find_quota(facts)):
        amounts: dict[str, Word] = {f"quota_{name}": number for name, number in fact.numbers.items()}
        numbers = {**obstacle.numbers, **{f"quota_{name}": number for name, number in fact.numbers.items()}}
        clauses = [*obstacle.clauses, "logged_memory" if fact.words == "memory" else "logged_cores"]
        return [obstacle._replace(words={**obstacle.words, **amounts}, numbers=numbers, clauses=clauses)]
    return [obstacle]


def to_log_evidence(fact: LoggedFact) -> Evidence:
    words = " ".join(filter(None, (fact.kind, fact.node, fact.pod, fact.words)))
    return Evidence("log", f"log {fact.time:%H:%M:%S.%f}", fact.time, words=words)


@dataclass(frozen=True, slots=True)
class _Drop:
    """Devices that a node had lost when the pod was tried."""

    fact: LoggedFact
    added: LoggedFact | None
    """The line that added them again, after the attempt."""


def _find_drops(facts: DiagnosisFacts, moment: datetime) -> dict[str, _Drop]:
    """Find the nodes that the log says to have lost their devices before ``moment`` and not to have had them then."""
    drops: dict[str, _Drop] = {}
    vendors = _list_vendors(facts)
    for fact in select_facts(facts.logged, "devices dropped", "devices added"):
        # HAMi drops each vendor that a node does not have: what counts is the one that the pod asks for.
        if fact.vendor and vendors and fact.vendor not in vendors:
            continue
        drop = drops.get(fact.node)
        if fact.time <= moment:
            if fact.kind == "devices added":
                drops.pop(fact.node, None)
            # The line that says why comes before the one that says that they were removed.
            elif drop is None or not drop.fact.words or fact.words:
                drops[fact.node] = _Drop(fact, None)
        elif drop and fact.kind == "devices added" and drop.added is None:
            drops[fact.node] = _Drop(drop.fact, fact)
    return drops


def _list_vendors(facts: DiagnosisFacts) -> set[str]:
    """List the vendors whose devices the pod asks for; empty if its requests are not known."""
    attempted = facts.attempt.requests if facts.attempt else []
    requests = attempted or (facts.pod.requests if facts.pod else None) or []
    return {request.vendor for request in requests if request.count}


def _explain_unregistered(
    obstacle: FoundObstacle, facts: DiagnosisFacts, attempt: AttemptSummarized
) -> list[FoundObstacle]:
    """Explain nodes without devices, or an attempt without any line about a node."""
    named = list(obstacle.nodes)
    drops = _find_drops(facts, attempt.ended_at or attempt.started_at)
    dropped = {node: drop for node, drop in drops.items() if not named or node in named}
    explained = [_build_dropped(dropped, facts, attempt)] if dropped else []
    skipped = _find_skipped([node for node in named if node not in dropped], facts, attempt.started_at)
    if skipped:
        explained.append(_build_skipped(skipped, facts))
    if explained and len(dropped) + len(skipped) >= len(named):
        return explained
    if obstacle.code == ReasonCode.FILTERING_FAILED and not explained and _prints_nodes(attempt):
        return [_build_none_registered(attempt, facts)]
    return [*explained, obstacle]


def _build_dropped(drops: Mapping[str, _Drop], facts: DiagnosisFacts, attempt: AttemptSummarized) -> FoundObstacle:
    nodes = sorted(drops)
    first = min(drops.values(), key=lambda drop: drop.fact.time)
    vendors = sorted({drop.fact.vendor for drop in drops.values() if drop.fact.vendor})
    cause = write_phrase(
        "dropped_zero" if any(drop.fact.words == "zero devices" for drop in drops.values()) else "dropped_unhealthy"
    )
    words: dict[str, Word] = {
        "scheduler": attempt.scheduler, "nodes": shorten_list(nodes), "count": len(nodes),
        "vendors": ", ".join(vendors) or "GPU", "dropped": describe_moment(first.fact.time, facts), "why": cause,
        "tried": describe_moment(attempt.started_at, facts),
    }  # fmt: skip
    added = [drop.added for drop in drops.values() if drop.added]
    clauses = ["tried"]
    if added:
        words["added"] = describe_moment(min(fact.time for fact in added), facts)
        clauses.append("added")
    evidence = [to_attempt_evidence(attempt), *(to_log_evidence(drop.fact) for drop in drops.values())]
    evidence += [to_log_evidence(fact) for fact in added]
    numbers = {"nodes": len(nodes)}
    return FoundObstacle("DevicesDropped", words, numbers, nodes, len(nodes), evidence, clauses)


def _find_skipped(nodes: Sequence[str], facts: DiagnosisFacts, moment: datetime) -> list[LoggedFact]:
    """Find the latest line of each node that says that the scheduler had no reason to read its registration."""
    latest: dict[str, LoggedFact] = {}
    for fact in select_facts(facts.logged, "registration skipped"):
        if fact.time <= moment and fact.node in nodes:
            latest[fact.node] = fact
    return list(latest.values())


def _build_skipped(skipped: Sequence[LoggedFact], facts: DiagnosisFacts) -> FoundObstacle:
    nodes = [fact.node for fact in skipped]
    words: dict[str, Word] = {"nodes": shorten_list(nodes), "count": len(nodes), "node": nodes[0]}
    words["checked"] = describe_moment(skipped[-1].time, facts)
    evidence = [to_log_evidence(fact) for fact in skipped]
    return FoundObstacle("HandshakeKeepsOut", words, {"nodes": len(nodes)}, nodes, len(nodes), evidence)


def _prints_nodes(attempt: AttemptSummarized) -> bool:
    """Tell whether the log is at a level at which HAMi writes a line for every node that it judges."""
    return any(
        report.source == HAMI_LOG and max(report.levels, default=0) >= NODE_LINES_LEVEL for report in attempt.reports
    )


def _build_none_registered(attempt: AttemptSummarized, facts: DiagnosisFacts) -> FoundObstacle:
    offered = attempt.offered_nodes
    words: dict[str, Word] = {"scheduler": attempt.scheduler, "count": offered}
    words["tried"] = describe_moment(attempt.started_at, facts)
    clauses = ["offered"] if offered else []
    evidence = [to_attempt_evidence(attempt)]
    return FoundObstacle("NoneRegistered", words, {"nodes": offered}, (), offered, evidence, clauses)


def _find_mode_obstacle(obstacle: FoundObstacle, facts: DiagnosisFacts) -> FoundObstacle | None:
    """Find the line that says which mode was missing, on the nodes or for the pod."""
    for fact in reversed(facts.logged):
        is_about = fact.node in obstacle.nodes if fact.node else fact.is_about(facts.namespace, facts.name)
        if is_about and (code := _MODE_CODES.get(fact.kind)):
            return obstacle._replace(
                code=code,
                words={**obstacle.words, "words": quote(fact.words), "node": fact.node or obstacle.nodes[0]},
                evidence=[*obstacle.evidence, to_log_evidence(fact)],
                clauses=[],
            )
    return None


@dataclass(frozen=True, slots=True)
class _Holder:
    """A pod that holds devices of refused nodes in the scheduler's state."""

    pod: str
    since: datetime
    nodes: tuple[str, ...]
    devices: int
    memory_mib: int


def _list_holders(obstacle: FoundObstacle, facts: DiagnosisFacts) -> list[_Holder]:
    """List the pods that hold devices of the obstacle's nodes, and that no line says to be deleted."""
    nodes = frozenset(obstacle.nodes)
    held: dict[str, dict[str, LoggedFact]] = {}
    for fact in select_facts(facts.logged, "device held", "devices released"):
        if fact.kind == "devices released":
            held.pop(fact.pod, None)
        elif fact.node in nodes and fact.device and not fact.is_about(facts.namespace, facts.name):
            held.setdefault(fact.pod, {}).setdefault(fact.device, fact)
    holders = [_build_holder(pod, list(devices.values())) for pod, devices in held.items()]
    return sorted(holders, key=lambda holder: (-holder.memory_mib, holder.pod))


def _build_holder(pod: str, held: Sequence[LoggedFact]) -> _Holder:
    memory = sum(fact.numbers.get("memory_mib", 0) for fact in held)
    nodes = tuple(sorted({fact.node for fact in held}))
    return _Holder(pod, min(fact.time for fact in held), nodes, len(held), memory)


def _add_holders(obstacle: FoundObstacle, holders: Sequence[_Holder], facts: DiagnosisFacts) -> FoundObstacle:
    listed = [_describe_holder(holder, facts) for holder in holders[:MAX_HOLDERS]]
    others = len(holders) - len(listed)
    more = f" (+{others})" if others else ""
    english, chinese = "; ".join(text.en for text in listed), "；".join(text.zh for text in listed)
    words: dict[str, Word] = {"holders": InBothLanguages(en=english + more, zh=chinese + more)}
    numbers = {**obstacle.numbers, "held_devices": sum(holder.devices for holder in holders)}
    numbers["held_memory_mib"] = sum(holder.memory_mib for holder in holders)
    words = {**obstacle.words, **words}
    return obstacle._replace(words=words, numbers=numbers, clauses=[*obstacle.clauses, "holders"])


def _describe_holder(holder: _Holder, facts: DiagnosisFacts) -> InBothLanguages:
    words: dict[str, Word] = {"pod": holder.pod, "n": holder.devices, "memory": holder.memory_mib}
    words |= {"nodes": enumerate_names(holder.nodes, "and"), "since": describe_moment(holder.since, facts)}
    return write_phrase("logged_holder", **words)


def _find_quota(facts: DiagnosisFacts) -> LoggedFact | None:
    quotas = [
        fact for fact in select_facts(facts.logged, "quota exceeded") if fact.is_about(facts.namespace, facts.name)
    ]
    return quotas[-1] if quotas else None


def find_pod_facts(facts: DiagnosisFacts, *kinds: LoggedKind) -> list[LoggedFact]:
    """Find the facts of these kinds about the pod itself."""
    return [fact for fact in select_facts(facts.logged, *kinds) if fact.is_about(facts.namespace, facts.name)]


def find_admission_obstacle(facts: DiagnosisFacts) -> FoundObstacle | None:
    """Find the denial of a pod that no scheduler has seen since."""
    denials = find_pod_facts(facts, "admission denied")
    attempt = facts.attempt
    if not denials or attempt is None or attempt.nodes or attempt.ended_at or attempt.scheduler:
        return None
    fact = denials[-1]
    words: dict[str, Word] = {"pod": fact.pod, "words": quote(fact.words), "denied": describe_moment(fact.time, facts)}
    return FoundObstacle("DeniedByWebhook", words, evidence=[to_log_evidence(fact)])


def find_unread_request(facts: DiagnosisFacts) -> FoundObstacle | None:
    """Find that the scheduler read no request for devices in the pod, and let it pass to every node."""
    passed = find_pod_facts(facts, "no request read")
    attempt = facts.attempt
    if not passed or attempt is None or attempt.nodes or attempt.error:
        return None
    placed = attempt.bind.node if attempt.bind and attempt.bind.bound else ""
    words: dict[str, Word] = {"scheduler": attempt.scheduler, "node": placed}
    words["where"] = write_phrase("placed_without" if placed else "passed_without", node=placed)
    clauses = []
    if rejected := find_pod_facts(facts, "request rejected"):
        words["words"] = quote(rejected[-1].words)
        clauses.append("rejected")
    evidence = [to_log_evidence(fact) for fact in (*rejected, passed[-1])]
    return FoundObstacle("NoRequestRead", words, {}, [placed] if placed else [], 0, evidence, clauses)
