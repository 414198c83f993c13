"""Forecasts with an index that answers by hand: the order, then holds of the namespaces of pods whose end is enough."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import orjson
import pytest

from engine.summaries.overcommit import Holding
from pipeline.placements.device_holdings import DeviceHoldings
from pipeline.placements.input_decoder import RefusedAgain
from pipeline.placements.start_forecasts import make_forecasts
from pipeline.placements.subjects import PodKey
from pipeline.sinks.bulk import encode_source
from pipeline.sinks.msearch import Hits, Search
from schemas.documents.placements import build_placement_document
from schemas.events import DeviceAllocation, PodRef, PodWait
from schemas.placements import PodPlacement
from tests.support.builders.events import STARTED, a_repetition

WAIT = PodWait(
    code="CardInsufficientMemory", layer="nodes", devices=1, models=["A40"], pools=[], nearest_nodes=["node1"],
    reasons={"CardInsufficientMemory": 1}, missing_devices=1,
)  # fmt: skip
REFUSAL = RefusedAgain.model_validate(a_repetition(wait=WAIT).model_dump())


def a_hold(name: str, hours: float, length: float | None = None, namespace: str = "batch") -> PodPlacement:
    """Build a hold of one whole device that began so many hours ago."""
    started_at = STARTED - timedelta(hours=hours)
    return PodPlacement(
        id=name,
        cluster=REFUSAL.cluster,
        pod=PodRef(namespace=namespace, name=name, uid=name),
        node="node1",
        started_at=started_at,
        ended_at=started_at + timedelta(hours=length) if length else None,
        ended_by="Succeeded" if length else "",
        allocations=[DeviceAllocation(uuid=f"GPU-{name}", container="main", model="A40")],
    )


class Index:
    """Answers a search for waiting pods with their UIDs, and one for holds with those of the namespace."""

    def __init__(self, waiting: Sequence[str], holds: Sequence[PodPlacement]) -> None:
        self._waiting, self._holds = waiting, holds
        self.searches: list[Search] = []

    async def search(self, searches: Sequence[Search]) -> list[Hits]:
        self.searches += searches
        return [self._answer(*search) for search in searches]

    def _answer(self, header: dict[str, Any], body: dict[str, Any]) -> Hits:
        if header["index"] == ["schedulerlog-pod-states"]:
            return [{"_id": uid, "_source": {"pod_uid": uid}} for uid in self._waiting[: body["size"]]]
        namespace = next(
            clause["term"]["namespace"]
            for clause in body["query"]["bool"]["filter"]
            if "namespace" in clause.get("term", {})
        )
        documents = [
            (hold.id, build_placement_document(hold, {})) for hold in self._holds if hold.pod.namespace == namespace
        ]
        return [{"_id": id_, "_source": orjson.loads(encode_source(document))} for id_, document in documents]


def hold_devices(*holds: PodPlacement) -> DeviceHoldings:
    holdings = DeviceHoldings()
    for hold in holds:
        key = PodKey(hold.cluster, hold.pod.namespace, hold.pod.name)
        holdings.put(key, [Holding(hold, hold.started_at)])
    return holdings


EARLIER = [a_hold(f"e{number}", 90, 1 + number / 10) for number in range(20)]


async def test_the_first_pod_in_the_order_has_an_interval_of_the_holders_namespace() -> None:
    index = Index([REFUSAL.pod.uid], [*EARLIER, *(a_hold(f"o{number}", 90, 50, "other") for number in range(50))])
    forecasts = await make_forecasts([REFUSAL], index, hold_devices(a_hold("now", 1), a_hold("before", 2, 1)), STARTED)
    forecast = forecasts[REFUSAL.attempt_id]
    assert (forecast.missing, forecast.basis, forecast.after) == ("", "shape", ["batch/now"])
    assert forecast.earliest
    assert forecast.latest
    # Of 1.0 to 2.9 hours after one: the tenths of 0.0 to 1.9 hours.
    assert (forecast.earliest - STARTED).total_seconds() / 3_600 == pytest.approx(0.11, abs=1e-3)
    assert (forecast.latest - STARTED).total_seconds() / 3_600 == pytest.approx(1.79 + 1 / 60, abs=1e-3)


@pytest.mark.parametrize("waiting", [["other"], [REFUSAL.pod.uid, "other"], []])
async def test_a_pod_that_is_not_known_to_be_the_first_has_none_and_no_holds_are_read(waiting: list[str]) -> None:
    index = Index(waiting, EARLIER)
    forecasts = await make_forecasts([REFUSAL], index, hold_devices(a_hold("now", 1)), STARTED)
    assert forecasts[REFUSAL.attempt_id].missing == "order"
    assert len(index.searches) == 1


async def test_without_refusals_nothing_is_searched() -> None:
    index = Index([], [])
    assert await make_forecasts([], index, DeviceHoldings(), STARTED) == {}
    assert index.searches == []
