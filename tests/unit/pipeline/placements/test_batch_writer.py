"""Findings of the audits go to their topic, each once; the index writer makes documents of them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pipeline.metrics import PlacementsMetrics
from pipeline.placements.batch_writer import BatchWriter
from pipeline.placements.occupancy_state import OccupancyState
from schemas.codec.records import encode
from schemas.events import FindingReported
from tests.support.builders.events import ATTEMPT, STARTED
from tests.support.fakes.index_and_topics import FakeTopics

FINDING = FindingReported(**ATTEMPT, finding="BoundNowhere", found_at=STARTED, node="node1")


class Audits:
    """Finds the same with every audit."""

    async def load(self, _now: datetime) -> None: ...

    async def find(self, _until: datetime) -> list[FindingReported]:
        return [FINDING]


class Index:
    """Shows the findings with these ids, and takes no documents."""

    def __init__(self, *ids: str) -> None:
        self._ids = ids

    async def search(self, searches: Sequence[Any]) -> list[list[dict[str, Any]]]:
        ((header, _),) = searches
        return [[{"_id": id_} for id_ in self._ids] if header["index"] == ["schedulerlog-findings"] else []]


async def publish_findings(index: Index, audits: int, reported: Sequence[str] = ()) -> list[bytes]:
    """Audit so many times, and return the records on the topic of findings."""
    topics, parts = FakeTopics(), (OccupancyState(), Audits(), index)
    writer = BatchWriter(*parts, topics, PlacementsMetrics())  # type: ignore[arg-type]
    await writer.open(STARTED, reported)
    for _ in range(audits):
        await writer.audit(STARTED)
    return [entry.value for entry in topics.list_sent("schedulerlog.findings")]


async def test_a_finding_is_published_once_however_often_it_is_found() -> None:
    assert await publish_findings(Index(), audits=3) == [encode(FINDING).value]


async def test_a_finding_that_the_index_has_is_not_published_again_after_a_restart() -> None:
    assert await publish_findings(Index(FINDING.id), audits=1) == []


async def test_a_finding_that_is_on_its_topic_and_not_in_the_index_yet_is_not_published_again() -> None:
    assert await publish_findings(Index(), audits=2, reported=[FINDING.id]) == []
