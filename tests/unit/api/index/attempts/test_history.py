"""The history of a pod is the same whether memory or the index has its latest attempt."""

from datetime import timedelta
from typing import Any

import orjson

from api.http.cluster import Cluster
from api.index.attempts.attempt_queries import PodName
from api.index.attempts.episodes import HistoryPosition
from api.index.attempts.history import read_history
from schemas.answers.attempts import Episode
from schemas.codec.records import encode_value
from schemas.documents.attempts import build_attempt_document
from schemas.events import AttemptSummarized
from tests.support.builders.events import STARTED, a_refusal, a_summary

BECAME_FIT = ["node2: 8/8 CardInsufficientMemory became fit"]
REFUSED = a_summary(attempt_id="1e" * 16, started_at=STARTED - timedelta(minutes=1), ended_at=STARTED)
PLACED = a_summary(
    ended_at=STARTED, chosen="node2", verdict=[0, 2], refused_by=[0, -1], refusal=[0, -1], status="pending",
    refusals=[a_refusal(CardInsufficientMemory=8)], changes=BECAME_FIT,
)  # fmt: skip


class Index:
    """Finds the attempts that it was given, latest first."""

    def __init__(self, *attempts: AttemptSummarized) -> None:
        self._hits: list[dict[str, Any]] = []
        self._documents: dict[str, Any] = {}
        for summary in attempts:
            document = self._documents[summary.attempt_id] = orjson.loads(
                encode_value(build_attempt_document(summary, ""))
            )
            fields = {name: [document[name]] for name in ("attempt_id", "episode", "status")}
            sort = [int(summary.started_at.timestamp() * 1000), summary.attempt_id]
            self._hits.append({"_index": "i", "_id": summary.attempt_id, "fields": fields, "sort": sort})

    async def search(self, _alias: str, _body: Any) -> dict[str, Any]:
        return {"hits": {"hits": self._hits}}

    async def read_documents(self, requested: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
        return [self._documents.get(document["_id"]) for document in requested]


async def read_episodes(
    index: Index, newest: AttemptSummarized | None = None, position: HistoryPosition | None = None
) -> list[Episode]:
    pod = PodName("default", "llm", "deepseek-a")
    page = await read_history(index, Cluster("default"), pod, 20, position, newest)  # type: ignore[arg-type]
    return page.episodes


async def test_what_changed_is_the_same_from_memory_as_from_the_index() -> None:
    from_index = await read_episodes(Index(PLACED, REFUSED))
    assert [episode.changes for episode in from_index] == [BECAME_FIT, []]
    assert await read_episodes(Index(REFUSED), PLACED) == from_index, "the index does not show it yet"
    assert await read_episodes(Index(PLACED, REFUSED), PLACED) == from_index, "both have it"


async def test_an_attempt_in_memory_belongs_to_the_episode_that_it_names() -> None:
    again = PLACED.model_copy(
        update={
            "attempt_id": "2e" * 16,
            "started_at": STARTED + timedelta(minutes=1),
            "episode": PLACED.attempt_id,
            "episode_started_at": STARTED,
            "changes": [],
        }
    )
    first, _ = await read_episodes(Index(PLACED, REFUSED), again)
    assert (first.attempts, first.changes) == (2, BECAME_FIT)


async def test_equal_attempts_of_two_episodes_are_not_counted_as_one() -> None:
    """A pod of the same name was made again, or another scheduler has tried it."""
    other = REFUSED.model_copy(update={"attempt_id": "2e" * 16, "started_at": STARTED + timedelta(minutes=1)})
    assert [episode.attempts for episode in await read_episodes(Index(REFUSED), other)] == [1, 1]
    assert [episode.attempts for episode in await read_episodes(Index(other, REFUSED))] == [1, 1]


async def test_an_attempt_that_is_bound_after_the_next_one_began_is_an_item_of_its_own() -> None:
    waiting = PLACED.model_copy(
        update={"attempt_id": "2e" * 16, "started_at": STARTED + timedelta(minutes=1), "episode": PLACED.attempt_id}
    )
    bound = PLACED.model_copy(update={"status": "succeeded"})
    assert [episode.status for episode in await read_episodes(Index(waiting, bound))] == ["pending", "succeeded"]
