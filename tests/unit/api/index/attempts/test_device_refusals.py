"""Refusals by one device: page after page, each once, also where an attempt has several records."""

from datetime import timedelta
from typing import Any

import orjson
import pytest

from api.http.cluster import Cluster
from api.index.attempts import device_refusals
from api.index.attempts.device_refusals import RefusalsPosition, read_refusals
from api.memory.cluster_devices import RecentStates
from schemas.codec.records import encode, encode_value
from schemas.documents.devices import build_devices_document, build_node_state_document
from schemas.events import DevicesJudged
from tests.support.builders.events import STARTED, build_devices_judged
from tests.support.builders.node_states import a_node_state


class Index:
    """Device records, latest first, and the one state that they refer to."""

    def __init__(self, *records: DevicesJudged) -> None:
        self.hits = [
            {
                "_id": record.id,
                "_source": orjson.loads(encode_value(build_devices_document(record, encode(record).value))),
                "sort": [-index, record.attempt_id],
            }
            for index, record in enumerate(records)
        ]
        for hit, record in zip(self.hits, records, strict=True):
            hit["sort"] = [int(record.started_at.timestamp() * 1000), record.attempt_id]
        self.states_in_memory = RecentStates().find
        self.state = orjson.loads(encode_value(build_node_state_document(a_node_state("node1", 2), STARTED)))

    async def search(self, _alias: str, body: dict[str, Any]) -> dict[str, Any]:
        if "aggs" in body:
            return {"aggregations": {"nodes": {"buckets": [{"key": "node1"}]}}}
        after = body.get("search_after")
        behind = [
            hit for hit in self.hits if after is None or (-hit["sort"][0], hit["sort"][1]) > (-after[0], after[1])
        ]
        return {"hits": {"hits": behind[: body["size"]]}}

    async def read_documents(self, requested: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
        return [self.state if document["_index"].endswith("2026.11.21") else None for document in requested]


def a_record(number: int, part: int = 0) -> DevicesJudged:
    """Device 1 of node1 refuses; device 0 fits."""
    return build_devices_judged(
        ["node1"], per_node=2, verdicts=["fits", "NumaNotFit"], verdict=[0, 1], part=part,
        attempt_id=f"{number:032x}", started_at=STARTED - timedelta(minutes=number),
    )  # fmt: skip


FIRST = RefusalsPosition(sort=None, since=None, until=None)


@pytest.mark.parametrize("batch", [1, 2, 3, 50])
@pytest.mark.parametrize("limit", [1, 3, 50])
async def test_every_refusal_is_on_one_page(monkeypatch: pytest.MonkeyPatch, batch: int, limit: int) -> None:
    # Each attempt but the second has one record: a batch may end between two records of an attempt.
    monkeypatch.setattr(device_refusals, "BATCH", max(batch, 2))
    index = Index(a_record(0), a_record(1), a_record(1, part=1), a_record(2), a_record(3))
    seen: list[str] = []
    position: RefusalsPosition | None = FIRST
    while position:
        page = await read_refusals(index, Cluster("default"), "GPU-node1-1", {}, position, limit)  # type: ignore[arg-type]
        seen += [item.attempt_id for item in page.items]
        position = page.next_position
    assert seen == [f"{number:032x}" for number in (0, 1, 1, 2, 3)]


async def test_a_device_that_fits_refused_nothing() -> None:
    page = await read_refusals(Index(a_record(0)), Cluster("default"), "GPU-node1-0", {}, FIRST, 50)  # type: ignore[arg-type]
    assert (page.items, page.read_records) == ([], 1)


async def test_a_page_reads_a_bounded_number_of_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_refusals, "BATCH", 2)
    monkeypatch.setattr(device_refusals, "MAX_READ", 3)
    index = Index(*map(a_record, range(9)))
    page = await read_refusals(index, Cluster("default"), "GPU-node1-0", {}, FIRST, 50)  # type: ignore[arg-type]
    assert page.read_records < 5
    assert page.next_position is not None
