"""Reads the episodes of one pod from the index, and adds the attempt in memory that the index may not show yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from api.http.cluster import Cluster
from api.index.attempts import attempt_queries
from api.index.attempts.attempt_queries import PodName
from api.index.attempts.attempt_reader import Location, resolve_retries, with_node_columns
from api.index.attempts.episodes import (
    AttemptOutline,
    AttemptRun,
    HistoryPosition,
    episode_of_run,
    group_runs,
    outline_of_hit,
    with_cached_attempt,
)
from api.index.reading.client import OpenSearch
from schemas.answers.attempts import Episode
from schemas.codec.records import format_rfc3339
from schemas.documents.attempts import find_episode, read_summary
from schemas.events import AttemptSummarized
from schemas.indices import ATTEMPTS
from schemas.json_types import Json

MAX_SCANNED: Final = 20_000
"""Attempts that one page reads at most. An episode with more attempts continues on the next page."""


FEW_NODES: Final = 100
"""Documents of attempts on so few nodes are read whole: leaving out parts of one takes OpenSearch a millisecond."""
_WITHOUT_COLUMNS: Final[Json] = {
    "includes": [*attempt_queries.WHOLE_SUMMARY, "@timestamp", "changes"],
    "excludes": attempt_queries.NODE_COLUMNS,
}


@dataclass(frozen=True, slots=True)
class HistoryPage:
    episodes: list[Episode]
    next_position: HistoryPosition | None
    """Where the next page begins; None after the last one."""


async def read_history(
    index: OpenSearch,
    cluster: Cluster,
    pod: PodName,
    limit: int,
    position: HistoryPosition | None,
    cached: AttemptSummarized | None,
) -> HistoryPage:
    """At most ``limit`` episodes of ``pod`` from ``position`` on, latest first.

    ``cached`` is the pod's attempt in memory, None where memory may be behind the index. Raises ``UnreadableError`` and
    what ``OpenSearch.search`` raises.
    """
    # The attempt in memory is the newest, so it is on the first page.
    cached = cached if position is None else None
    attempts, has_more = await _attempts(index, pod, limit, position, cached)
    runs = list(group_runs(attempts))
    page = runs[:limit]
    has_more = has_more or len(runs) > limit
    next_position = HistoryPosition(sort=page[-1].first.sort_values) if has_more and page else None
    return HistoryPage(await _episodes(index, cluster, page, cached), next_position)


async def _attempts(
    index: OpenSearch,
    pod: PodName,
    limit: int,
    position: HistoryPosition | None,
    cached: AttemptSummarized | None,
) -> tuple[list[AttemptOutline], bool]:
    """Attempts of more than ``limit`` episodes if there are as many, and whether the index has further attempts.

    One episode more than asked for, because only its first attempt shows that the episode before it is whole.
    """
    indexed: list[AttemptOutline] = []
    after = position.sort if position else None
    has_more = True
    while has_more and len(indexed) < MAX_SCANNED and sum(1 for _ in group_runs(indexed)) <= limit:
        answer = await index.search(ATTEMPTS.alias, attempt_queries.pod_attempts_query(pod, after))
        page = [outline_of_hit(hit) for hit in answer["hits"]["hits"]]
        indexed += page
        # A full page may be the last one: the next search is then empty.
        has_more = len(page) == attempt_queries.HISTORY_PAGE
        after = page[-1].sort_values if page else after
    return (with_cached_attempt(indexed, _outline(cached)) if cached else indexed), has_more


def _outline(cached: AttemptSummarized) -> AttemptOutline:
    # Cut to milliseconds as OpenSearch does, so that both sort alike.
    started_ms = int(cached.started_at.timestamp() * 1000)
    return AttemptOutline(cached.attempt_id, find_episode(cached), cached.status, started_ms, index_name="")


async def _episodes(
    index: OpenSearch, cluster: Cluster, runs: Sequence[AttemptRun], cached: AttemptSummarized | None
) -> list[Episode]:
    # One read for the latest attempts, whose texts are shown, and for the first ones. A retry mostly repeats its first.
    stored = {outline.attempt_id: outline for run in runs for outline in (run.latest, run.first) if outline.index_name}
    sources = await _read(index, list(stored.values()))
    latest = [run.latest for run in runs if run.latest.attempt_id in sources]
    summaries = await _latest_summaries(index, latest, stored, sources)
    firsts = {name: sources[name] for run in runs if (name := run.first.attempt_id) in sources}
    first_seen_at = {name: str(source["@timestamp"]) for name, source in firsts.items()}
    changes = {name: list(source.get("changes") or []) for name, source in firsts.items()}
    if cached:
        summaries[cached.attempt_id] = cached
        first_seen_at[cached.attempt_id] = format_rfc3339(cached.started_at)
        changes[cached.attempt_id] = cached.changes
    # A document may pass its retention between the search and the reading of it.
    return [
        episode_of_run(
            cluster,
            run,
            summaries[run.latest.attempt_id],
            first_seen_at[run.first.attempt_id],
            changes.get(run.first.attempt_id, []),
        )
        for run in runs
        if run.latest.attempt_id in summaries and run.first.attempt_id in first_seen_at
    ]


async def _read(index: OpenSearch, attempts: Sequence[AttemptOutline]) -> dict[str, Json]:
    """Id to source of the documents that still exist; without node columns where there are many nodes."""
    requested = [
        {
            "_index": attempt.index_name,
            "_id": attempt.attempt_id,
            "_source": True if _is_small(attempt) else _WITHOUT_COLUMNS,
        }
        for attempt in attempts
    ]
    sources = await index.documents(requested)
    found = zip(attempts, sources, strict=True)
    return {attempt.attempt_id: source for attempt, source in found if source is not None}


def _is_small(attempt: AttemptOutline) -> bool:
    return attempt.offered_nodes <= FEW_NODES


async def _latest_summaries(
    index: OpenSearch,
    latest: Sequence[AttemptOutline],
    stored: Mapping[str, AttemptOutline],
    sources: Mapping[str, Json],
) -> dict[str, AttemptSummarized]:
    """Attempt id to summary of ``latest``, with node columns where the filter's line needs them.

    ``sources``: of these attempts and of others, by id.
    """
    small = [_location(attempt) for attempt in latest if _is_small(attempt)]
    whole_sources = {name: source for name, source in sources.items() if _is_small(stored[name])}
    whole = await resolve_retries(index, small, whole_sources, True, read_summary)
    large = [_location(attempt) for attempt in latest if not _is_small(attempt)]
    others = {name: source for name, source in sources.items() if name not in whole_sources}
    fields, decode = attempt_queries.SUMMARY_WITHOUT_NODES, attempt_queries.decode_without_nodes
    summaries = await resolve_retries(index, large, others, fields, decode)
    resolved = [location for location in large if location[1] in summaries]
    complete = await with_node_columns(index, resolved, summaries, attempt_queries.filter_summary_needs_nodes)
    return whole | {summary.attempt_id: summary for summary in complete}


def _location(attempt: AttemptOutline) -> Location:
    return attempt.index_name, attempt.attempt_id
