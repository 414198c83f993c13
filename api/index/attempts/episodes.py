"""Episodes of a pod: attempts in a row that name the same episode. Pure.

A scheduler tries a pending pod again and again with the same result; an episode shows that as one item.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from api.http.cluster import Cluster
from api.http.pagination import Position
from api.http.param_types import Milliseconds
from engine.summaries.answer import describe_bind, describe_filter
from schemas.answers.attempts import BindLog, Episode
from schemas.codec.records import format_rfc3339
from schemas.documents.attempts import list_reasons
from schemas.events import AttemptSummarized

MAX_LISTED_IDS: Final = 100


@dataclass(frozen=True, slots=True)
class AttemptOutline:
    """Fields of an attempt that decide to which episode it belongs."""

    attempt_id: str
    episode: str
    """Id of the first attempt of its episode."""
    status: str
    started_ms: int
    """Unix time in milliseconds, the resolution in which the index sorts."""
    index_name: str
    """Daily index with its document; empty for an attempt that is so far only in memory."""
    offered_nodes: int = 0

    @property
    def outcome(self) -> tuple[str, str]:
        """Key that attempts of one episode share."""
        # An attempt may be bound after later ones have begun, which then share its episode but not its status.
        return self.episode, self.status

    @property
    def sort_values(self) -> tuple[int, str]:
        """Sort values in ``attempt_queries.SORT``."""
        return self.started_ms, self.attempt_id


class HistoryPosition(Position):
    """Beginning of a page of episodes: ``sort`` has the sort values of the last attempt of the page before."""

    sort: tuple[Milliseconds, str]


@dataclass(slots=True)
class AttemptRun:
    """Attempts in a row with the same outcome, latest first."""

    latest: AttemptOutline
    first: AttemptOutline
    attempts: int = 1
    attempt_ids: list[str] = field(default_factory=list)
    """Ids of the latest ``MAX_LISTED_IDS`` attempts."""

    def extend(self, earlier: AttemptOutline) -> None:
        self.first = earlier
        self.attempts += 1
        if len(self.attempt_ids) < MAX_LISTED_IDS:
            self.attempt_ids.append(earlier.attempt_id)


def to_outline(hit: dict[str, Any]) -> AttemptOutline:
    """Convert a hit of ``attempt_queries.build_history_query`` into an outline."""
    # OpenSearch returns every doc value as a list, and leaves out fields without a value.
    fields = {name: (values or [""])[0] for name, values in hit["fields"].items()}
    return AttemptOutline(
        fields["attempt_id"],
        fields["episode"],
        fields["status"],
        started_ms=int(hit["sort"][0]),
        index_name=hit["_index"],
        offered_nodes=fields.get("offered_nodes", 0),
    )


def group_runs(latest_first: Iterable[AttemptOutline]) -> Iterator[AttemptRun]:
    """Group ``latest_first`` into runs in the same order, each as soon as its first attempt is known."""
    run: AttemptRun | None = None
    for attempt in latest_first:
        if run is not None and run.latest.outcome == attempt.outcome:
            run.extend(attempt)
            continue
        if run is not None:
            yield run
        run = AttemptRun(attempt, attempt, attempt_ids=[attempt.attempt_id])
    if run is not None:
        yield run


def with_cached_attempt(indexed: Sequence[AttemptOutline], cached: AttemptOutline) -> list[AttemptOutline]:
    """Add the attempt in memory to ``indexed`` (latest first), which may lack it or have an older version."""
    others = [attempt for attempt in indexed if attempt.attempt_id != cached.attempt_id]
    # The order of `attempt_queries.SORT`: the next page continues after these sort values.
    return sorted([*others, cached], key=lambda attempt: (-attempt.started_ms, attempt.attempt_id))


def to_episode(
    cluster: Cluster, run: AttemptRun, latest: AttemptSummarized, first_seen_at: str, changes: list[str]
) -> Episode:
    """Convert a run into an episode of the answer.

    ``latest`` is the summary of the run's latest attempt, whose texts stand for all of them. ``first_seen_at``
    (RFC 3339) and ``changes`` are those of its first attempt.
    """
    filter_status, filter_text = describe_filter(latest)
    bind_status, bind_text = describe_bind(latest)
    return Episode(
        first_seen_at=first_seen_at,
        last_seen_at=format_rfc3339(latest.started_at),
        attempts=run.attempts,
        attempt_ids=run.attempt_ids,
        attempt=cluster.link_attempt(latest.attempt_id),
        status=latest.status,
        filter={"status": filter_status, "summary": filter_text},
        bind=BindLog(status=bind_status, summary=bind_text),
        chosen=latest.chosen,
        obstacle=latest.wait.code if latest.wait else "",
        reasons=list_reasons(latest),
        changes=changes,
    )
