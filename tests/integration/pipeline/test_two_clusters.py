"""Two clusters on one Kafka and one OpenSearch, with equal names everywhere: nothing of one is seen in the other."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from schemas.codec.records import encode
from schemas.events import AttemptEvent, DeviceAllocation, Event, NodeRegistered, PodObserved, PodRef
from schemas.ids import derive_attempt_id
from schemas.topics import ATTEMPTS, NODES, PODS, Topic
from tests.support.builders.attempts import STARTED, a_bind, an_attempt
from tests.support.builders.node_states import write_uuid
from tests.support.harness.api_process import Served, serving
from tests.support.harness.pipeline_process import Pipeline
from tests.support.waiting import until

POD = PodRef(namespace="ml", name="trainer", uid="uid-trainer")
OLD = PodRef(namespace="ml", name="old", uid="uid-old")
LATER = STARTED + timedelta(minutes=5)


@pytest.fixture
def running(provisioned: Pipeline) -> Iterator[Pipeline]:
    yield provisioned
    provisioned.stop_all()


def build_try(cluster: str, second: int, devices: dict[str, Any], chosen: str | None = None) -> list[AttemptEvent]:
    started = STARTED + timedelta(seconds=second)
    common: dict[str, Any] = {
        "cluster": cluster,
        "attempt_id": derive_attempt_id(cluster, "hami-scheduler", POD.uid, started),
        "pod": POD,
        "started_at": started,
    }
    events = an_attempt(devices, chosen=chosen, **common)
    return [*events, a_bind(node=chosen, **common)] if chosen else events


def a_registration(cluster: str) -> NodeRegistered:
    return NodeRegistered.model_validate(
        {
            "cluster": cluster, "node": "gpu-1", "observed_at": STARTED, "scheduler": "hami-scheduler",
            "registered": True, "uuid": [write_uuid("gpu-1", 0)],
             "model": ["A100"], "mode": ["hami-core"], "index": [0],
            "memory_mib": [30_000], "cores_percent": [100], "slots": [10], "numa": [0], "healthy": [True],
        }
    )  # fmt: skip


def observe_old_pod(cluster: str, memory_mib: int) -> PodObserved:
    """Observe a pod from before the installation."""
    held = DeviceAllocation(uuid=write_uuid("gpu-1", 0), container="main", memory_mib=memory_mib, cores_percent=10)
    return PodObserved(cluster=cluster, pod=OLD, observed_at=STARTED, phase="Running", node="gpu-1", allocations=[held])


def send(running: Pipeline, records: Sequence[tuple[Topic, Event]]) -> None:
    async def send_all() -> None:
        async with AIOKafkaProducer(bootstrap_servers=running.servers.bootstrap_servers) as producer:
            for topic, event in records:
                record = encode(event)
                await producer.send(topic.name, record.value, key=record.key, headers=record.headers)
            await producer.flush()

    asyncio.run(send_all())


def get(api: Served, cluster: str, path: str, **query: str) -> Any:
    answer = api.get(f"/api/v1/clusters/{cluster}/{path}", **query)
    return answer.json() if answer.status_code == 200 else answer.status_code


def test_equal_pods_and_nodes_of_two_clusters_do_not_touch_each_other(running: Pipeline) -> None:
    running.start_all()
    running.processes.start("placements", "pipeline", "placements")
    numa, full = [["NumaNotFit", "NumaNotFit"]], [["CardInsufficientMemory", "CardInsufficientMemory"]]
    send(running, [(NODES, a_registration("east")), (NODES, a_registration("west"))])
    # In the east the device is nearly full: together with the pods of the west it would hold more than it has.
    send(running, [(PODS, observe_old_pod("east", 5_000)), (PODS, observe_old_pod("west", 25_000))])
    first = [build_try("east", 0, {"gpu-1": numa, "gpu-2": numa}), build_try("west", 0, {"gpu-1": full, "gpu-2": full})]
    for events in zip(*first, strict=True):
        running.send(events)
    running.settle()
    running.send(build_try("east", 60, {"gpu-1": [["picked", "NumaNotFit"]], "gpu-2": numa}, "gpu-1"))
    running.send(build_try("west", 60, {"gpu-1": full, "gpu-2": full}))
    running.settle()
    running.settle_group("schedulerlog-placements", [ATTEMPTS, PODS, NODES])

    with serving(running.servers.bootstrap_servers, running.servers.opensearch_url) as api:
        assert until(api.is_ready)
        logs = {cluster: get(api, cluster, "namespaces/ml/pods/trainer/schedulerlog") for cluster in ("east", "west")}
        assert {cluster: log["status"] for cluster, log in logs.items()} == {"east": "succeeded", "west": "failed"}
        assert "CardInsufficientMemory" not in str(logs["east"])
        assert "NumaNotFit" not in str(logs["west"])
        histories = {
            cluster: get(api, cluster, "namespaces/ml/pods/trainer/schedulerlog/history")["episodes"]
            for cluster in logs
        }
        assert {cluster: len(episodes) for cluster, episodes in histories.items()} == {"east": 2, "west": 1}
        assert {cluster: len(get(api, cluster, "schedulerlogs", namespace="ml")["items"]) for cluster in logs} == {
            "east": 2, "west": 2
        }  # fmt: skip
        assert get(api, "west", "schedulerlogs", reason="NumaNotFit")["items"] == []
        held = {
            cluster: get(api, cluster, "nodes/gpu-1/occupancy", at=LATER.isoformat().replace("+00:00", "Z"))
            for cluster in logs
        }
        assert {cluster: sorted(pod["name"] for pod in occupancy["pods"]) for cluster, occupancy in held.items()} == {
            "east": ["old", "trainer"], "west": ["old"]
        }  # fmt: skip
        assert {cluster: occupancy["devices"][0]["memory_held_mib"] for cluster, occupancy in held.items()} == {
            "east": 25_480, "west": 25_000
        }  # fmt: skip
        assert [get(api, cluster, "findings")["items"] for cluster in logs] == [[], []]
        assert get(api, "north", "namespaces/ml/pods/trainer/schedulerlog") == 404
        assert api.get_schedulerlog("ml/trainer").status_code == 404
    placements = running.get_documents({"term": {"pod": "trainer"}}, "schedulerlog-occupancy").values()
    waits = [(placement["cluster"], placement["waited_for"], placement["obstacle"]) for placement in placements]
    assert waits == [("east", ["NumaNotFit"], "NumaNotFit")]
