"""Groups the attempts of a pod into episodes: attempts in a row that name the same one. Pure.

A pending pod is tried again and again with the same result; an episode shows that as one item.
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
    """The fields of an attempt that decide to which episode it belongs."""

    attempt_id: str
    episode: str
    """The id of its first attempt."""
    status: str
    started_ms: int
    """Unix time in milliseconds, as finely as the index sorts."""
    index_name: str
    """The daily index with its document; empty for an attempt that is only in memory so far."""
    offered_nodes: int = 0

    @property
    def outcome(self) -> tuple[str, str]:
        """Equal for attempts of one episode."""
        # An attempt may be bound after later ones have begun, which then share its episode and not its status.
        return self.episode, self.status

    @property
    def sort_values(self) -> tuple[int, str]:
        """Its sort values in ``attempt_queries.SORT``."""
        return self.started_ms, self.attempt_id


class HistoryPosition(Position):
    """Where a page of episodes begins: ``sort`` has the sort values of the last attempt of the page before."""

    sort: tuple[Milliseconds, str]


@dataclass(slots=True)
class AttemptRun:
    """Attempts in a row with the same outcome, latest first."""

    latest: AttemptOutline
    first: AttemptOutline
    attempts: int = 1
    attempt_ids: list[str] = field(default_factory=list)
    """The latest ``MAX_LISTED_IDS``."""

    def extend(self, earlier: AttemptOutline) -> None:
        self.first = earlier
        self.attempts += 1
        if len(self.attempt_ids) < MAX_LISTED_IDS:
            self.attempt_ids.append(earlier.attempt_id)


def outline_of_hit(hit: dict[str, Any]) -> AttemptOutline:
    """The outline of a hit of ``attempt_queries.pod_attempts_query``."""
    # OpenSearch gives every doc value as a list, and leaves out fields without a value.
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
    """The runs of ``latest_first`` in the same order, each as soon as its first attempt is known."""
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
    """``indexed`` (latest first) with the attempt in memory, which the index may lack or have in an older version."""
    others = [attempt for attempt in indexed if attempt.attempt_id != cached.attempt_id]
    # The order of `attempt_queries.SORT`: the next page continues behind these sort values.
    return sorted([*others, cached], key=lambda attempt: (-attempt.started_ms, attempt.attempt_id))


def episode_of_run(
    cluster: Cluster, run: AttemptRun, latest: AttemptSummarized, first_seen_at: str, changes: list[str]
) -> Episode:
    """The episode as the API answers it.

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
        reasons=list_reasons(latest),
        changes=changes,
    )
