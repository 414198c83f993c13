"""Reads the history of one pod from the index, and puts the attempt in front that only the memory knows yet."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from api.index import attempt_queries
from api.index.attempt_reader import documents, put_together, with_nodes
from api.index.client import ATTEMPTS, OpenSearch
from api.index.episodes import HistoryPosition, Run, Tried, episode, in_runs, tried, with_newest
from schemas.answers.attempts import Episode
from schemas.codec.records import rfc3339
from schemas.documents.attempts import verdict_digest
from schemas.events import AttemptSummarized

MAX_SCANNED: Final = 20_000
"""Attempts that one page looks at. Of a pod that was tried more often, the next page goes on within the episode."""


@dataclass(frozen=True, slots=True)
class HistoryPage:
    episodes: list[Episode]
    following: HistoryPosition | None


async def history(
    index: OpenSearch,
    pod: tuple[str, str],
    limit: int,
    position: HistoryPosition | None,
    newest: AttemptSummarized | None,
) -> HistoryPage:
    """Episodes, latest first. ``pod``: namespace and name; ``newest`` is the attempt in memory."""
    newest = newest if position is None else None
    attempts, has_more = await _attempts(index, pod, limit, position, newest)
    runs = list(in_runs(attempts))
    page = runs[:limit]
    has_more = has_more or len(runs) > limit
    following = HistoryPosition(sort=page[-1].first.sort) if has_more and page else None
    return HistoryPage(await _episodes(index, page, newest), following)


async def _attempts(
    index: OpenSearch,
    pod: tuple[str, str],
    limit: int,
    position: HistoryPosition | None,
    newest: AttemptSummarized | None,
) -> tuple[list[Tried], bool]:
    """Attempts until more than ``limit`` episodes are known, and whether there are more in the index."""
    stored: list[Tried] = []
    after = position.sort if position else None
    has_more = True
    while has_more and len(stored) < MAX_SCANNED and sum(1 for _ in in_runs(stored)) <= limit:
        answer = await index.search(ATTEMPTS, attempt_queries.attempts_of_pod(*pod, after))
        page = [tried(hit) for hit in answer["hits"]["hits"]]
        stored += page
        has_more = len(page) == attempt_queries.HISTORY_PAGE
        after = page[-1].sort if page else after
    return (with_newest(stored, _tried(newest)) if newest else stored), has_more


def _tried(summary: AttemptSummarized) -> Tried:
    started_ms = int(summary.started_at.timestamp() * 1000)
    return Tried(summary.attempt_id, verdict_digest(summary), summary.status, started_ms, index="")


async def _episodes(index: OpenSearch, runs: Sequence[Run], newest: AttemptSummarized | None) -> list[Episode]:
    known = await _latest_summaries(index, [run.latest for run in runs if run.latest.index])
    firsts = await documents(index, [_place(run.first) for run in runs if run.first.index], ["@timestamp", "changes"])
    seen = {name: str(source["@timestamp"]) for name, source in firsts.items()}
    changes = {name: list(source.get("changes") or []) for name, source in firsts.items()}
    if newest:
        known[newest.attempt_id] = newest
        seen[newest.attempt_id] = rfc3339(newest.started_at)
        changes[newest.attempt_id] = newest.changes
    # A document that is gone meanwhile has outlived its retention.
    whole = [run for run in runs if run.latest.attempt_id in known and run.first.attempt_id in seen]
    return [
        episode(run, known[run.latest.attempt_id], seen[run.first.attempt_id], changes.get(run.first.attempt_id, []))
        for run in whole
    ]


async def _latest_summaries(index: OpenSearch, latest: Sequence[Tried]) -> dict[str, AttemptSummarized]:
    places = [_place(each) for each in latest]
    sources = await documents(index, places, attempt_queries.SUMMARY_WITHOUT_NODES)
    summaries = await put_together(
        index, places, sources, attempt_queries.SUMMARY_WITHOUT_NODES, attempt_queries.without_nodes
    )
    there = [place for place in places if place[1] in summaries]
    whole = await with_nodes(index, there, summaries, attempt_queries.filter_needs_nodes)
    return {summary.attempt_id: summary for summary in whole}


def _place(attempt: Tried) -> tuple[str, str]:
    return attempt.index, attempt.attempt_id
