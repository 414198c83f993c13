"""A retry in the index is resolved with the attempt that it repeats."""

from datetime import timedelta
from typing import Any

import orjson

from api.index import attempt_queries
from api.index.attempt_reader import read_latest_attempt, resolve_retries
from schemas.codec.records import encode_value
from schemas.documents.attempts import Digests, EpisodeRef, attempt_document, repeated_document, summary_of
from schemas.events import AttemptSummarized
from tests.support.builders.events import STARTED, a_repetition, a_summary

INDEX_NAME = "schedulerlog-attempts-2026.11.21"
ORIGINAL = a_summary(attempt_id="1e" * 16, started_at=STARTED - timedelta(minutes=1))
RETRY = a_repetition()


def stored(document: dict[str, Any]) -> dict[str, Any]:
    source: dict[str, Any] = orjson.loads(encode_value(document))
    return source


class Index:
    """Holds the retry and, unless it has expired, what it repeats."""

    def __init__(self, *, has_original: bool = True) -> None:
        text, episode = "", EpisodeRef(ORIGINAL.attempt_id, ORIGINAL.started_at)
        retry = repeated_document(a_summary(), text, episode, Digests("v", "d"), RETRY)
        self.sources = {RETRY.attempt_id: stored(retry)}
        if has_original:
            self.sources[ORIGINAL.attempt_id] = stored(attempt_document(ORIGINAL, text))

    async def search(self, _alias: str, _body: Any) -> dict[str, Any]:
        hit = {"_index": INDEX_NAME, "_id": RETRY.attempt_id, "_source": self.sources[RETRY.attempt_id]}
        return {"hits": {"hits": [hit]}}

    async def documents(self, requested: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
        return [self.sources.get(document["_id"]) for document in requested]


async def test_the_latest_attempt_of_a_pod_has_its_own_times_and_the_nodes_of_the_one_it_repeats() -> None:
    found = await read_latest_attempt(Index(), "llm", "deepseek-a")  # type: ignore[arg-type]
    assert found is not None
    summary, original_id = found
    assert (summary.attempt_id, summary.started_at, original_id) == (RETRY.attempt_id, STARTED, ORIGINAL.attempt_id)
    assert summary.nodes == ORIGINAL.nodes


async def test_a_retry_whose_original_has_expired_is_left_out() -> None:
    index = Index(has_original=False)
    places = [(INDEX_NAME, RETRY.attempt_id)]
    summaries: dict[str, AttemptSummarized] = await resolve_retries(
        index,  # type: ignore[arg-type]
        places,
        index.sources,
        attempt_queries.WHOLE_SUMMARY,
        summary_of,
    )
    assert summaries == {}
