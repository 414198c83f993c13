"""Answers about attempts that a log does not end, and notes about the scheduler that wrote it."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from engine.diagnosis.device_numbers import describe_requested_memory
from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.logged_facts import LoggedFact, LoggedKind, select_facts
from engine.diagnosis.logged_steps import find_pod_facts, to_log_evidence
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.reclaimed_places import describe_reclaim
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import (
    NOTHING,
    count_devices,
    describe_moment,
    describe_share,
    quote,
    shorten_list,
    to_attempt_evidence,
)
from engine.summaries.text import write_refusal
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import FITS, PICKED, AttemptSummarized

NEAR: Final = timedelta(minutes=2)
"""Time around an attempt within which a state of the whole scheduler explains it."""
MAX_LISTED: Final = 5
"""Refused nodes whose reasons a sentence lists."""


def find_zero_memory(facts: DiagnosisFacts, attempt: AttemptSummarized) -> FoundObstacle | None:
    """Find that a placed pod's devices were booked without memory: HAMi read its amount as 0."""
    node = attempt.chosen or ""
    without = [request for request in attempt.requests if request.count and request.memory_mib == 0]
    if not without or not node or facts.log_ended_at is None:
        return None
    devices = [device.uuid for device in attempt.picked] or list(attempt.picked_devices)
    words: dict[str, Word] = {"node": node, "devices": shorten_list(devices)}
    words["count"] = sum(request.count for request in without)
    evidence, clauses = [to_attempt_evidence(attempt)], ["devices"] if devices else []
    return FoundObstacle("BookedWithoutMemory", words, {"booked_memory_mib": 0}, [node], 0, evidence, clauses)


def find_unfinished(facts: DiagnosisFacts, attempt: AttemptSummarized) -> FoundObstacle | None:
    """Find what the log says of an attempt that it does not end: None for one that has an end.

    Of one that judged nodes, only a crash explains the end: a log may be cut where no line is missing.
    """
    if facts.log_ended_at is None or attempt.ended_at or attempt.bind:
        return None
    if eviction := next(
        (fact for fact in find_pod_facts(facts, "pod evicted") if fact.time == attempt.started_at), None
    ):
        return _describe_eviction(eviction, attempt)
    crash = _find_near(facts, attempt, "scheduler crashed")
    if (attempt.nodes or attempt.judged_devices) and not (crash and crash.time >= attempt.started_at):
        return None
    waits = _find_near(facts, attempt, "cache not synced", "not leader")
    words: dict[str, Word] = {
        "began": describe_moment(attempt.started_at, facts), "ended": describe_moment(facts.log_ended_at, facts),
        "count": count_devices(attempt.requests), "scheduler": attempt.scheduler,
    }  # fmt: skip
    asking = [request for request in attempt.requests if request.count]
    clauses = []
    if asking:
        words["asked"] = describe_requested_memory(asking[0])
        clauses.append("asked")
    if crash:
        words["words"] = quote(crash.words)
        return FoundObstacle("SchedulerCrashed", words, evidence=[to_log_evidence(crash)], clauses=clauses)
    if waits:
        words["since"] = describe_moment(waits.time, facts)
        clauses.append("not_synced" if waits.kind == "cache not synced" else "not_leader")
    return FoundObstacle("UnfinishedAttempt", words, evidence=[to_attempt_evidence(attempt)], clauses=clauses)


def _describe_eviction(fact: LoggedFact, attempt: AttemptSummarized) -> FoundObstacle:
    again = write_phrase("again_if_owned")
    return describe_reclaim(attempt.scheduler, fact.node or "", fact.words, to_log_evidence(fact), again)


def _find_near(facts: DiagnosisFacts, attempt: AttemptSummarized, *kinds: LoggedKind) -> LoggedFact | None:
    """Find the fact about the whole scheduler that is nearest to the start of the attempt."""
    near = [fact for fact in select_facts(facts.logged, *kinds) if abs(fact.time - attempt.started_at) <= NEAR]
    # Of two states at once the one that stopped a call says more.
    return min(near, key=lambda fact: (kinds.index(fact.kind), abs(fact.time - attempt.started_at)), default=None)


def iterate_log_notes(logged: Sequence[LoggedFact], describe: Callable[[datetime], str]) -> Iterator[InBothLanguages]:
    """Iterate over the states of the whole scheduler that the log reports, for a table of its pods."""
    kinds: tuple[LoggedKind, ...] = ("scheduler crashed", "cache not synced", "not leader", "admission denied")
    for kind in kinds:
        facts = [fact for fact in logged if fact.kind == kind and (kind != "admission denied" or _is_unnamed(fact))]
        if facts:
            words = quote(facts[-1].words)
            moment, count = describe(facts[-1].time), len(facts)
            named = facts[-1].pod.rstrip("/")
            yield write_phrase(f"note {kind}", at=moment, n=count, words=words, namespace=named)


def _is_unnamed(fact: LoggedFact) -> bool:
    """Tell whether the webhook denied a pod before it had a name."""
    return fact.pod.endswith("/") or not fact.pod


def describe_nodes_at_end(attempt: AttemptSummarized) -> dict[str, Word]:
    """Describe which nodes had passed, the best first, and why the others were refused, when the log ended."""

    rows = range(len(attempt.nodes))
    fits = [index for index in rows if attempt.verdicts[int(attempt.verdict[index])] in (FITS, PICKED)]
    fits.sort(key=lambda index: -float(attempt.score[index]))
    passed = [f"{attempt.nodes[index]} ({float(attempt.score[index]):.2f})" for index in fits]
    refused = [
        f"{attempt.nodes[index]}: {write_refusal(attempt.refusals[code])}"
        for index in rows
        if (code := int(attempt.refusal[index])) >= 0
    ]
    total = len(attempt.nodes)
    words: dict[str, Word] = {"passed": shorten_list(passed), "fit": len(fits), "of": total}
    words["share"] = describe_share(len(fits), total, NOTHING)
    if refused:
        words["refused"] = InBothLanguages(en="; ".join(refused[:MAX_LISTED]), zh="；".join(refused[:MAX_LISTED]))
    return words
