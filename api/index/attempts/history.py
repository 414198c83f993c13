"""Reader of the episodes of one pod: from the index, with the attempt in memory that the index may not show yet."""

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
    group_runs,
    to_episode,
    to_outline,
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
"""Maximum number of attempts that one page reads. An episode with more attempts continues on the next page."""


FEW_NODES: Final = 100
"""Number of nodes up to which documents are read complete: to leave out parts of one takes OpenSearch a millisecond."""
_WITHOUT_COLUMNS: Final[Json] = {
    "includes": [*attempt_queries.FULL_SUMMARY, "@timestamp", "changes"],
    "excludes": attempt_queries.NODE_COLUMNS,
}


@dataclass(frozen=True, slots=True)
class HistoryPage:
    episodes: list[Episode]
    next_position: HistoryPosition | None
    """Beginning of the next page; None after the last one."""


async def read_history(
    index: OpenSearch,
    cluster: Cluster,
    pod: PodName,
    limit: int,
    position: HistoryPosition | None,
    cached: AttemptSummarized | None,
) -> HistoryPage:
    """Read at most ``limit`` episodes of ``pod`` from ``position``, latest first.

    ``cached`` is the pod's attempt in memory, None if memory may be behind the index. Raises ``UnreadableError`` and
    what ``OpenSearch.search`` raises.
    """
    # The attempt in memory is the newest, so it is on the first page.
    cached = cached if position is None else None
    attempts, has_more = await _read_attempts(index, pod, limit, position, cached)
    runs = list(group_runs(attempts))
    page = runs[:limit]
    has_more = has_more or len(runs) > limit
    next_position = HistoryPosition(sort=page[-1].first.sort_values) if has_more and page else None
    return HistoryPage(await _read_episodes(index, cluster, page, cached), next_position)


async def _read_attempts(
    index: OpenSearch,
    pod: PodName,
    limit: int,
    position: HistoryPosition | None,
    cached: AttemptSummarized | None,
) -> tuple[list[AttemptOutline], bool]:
    """Read attempts of more than ``limit`` episodes if there are as many, and tell whether the index has further ones.

    One episode more, because only its first attempt shows that the episode before it is complete.
    """
    indexed: list[AttemptOutline] = []
    after = position.sort if position else None
    has_more = True
    while has_more and len(indexed) < MAX_SCANNED and sum(1 for _ in group_runs(indexed)) <= limit:
        answer = await index.search(ATTEMPTS.alias, attempt_queries.build_history_query(pod, after))
        page = [to_outline(hit) for hit in answer["hits"]["hits"]]
        indexed += page
        # A full page may be the last one: the next search is then empty.
        has_more = len(page) == attempt_queries.HISTORY_PAGE
        after = page[-1].sort_values if page else after
    return (with_cached_attempt(indexed, _to_outline(cached)) if cached else indexed), has_more


def _to_outline(cached: AttemptSummarized) -> AttemptOutline:
    # Cut to milliseconds as OpenSearch does, so that both sort alike.
    started_ms = int(cached.started_at.timestamp() * 1000)
    return AttemptOutline(cached.attempt_id, find_episode(cached), cached.status, started_ms, index_name="")


async def _read_episodes(
    index: OpenSearch, cluster: Cluster, runs: Sequence[AttemptRun], cached: AttemptSummarized | None
) -> list[Episode]:
    # One read for the latest attempts, which have the texts, and for the first ones, which retries mostly repeat.
    stored = {outline.attempt_id: outline for run in runs for outline in (run.latest, run.first) if outline.index_name}
    sources = await _read_documents(index, list(stored.values()))
    latest = [run.latest for run in runs if run.latest.attempt_id in sources]
    summaries = await _read_latest_summaries(index, latest, stored, sources)
    firsts = {name: sources[name] for run in runs if (name := run.first.attempt_id) in sources}
    first_seen_at = {name: str(source["@timestamp"]) for name, source in firsts.items()}
    changes = {name: list(source.get("changes") or []) for name, source in firsts.items()}
    if cached:
        summaries[cached.attempt_id] = cached
        first_seen_at[cached.attempt_id] = format_rfc3339(cached.started_at)
        changes[cached.attempt_id] = cached.changes
    # A document may pass its retention between the search and its read.
    return [
        to_episode(
            cluster,
            run,
            summaries[run.latest.attempt_id],
            first_seen_at[run.first.attempt_id],
            changes.get(run.first.attempt_id, []),
        )
        for run in runs
        if run.latest.attempt_id in summaries and run.first.attempt_id in first_seen_at
    ]


async def _read_documents(index: OpenSearch, attempts: Sequence[AttemptOutline]) -> dict[str, Json]:
    """Read the documents that still exist, by id; without node columns for attempts on many nodes."""
    requested = [
        {
            "_index": attempt.index_name,
            "_id": attempt.attempt_id,
            "_source": True if _is_small(attempt) else _WITHOUT_COLUMNS,
        }
        for attempt in attempts
    ]
    sources = await index.read_documents(requested)
    documents = zip(attempts, sources, strict=True)
    return {attempt.attempt_id: source for attempt, source in documents if source is not None}


def _is_small(attempt: AttemptOutline) -> bool:
    return attempt.offered_nodes <= FEW_NODES


async def _read_latest_summaries(
    index: OpenSearch,
    latest: Sequence[AttemptOutline],
    stored: Mapping[str, AttemptOutline],
    sources: Mapping[str, Json],
) -> dict[str, AttemptSummarized]:
    """Read the summaries of ``latest`` by attempt id, with node columns if the filter's line needs them.

    ``sources``: documents of these attempts and of others, by id.
    """
    small = [_locate(attempt) for attempt in latest if _is_small(attempt)]
    whole_sources = {name: source for name, source in sources.items() if _is_small(stored[name])}
    complete_summaries = await resolve_retries(index, small, whole_sources, True, read_summary)
    large = [_locate(attempt) for attempt in latest if not _is_small(attempt)]
    others = {name: source for name, source in sources.items() if name not in whole_sources}
    fields, decode = attempt_queries.SUMMARY_WITHOUT_NODES, attempt_queries.decode_without_nodes
    summaries = await resolve_retries(index, large, others, fields, decode)
    resolved = [location for location in large if location[1] in summaries]
    complete = await with_node_columns(index, resolved, summaries, attempt_queries.does_filter_line_need_nodes)
    return complete_summaries | {summary.attempt_id: summary for summary in complete}


def _locate(attempt: AttemptOutline) -> Location:
    return attempt.index_name, attempt.attempt_id
