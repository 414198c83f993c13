"""A forecast of a start on a real broker and index: made from recorded holds, answered, and judged by the start."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from api.index.reading.client import OpenSearch
from api.index.start_outlook import read_outlook
from runtime.opensearch.client import create_client
from runtime.settings.opensearch_connection import build_opensearch_connection
from schemas.answers.diagnosis import StartOutlook
from schemas.codec.records import encode
from schemas.events import AttemptSummarized, DeviceAllocation, PodDescription, PodObserved, PodRef, PodWait
from schemas.forecasts import StartForecast
from schemas.topics import ATTEMPTS, PODS
from tests.support.builders.events import a_repetition, a_summary
from tests.support.harness.pipeline_process import Pipeline
from tests.support.waiting import until

NOW = datetime.now(UTC).replace(microsecond=0)
NAMESPACE = "forecasts"
WAITING = PodRef(namespace=NAMESPACE, name="waiting", uid="waiting")
WAIT = PodWait(
    code="CardInsufficientMemory", layer="nodes", devices=1, models=["A40"], pools=[], nearest_nodes=["node-f"],
    reasons={"CardInsufficientMemory": 1}, missing_devices=1,
)  # fmt: skip
DESCRIPTION = PodDescription(created_at=NOW - timedelta(minutes=10), priority=5)


def observe(running: Pipeline, name: str, moment: datetime, phase: str = "Running", device: str = "") -> None:
    """Observe a pod of the namespace that holds a device of the node."""
    held = [DeviceAllocation(uuid=device or f"GPU-{name}", container="main", model="A40", memory_mib=46_068)]
    pod = PodRef(namespace=NAMESPACE, name=name, uid=name)
    event = PodObserved(
        cluster="default", pod=pod, observed_at=moment, phase=phase, node="node-f", allocations=held, started_at=moment
    )
    running.send_records([encode(event)], PODS.name)


def refuse(running: Pipeline, moment: datetime) -> None:
    """Refuse the waiting pod once more."""
    fields: dict[str, Any] = {"attempt_id": f"{moment:%H%M%S}", "pod": WAITING, "started_at": moment, "version": 1}
    times = {"ended_at": moment, "repeats_started_at": moment, "episode_started_at": moment, "first_judged_at": moment}
    event = a_repetition(**fields, **times, wait=WAIT, description=DESCRIPTION)
    running.send_records([encode(event)], ATTEMPTS.name)


def list_forecasts(running: Pipeline) -> list[StartForecast]:
    documents = running.get_documents({"term": {"kind": "start-forecast"}}, "schedulerlog-observations")
    return [StartForecast.model_validate(document["event"]) for document in documents.values()]


def read_start(running: Pipeline, attempt: AttemptSummarized) -> StartOutlook | None:
    async def read() -> StartOutlook | None:
        client = create_client(build_opensearch_connection(running.servers.opensearch_url))
        try:
            return await read_outlook(OpenSearch(client, lambda *_: None, 10), attempt, datetime.now(UTC))
        finally:
            await client.close()

    return asyncio.run(read())


def test_a_forecast_is_made_from_recorded_holds_answered_and_judged(running: Pipeline) -> None:
    running.processes.stop("worker")
    running.start_placements()
    for number in range(12):
        name, began = f"earlier-{number}", NOW - timedelta(hours=20)
        observe(running, name, began)
        observe(running, name, began + timedelta(minutes=120 + 5 * number), "Succeeded")
    observe(running, "holder", NOW - timedelta(hours=1))
    ended = {"bool": {"filter": [{"term": {"namespace": NAMESPACE}}, {"exists": {"field": "ended_at"}}]}}
    until(lambda: len(running.get_documents(ended, "schedulerlog-occupancy")), lambda holds: holds == 12)
    # Too old for a forecast; the index then knows that the pod waits.
    refuse(running, datetime.now(UTC) - timedelta(minutes=5))
    own_state = {"term": {"pod_uid": WAITING.uid}}
    until(lambda: running.get_documents(own_state, "schedulerlog-pod-states"), bool)
    refuse(running, datetime.now(UTC))
    (forecast,) = until(lambda: list_forecasts(running), bool)
    assert (forecast.missing, forecast.basis, forecast.after) == ("", "shape", [f"{NAMESPACE}/holder"])
    assert forecast.earliest
    assert forecast.latest
    # The holder has run an hour of two to three: a tenth of the holds ended by 121.5 minutes, and nine by 173.5.
    began = NOW - timedelta(hours=1)
    assert abs(forecast.earliest - began - timedelta(minutes=121.5)) < timedelta(seconds=1)
    assert abs(forecast.latest - began - timedelta(minutes=174.5)) < timedelta(seconds=1)

    attempt = a_summary(pod=WAITING, wait=WAIT, description=DESCRIPTION)
    outlook = read_start(running, attempt)
    assert outlook
    assert (outlook.before, outlook.judged, outlook.earliest) == (0, 0, None)
    assert "0 of 0 such forecasts were right" in outlook.sentence.en
    later = PodDescription(created_at=NOW, priority=5)
    behind = attempt.model_copy(update={"pod": PodRef(namespace=NAMESPACE, name="b", uid="b"), "description": later})
    outlook = read_start(running, behind)
    assert outlook
    assert outlook.names_before == [f"{NAMESPACE}/waiting"]
    above = behind.model_copy(update={"description": PodDescription(created_at=NOW, priority=6)})
    assert read_start(running, above) is None

    observe(running, WAITING.name, forecast.earliest + timedelta(minutes=1), device="GPU-holder")
    judged = {"range": {"forecasts_judged": {"gt": 0}}}
    (placement,) = until(lambda: running.get_documents(judged, "schedulerlog-occupancy"), bool).values()
    assert (placement["forecasts_judged"], placement["forecasts_right"]) == (1, 1)
    outlook = read_start(running, attempt)
    assert outlook
    assert (outlook.right, outlook.judged) == (1, 1)
