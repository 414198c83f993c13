"""The questions about the bind: was the node locked, may the scheduler bind, is the pod bound."""

from collections.abc import Iterator
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts, Evidence
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word, yes_or_no
from engine.diagnosis.wording import of_attempt, of_bind, quoted, since, span
from engine.hami.node_lock import CONTENTION
from engine.hami.reason_codes import ReasonCode
from schemas.events import AttemptSummarized, BindOutcome

_FORBIDDEN: Final = " is forbidden: "
"""In every refusal of an API server for want of a right (apimachinery's ``errors.NewForbidden``)."""


def bind_steps(facts: DiagnosisFacts, attempt: AttemptSummarized) -> Iterator[TreeStep]:
    """The steps about the bind of an attempt in which a node passed."""
    bind, chosen = attempt.bind, attempt.chosen
    if chosen is None:
        yield _unfinished(facts, attempt)
        return
    if bind is None:
        words: dict[str, Word] = {"node": chosen, "namespace": facts.namespace, "name": facts.name}
        words["ago"] = since(attempt.ended_at or attempt.started_at, facts)
        numbers = {"decided_seconds_ago": int((facts.now - attempt.started_at).total_seconds())}
        found = FoundObstacle("BindPending", words, numbers, [chosen], evidence=[of_attempt(attempt)])
        yield TreeStep("Bound", "not known", [of_attempt(attempt)], facts.unknown_of("observations"), [found])
        return
    if bind.bound:
        yield TreeStep("Bound", "yes", of_bind(attempt), facts.unknown_of("observations"))
        return
    is_locked = bind.reason == CONTENTION
    yield _unlocked(facts, attempt, bind, is_locked=is_locked)
    is_forbidden = _FORBIDDEN in bind.error
    words = {"node": bind.node, "words": quoted(bind.error)}
    evidence = list(of_bind(attempt))
    refused = [FoundObstacle("SchedulerForbidden", words, nodes=[bind.node], evidence=evidence)] if is_forbidden else []
    # A lock ends the bind before the scheduler writes what it needs rights for.
    yield TreeStep("SchedulerMayBind", yes_or_no(None if is_locked else not is_forbidden), evidence, (), refused)
    failed = [] if is_locked or is_forbidden else [
        FoundObstacle(ReasonCode.BINDING_FAILED, words, nodes=[bind.node], evidence=evidence)
    ]  # fmt: skip
    yield TreeStep("Bound", "no", evidence, (), failed)


def _unfinished(facts: DiagnosisFacts, attempt: AttemptSummarized) -> TreeStep:
    """A node passed, and no source says which one was chosen."""
    words: dict[str, Word] = {"ago": since(attempt.started_at, facts), "fit": attempt.fit_nodes}
    found = FoundObstacle("AttemptUnfinished", words, {"fit_nodes": attempt.fit_nodes}, evidence=[of_attempt(attempt)])
    return TreeStep("Bound", "not known", [of_attempt(attempt)], facts.unknown_of("records"), [found])


def _unlocked(facts: DiagnosisFacts, attempt: AttemptSummarized, bind: BindOutcome, *, is_locked: bool) -> TreeStep:
    evidence = list(of_bind(attempt))
    if not is_locked:
        return TreeStep("NodeUnlocked", "yes", evidence)
    words: dict[str, Word] = {"node": bind.node}
    clauses, numbers, holder = [], {}, bind.lock_holder
    if holder and holder.pod:
        words["holder"] = holder.pod
        clauses.append("holder")
    if holder and holder.locked_at:
        held = bind.ended_at - holder.locked_at
        words["held"], numbers["held_seconds"] = span(held), max(int(held.total_seconds()), 0)
        if numbers["held_seconds"]:
            clauses.append("held")
    now = next((state for state in facts.nodes or () if state.name == bind.node and state.lock), None)
    if now and now.lock and facts.is_latest:
        words["since"] = now.lock.since.strftime("%H:%M:%S UTC")
        clauses.append("still")
        evidence.append(Evidence("node", now.source.record, now.source.at, words=f"locked since {words['since']}"))
    found = FoundObstacle(CONTENTION, words, numbers, [bind.node], 1, evidence, clauses)
    return TreeStep("NodeUnlocked", "no", evidence, facts.unknown_of("nodes"), [found])
