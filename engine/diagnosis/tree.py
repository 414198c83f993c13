"""Walks the decision tree: asks its questions in order, and puts the answer together."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, Literal

from engine.diagnosis import texts
from engine.diagnosis.attempt_steps import attempt_steps
from engine.diagnosis.bind_steps import bind_steps
from engine.diagnosis.cluster_steps import claims_ready, closed_nodes, devices_registered, nodes_open, quota_left
from engine.diagnosis.facts import DiagnosisFacts, Evidence, Unknown
from engine.diagnosis.obstacle import WORDS_ALONE, by_importance
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word
from engine.diagnosis.pod_steps import ENDED, pod_steps
from engine.diagnosis.scheduler_steps import refused_condition, scheduler_steps
from engine.diagnosis.wording import of_condition, quoted, scheduler_of, since
from schemas.answers.diagnosis import Diagnosis, DiagnosisEvidence, DiagnosisStep, InBothLanguages, NotKnown, Obstacle
from schemas.codec.records import format_rfc3339
from schemas.events import AttemptSummarized

State = Literal["placed", "binding", "refused", "not judged", "gated", "ended", "missing", "not known"]
MAX_NODES: Final = 20


def diagnose(facts: DiagnosisFacts, attempt_path: str | None = None) -> Diagnosis:
    """The whole answer. ``attempt_path``: where the API serves the attempt among the facts."""
    steps = list(_walked(_questions(facts)))
    found = by_importance(obstacle for step in steps for obstacle in step.obstacles)
    state = state_of(facts, steps)
    obstacles = [_shown(obstacle, facts) for obstacle in found]
    return Diagnosis(
        cluster=facts.cluster,
        namespace=facts.namespace,
        name=facts.name,
        state=state,
        at=format_rfc3339(facts.now),
        attempt=attempt_path if facts.attempt else None,
        sentence=obstacles[0].sentence if obstacles else _sentence(facts, state),
        obstacle=obstacles[0] if obstacles else None,
        other_obstacles=obstacles[1:],
        steps=[_step(step) for step in steps],
        not_known=_not_known(facts.unknown),
    )


def diagnose_simulated(attempt: AttemptSummarized, now: datetime, excluded_by: Sequence[str]) -> Diagnosis:
    """The answer about an attempt that was not made: what it chose, nobody binds."""
    facts = DiagnosisFacts(attempt.cluster, attempt.pod.namespace, attempt.pod.name, now, attempt, is_latest=False)
    found = diagnose(facts)
    if not attempt.chosen:
        return found.model_copy(update={"excluded_by": list(excluded_by) or None})
    # The last question is about the bind.
    answer = {"sentence": texts.phrase("would_fit", node=attempt.chosen, fit=attempt.fit_nodes or 0)}
    return found.model_copy(update=answer | {"obstacle": None, "other_obstacles": [], "steps": found.steps[:-1]})


def main_obstacle(facts: DiagnosisFacts) -> FoundObstacle | None:
    """The obstacle that the answer states first."""
    found = by_importance(obstacle for step in _walked(_questions(facts)) for obstacle in step.obstacles)
    return found[0] if found else None


def _walked(questions: Iterator[TreeStep]) -> Iterator[TreeStep]:
    for step in questions:
        yield step
        if step.is_end:
            return


def _questions(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    attempt = facts.attempt
    # An attempt that others followed is explained by its records alone.
    if facts.is_latest:
        yield from pod_steps(facts)
        yield from scheduler_steps(facts)
    if attempt is None:
        yield from _unjudged(facts)
        return
    if facts.is_latest and facts.claims:
        yield from claims_ready(facts)
    closed = closed_nodes(facts, attempt.nodes)
    yield from attempt_steps(facts, attempt, closed)
    if attempt.chosen is not None or attempt.fit_nodes:
        yield from bind_steps(facts, attempt)
    elif closed:
        yield nodes_open(facts, closed, is_judged=True)


def _unjudged(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    yield from claims_ready(facts)
    yield quota_left(facts)
    yield nodes_open(facts, closed_nodes(facts))
    if step := devices_registered(facts):
        yield step
    condition = refused_condition(facts.pod)
    if facts.pod and condition:
        evidence = [of_condition(facts.pod, condition)]
        words: dict[str, Word] = {"scheduler": facts.pod.scheduler, "words": quoted(condition.message)}
        found = FoundObstacle(WORDS_ALONE, words, evidence=evidence)
        yield TreeStep("NodePassed", "no", evidence, facts.unknown_of("attempt"), [found])


def state_of(facts: DiagnosisFacts, steps: Sequence[TreeStep]) -> State:
    pod, attempt = facts.pod if facts.is_latest else None, facts.attempt
    if pod and pod.is_gone:
        return "missing"
    if any(step.question == "StillWaits" and step.is_end and not _is_bound(facts) for step in steps):
        return "ended"
    if (pod and pod.node) or _is_bound(facts):
        return "placed"
    if any(step.question == "FreeOfGates" and step.answer == "no" for step in steps):
        return "gated"
    if attempt:
        has_passed = attempt.chosen is not None or attempt.fit_nodes > 0
        is_open = attempt.bind is None and has_passed and not attempt.error
        return "binding" if is_open else "refused"
    if pod is None:
        return "not known"
    return "refused" if refused_condition(pod) else "not judged"


def _is_bound(facts: DiagnosisFacts) -> bool:
    has_ended = facts.is_latest and facts.pod and (facts.pod.phase in ENDED or facts.pod.is_being_deleted)
    return bool(facts.attempt and facts.attempt.bind and facts.attempt.bind.bound) and not has_ended


def _sentence(facts: DiagnosisFacts, state: State) -> InBothLanguages:
    attempt = facts.attempt
    node = (facts.pod.node if facts.pod else "") or (attempt.chosen if attempt else "") or ""
    words: dict[str, Word] = {"node": node, "scheduler": scheduler_of(facts)}
    words["ago"] = since(attempt.started_at, facts) if attempt else ""
    return texts.state_sentence(state, words)


def _shown(found: FoundObstacle, facts: DiagnosisFacts) -> Obstacle:
    return Obstacle(
        code=found.code,
        sentence=texts.sentence(found),
        likely_cause=texts.likely_cause(found),
        remedy=texts.remedy(found, facts.namespace, facts.name),
        who_acts=texts.who_acts(found),
        numbers=dict(found.numbers),
        nodes=list(found.nodes[:MAX_NODES]),
        evidence=_evidence(found.evidence),
    )


def _step(step: TreeStep) -> DiagnosisStep:
    return DiagnosisStep(
        step=step.question,
        question=texts.question(step.question),
        answer=step.answer,
        evidence=_evidence(step.evidence),
        not_known=_not_known(step.not_known),
    )


def _evidence(found: Sequence[Evidence]) -> list[DiagnosisEvidence]:
    return [
        DiagnosisEvidence(
            kind=evidence.kind,
            record=evidence.record,
            at=format_rfc3339(evidence.at) if evidence.at else None,
            reported_by=evidence.reported_by,
            numbers=dict(evidence.numbers),
            words=evidence.words,
        )
        for evidence in found
    ]


def _not_known(found: Sequence[Unknown]) -> list[NotKnown]:
    return [NotKnown(subject=fact.subject, cause=fact.cause, text=texts.unknown_text(fact)) for fact in found]
