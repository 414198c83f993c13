"""How the steps put what they found into words and evidence."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from engine.diagnosis.facts import DiagnosisFacts, Evidence, ObservedPod
from engine.diagnosis.texts import phrase
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import AttemptSummarized, Condition, Request

MAX_NAMES: Final = 5
"""In a sentence; the answer lists more."""
MAX_QUOTED: Final = 300
NOTHING: Final = InBothLanguages(en="", zh="")
_UNITS: Final = (
    (timedelta(days=2), "days", 86_400),
    (timedelta(hours=2), "hours", 3_600),
    (timedelta(minutes=2), "minutes", 60),
)


def span(duration: timedelta) -> InBothLanguages:
    """A duration as people say it: `45 s`, `12 min`, `5 h`, `3 days`."""
    seconds = max(int(duration.total_seconds()), 0)
    for least, unit, length in _UNITS:
        if duration >= least:
            return phrase(unit, n=seconds // length)
    return phrase("seconds", n=seconds)


def listed(names: Sequence[str]) -> InBothLanguages:
    """The first of ``names``, with how many more there are."""
    more = len(names) - MAX_NAMES
    shown = [*names[:MAX_NAMES], *([f"… (+{more})"] if more > 0 else [])]
    return InBothLanguages(en=", ".join(shown), zh="、".join(shown))


def enumerated(names: Sequence[str], word: Literal["and", "or"]) -> InBothLanguages:
    """All of the names, as ``a, b or c``."""
    *others, last = names
    if not others:
        return InBothLanguages(en=last, zh=last)
    join = {"and": "和", "or": "或"}[word]
    return InBothLanguages(en=f"{', '.join(others)} {word} {last}", zh=f"{'、'.join(others)} {join} {last}")


def of_attempt(attempt: AttemptSummarized) -> Evidence:
    """The attempt as evidence, with what the scheduler itself says of its end."""
    report = attempt.reports[0] if attempt.reports else None
    numbers = {
        "offered_nodes": attempt.offered_nodes, "fit_nodes": attempt.fit_nodes,
        "judged_devices": attempt.judged_devices,
    }  # fmt: skip
    if attempt.attempts:
        numbers["attempts"] = attempt.attempts
    words = attempt.scheduler_message or attempt.error
    reporter = report.source if report else attempt.reader or attempt.scheduler
    return Evidence("attempt", attempt.attempt_id, attempt.started_at, reporter, numbers, words)


def named(attempt: AttemptSummarized) -> Evidence:
    """The attempt as evidence that there was one, without what came of it."""
    whole = of_attempt(attempt)
    return Evidence(whole.kind, whole.record, whole.at, whole.reported_by)


def of_bind(attempt: AttemptSummarized) -> tuple[Evidence, ...]:
    if attempt.bind is None:
        return ()
    return (Evidence("bind", attempt.attempt_id, attempt.bind.ended_at, attempt.scheduler, words=attempt.bind.error),)


def of_condition(pod: ObservedPod, condition: Condition) -> Evidence:
    words = f"{condition.type}={condition.status}: {condition.reason}: {condition.message}"
    return Evidence("pod", pod.source.record, condition.last_transition_at, pod.source.reported_by, words=words)


def requests_of(facts: DiagnosisFacts) -> Sequence[Request] | None:
    """What the pod's containers ask for; None where no source says it."""
    if facts.attempt and facts.attempt.requests:
        return facts.attempt.requests
    return facts.pod.requests if facts.pod else None


def devices_asked(requests: Sequence[Request]) -> int:
    """The most devices that the pod holds at a time: its containers run together, init containers one by one."""
    together = sum(request.count for request in requests if not request.init)
    return max([together, *(request.count for request in requests if request.init)])


def scheduler_of(facts: DiagnosisFacts) -> str:
    return (facts.pod and facts.pod.scheduler) or (facts.attempt.scheduler if facts.attempt else "")


def share(refused: int, of: int, such: InBothLanguages) -> InBothLanguages:
    """How many nodes: `7 of 8 nodes`, `the only node`; ``such`` says of which kind."""
    return phrase("only", such=such) if of == 1 else phrase("share", refused=refused, of=of, such=such)


def quoted(text: str) -> str:
    """The words of a source within a sentence: in one line, and cut where they are long."""
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= MAX_QUOTED else f"{line[:MAX_QUOTED]}…"


def since(moment: datetime, facts: DiagnosisFacts) -> InBothLanguages:
    return span(facts.now - moment)
