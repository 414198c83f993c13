"""Attempts in a row with the same verdicts, as one line each: a pending pod is tried again and again."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from api.http.continue_token import Position
from schemas.answers.attempts import BindLog, Episode
from schemas.codec.records import rfc3339
from schemas.documents.attempts import reason_codes
from schemas.events import AttemptSummarized
from summaries.answer import bind_phase, filter_phase

LISTED_IDS: Final = 100


@dataclass(frozen=True, slots=True)
class Tried:
    """One attempt, as much of it as tells episodes apart."""

    attempt_id: str
    digest: str
    status: str
    started_ms: int
    index: str
    """Where its document is; empty for one that only the memory knows yet."""

    @property
    def kind(self) -> tuple[str, str]:
        return self.digest, self.status

    @property
    def sort(self) -> tuple[int, str]:
        """Its place in the order of all attempts, as OpenSearch gives it."""
        return self.started_ms, self.attempt_id


class HistoryPosition(Position):
    """Behind this attempt the next page begins."""

    sort: tuple[int, str]


@dataclass(slots=True)
class Run:
    """Attempts in a row with equal verdicts, latest first."""

    latest: Tried
    first: Tried
    attempts: int = 1
    attempt_ids: list[str] = field(default_factory=list)

    def extend(self, tried: Tried) -> None:
        self.first = tried
        self.attempts += 1
        if len(self.attempt_ids) < LISTED_IDS:
            self.attempt_ids.append(tried.attempt_id)


def tried(hit: dict[str, Any]) -> Tried:
    """What a hit with ``finds.HISTORY_FIELDS`` says."""
    said = {name: (values or [""])[0] for name, values in hit["fields"].items()}
    started_ms = int(hit["sort"][0])
    return Tried(said["attempt_id"], said["verdict_digest"], said["status"], started_ms, hit["_index"])


def in_runs(latest_first: Iterable[Tried]) -> Iterator[Run]:
    """Episodes, each as soon as it is known to be whole."""
    run: Run | None = None
    for each in latest_first:
        if run is not None and run.latest.kind == each.kind:
            run.extend(each)
            continue
        if run is not None:
            yield run
        run = Run(each, each, attempt_ids=[each.attempt_id])
    if run is not None:
        yield run


def with_newest(stored: Sequence[Tried], newest: Tried) -> list[Tried]:
    """What the index has, latest first, with an attempt that it may not show yet or only in an older telling."""
    others = [each for each in stored if each.attempt_id != newest.attempt_id]
    return sorted([*others, newest], key=lambda each: (-each.started_ms, each.attempt_id))


def episode(run: Run, latest: AttemptSummarized, first_seen: str, changes: list[str]) -> Episode:
    """``latest`` is the summary of the run's latest attempt, which speaks for all of them."""
    filter_status, filter_text = filter_phase(latest)
    bind_status, bind_text = bind_phase(latest)
    return Episode(
        first_seen_at=first_seen,
        last_seen_at=rfc3339(latest.started_at),
        attempts=run.attempts,
        attempt_ids=run.attempt_ids,
        status=latest.status,
        filter={"status": filter_status, "summary": filter_text},
        bind=BindLog(status=bind_status, summary=bind_text),
        chosen=latest.chosen,
        reasons=reason_codes(latest.refusals),
        changes=changes,
    )
