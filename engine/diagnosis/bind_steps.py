"""Questions about the bind: whether the node was locked, whether the scheduler may bind, whether the pod is bound."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts, Evidence
from engine.diagnosis.log_ends import describe_nodes_at_end, find_zero_memory
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word, to_answer
from engine.diagnosis.wording import (
    describe_age,
    describe_duration,
    describe_moment,
    quote,
    to_attempt_evidence,
    to_bind_evidence,
)
from engine.hami.node_lock import CONTENTION
from engine.hami.reason_codes import ReasonCode
from schemas.events import AttemptSummarized, BindOutcome

_FORBIDDEN: Final = " is forbidden: "
"""Text in every refusal of an API server for lack of a right, and by its policies (apimachinery's ``NewForbidden``)."""
_DENIED: Final = re.compile(
    r"admission webhook \"[^\"]+\" denied the request|ValidatingAdmissionPolicy '[^']+'.* denied"
)
"""Refusals by rules of admission (apiserver's ``webhook`` and ``validating`` plugins)."""


def answer_bind_questions(facts: DiagnosisFacts, attempt: AttemptSummarized) -> Iterator[TreeStep]:
    """Answer the questions about the bind of an attempt in which a node passed."""
    bind, chosen = attempt.bind, attempt.chosen
    if counted := _find_counted_release(facts):
        yield TreeStep("NodePassed", "yes", [to_attempt_evidence(attempt)], (), [counted])
    if chosen is None:
        yield _report_unfinished(facts, attempt)
        return
    if bind is None and attempt.nominated == chosen:
        # KAI binds a pod that it has pipelined in a later session, when the pods on the node have ended.
        evidence = [to_attempt_evidence(attempt)]
        waits = FoundObstacle("WaitsForVictims", {"node": chosen}, nodes=[chosen], evidence=evidence)
        yield TreeStep("Bound", "no", evidence, (), [waits], is_end=True)
        return
    if bind is None and facts.log_ended_at:
        ended: dict[str, Word] = {
            "node": chosen,
            "decided": describe_moment(attempt.ended_at or attempt.started_at, facts),
        }
        ended["ended"] = describe_moment(facts.log_ended_at, facts)
        obstacle = FoundObstacle("LogEndsBeforeBind", ended, {}, [chosen], evidence=[to_attempt_evidence(attempt)])
        yield TreeStep("Bound", "not known", [to_attempt_evidence(attempt)], (), [obstacle])
        return
    if bind is None:
        words: dict[str, Word] = {"node": chosen, "namespace": facts.namespace, "name": facts.name}
        words["ago"] = describe_age(attempt.ended_at or attempt.started_at, facts)
        numbers = {"decided_seconds_ago": int((facts.now - attempt.started_at).total_seconds())}
        obstacle = FoundObstacle("BindPending", words, numbers, [chosen], evidence=[to_attempt_evidence(attempt)])
        yield TreeStep(
            "Bound", "not known", [to_attempt_evidence(attempt)], facts.select_unknown("observations"), [obstacle]
        )
        return
    if bind.bound:
        booked = find_zero_memory(facts, attempt)
        unknown, notes = facts.select_unknown("observations"), [booked] if booked else []
        yield TreeStep("Bound", "yes", to_bind_evidence(attempt), unknown, notes)
        return
    is_locked = bind.reason == CONTENTION
    yield _check_lock(facts, attempt, bind, is_locked=is_locked)
    # A policy's refusal begins as that of a right which is missing.
    is_denied = _DENIED.search(bind.error) is not None
    is_forbidden = _FORBIDDEN in bind.error and not is_denied
    words = {"node": bind.node, "words": quote(bind.error)}
    evidence = list(to_bind_evidence(attempt))
    refused = [FoundObstacle("SchedulerForbidden", words, nodes=[bind.node], evidence=evidence)] if is_forbidden else []
    # A lock ends the bind before the scheduler makes a call that needs rights.
    yield TreeStep("SchedulerMayBind", to_answer(None if is_locked else not is_forbidden), evidence, (), refused)
    code = "BindDenied" if is_denied else ReasonCode.BINDING_FAILED
    failed = [FoundObstacle(code, words, nodes=[bind.node], evidence=evidence)]
    failed = [] if is_locked or is_forbidden else failed
    yield TreeStep("Bound", "no", evidence, (), failed)


def _report_unfinished(facts: DiagnosisFacts, attempt: AttemptSummarized) -> TreeStep:
    """Build the step of an attempt in which a node passed, but no source reports the chosen one."""
    evidence = [to_attempt_evidence(attempt)]
    if facts.log_ended_at:
        nodes = describe_nodes_at_end(attempt)
        nodes |= {"ended": describe_moment(facts.log_ended_at, facts), "scheduler": attempt.scheduler}
        clauses = ["refused"] if "refused" in nodes else []
        numbers = {"fit_nodes": attempt.fit_nodes, "of_nodes": len(attempt.nodes)}
        ended = FoundObstacle("LogEndsAfterFilter", nodes, numbers, evidence=evidence, clauses=clauses)
        return TreeStep("Bound", "not known", evidence, (), [ended])
    words: dict[str, Word] = {"ago": describe_age(attempt.started_at, facts), "fit": attempt.fit_nodes}
    obstacle = FoundObstacle(
        "AttemptUnfinished", words, {"fit_nodes": attempt.fit_nodes}, evidence=[to_attempt_evidence(attempt)]
    )
    return TreeStep("Bound", "not known", [to_attempt_evidence(attempt)], facts.select_unknown("records"), [obstacle])


def _find_counted_release(facts: DiagnosisFacts) -> FoundObstacle | None:
    """Find that the scheduler counted memory that other pods had not given back yet."""
    finding = next((finding for finding in facts.findings if finding.record == "ReleasingMemoryCounted"), None)
    if finding is None or facts.log_ended_at is None:
        return None
    numbers = finding.numbers
    requested, free = numbers.get("memory_requested_mib"), numbers.get("memory_available_mib")
    if requested is None or free is None:
        return None
    node, _, device = finding.words.partition(" ")
    words: dict[str, Word] = {"node": node, "device": device, "asked": requested, "free": free}
    words |= {"releasing": numbers.get("memory_releasing_mib", 0), "over": max(requested - free, 0)}
    return FoundObstacle("ReleasingMemoryCounted", words, dict(numbers), [node], 1, [finding])


def _check_lock(facts: DiagnosisFacts, attempt: AttemptSummarized, bind: BindOutcome, *, is_locked: bool) -> TreeStep:
    evidence = list(to_bind_evidence(attempt))
    if not is_locked:
        return TreeStep("NodeUnlocked", "yes", evidence)
    obstacle = build_lock_obstacle(facts, bind.node, evidence, bind)
    return TreeStep("NodeUnlocked", "no", obstacle.evidence, facts.select_unknown("nodes"), [obstacle])


def build_lock_obstacle(
    facts: DiagnosisFacts, node: str, evidence: Sequence[Evidence], bind: BindOutcome | None = None
) -> FoundObstacle:
    """Build the obstacle of a node that another pod has locked, with the lock that the bind or the node names."""
    words: dict[str, Word] = {"node": node}
    sources, clauses, numbers = list(evidence), [], {}
    now = next((state for state in facts.nodes or () if state.name == node and state.lock), None)
    lock = now.lock if now and facts.is_latest else None
    holder = bind.lock_holder if bind else None
    if name := (holder.pod if holder else "") or (lock.holder if lock and bind is None else ""):
        words["holder"] = name
        clauses.append("holder")
    if bind and holder and holder.locked_at:
        held = bind.ended_at - holder.locked_at
        words["held"], numbers["held_seconds"] = describe_duration(held), max(int(held.total_seconds()), 0)
        if numbers["held_seconds"]:
            clauses.append("held")
    if now and lock:
        words["since"] = lock.since.strftime("%H:%M:%S UTC")
        clauses.append("still")
        sources.append(Evidence("node", now.source.record, now.source.time, words=f"locked since {words['since']}"))
    return FoundObstacle(CONTENTION, words, numbers, [node], 1, sources, clauses)
