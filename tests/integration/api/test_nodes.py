"""Observations of nodes and pods, and occupancy over time: in a real index, over HTTP."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from schemas.events import (
    Condition,
    DeviceAllocation,
    NodeChecked,
    NodeObserved,
    NodeProblem,
    NodeRegistered,
    ObjectProblem,
    PodObserved,
    PodRef,
)
from schemas.placements import PodPlacement
from tests.support.harness.api_process import Served
from tests.support.harness.index_filling import NOW, Filling, an_attempt

MINUTE = timedelta(minutes=1)
START = NOW - timedelta(hours=3)


def to_time(minutes: float) -> datetime:
    return START + minutes * MINUTE


def format_rfc3339(minutes: float) -> str:
    return to_time(minutes).isoformat().replace("+00:00", "Z")


def a_registration(
    node: str, minutes: float, *uuids: str, scheduler: str = "hami-scheduler", memory_mib: int = 40960
) -> NodeRegistered:
    count = len(uuids)
    numbers = {"memory_mib": memory_mib, "cores_percent": 100, "slots": 10, "numa": 0}
    return NodeRegistered.model_validate(
        {
            "cluster": "default", "node": node, "observed_at": to_time(minutes), "scheduler": scheduler,
            "registered": True,
            "handshake": "Reported 2026-11-21 12:00:00", "uuid": list(uuids), "model": ["NVIDIA A100"] * count,
            "mode": ["hami-core"] * count, "index": list(range(count)), "healthy": [True] * count,
        } | {name: [number] * count for name, number in numbers.items()}
    )  # fmt: skip


def an_observation(node: str, minutes: float, ready: str = "True", cpu: str = "12") -> NodeObserved:
    conditions = [Condition(type="Ready", status=ready, reason="KubeletReady", last_transition_at=to_time(minutes))]
    return NodeObserved(
        cluster="default",
        node=node,
        observed_at=to_time(minutes),
        capacity={"cpu": cpu},
        allocatable={"cpu": cpu},
        conditions=conditions,
    )


def a_placement(
    pod: str, node: str, begin: float, end: float | None = None, *devices: str, memory_mib: int = 1000
) -> PodPlacement:
    namespace, name = pod.split("/")
    return PodPlacement(
        cluster="default",
        id=f"{pod}/{begin}",
        pod=PodRef(namespace=namespace, name=name, uid=f"uid-{name}-{begin}"),
        node=node,
        started_at=to_time(begin),
        ended_at=None if end is None else to_time(end),
        ended_by="" if end is None else "Succeeded",
        scheduler="hami-scheduler",
        attempt_id=an_attempt(pod).attempt_id,
        phase="Running" if end is None else "Succeeded",
        allocations=[
            DeviceAllocation(uuid=uuid, container="main", memory_mib=memory_mib, cores_percent=10) for uuid in devices
        ],
    )


@pytest.fixture(scope="module", autouse=True)
def node_with_a_history(filling: Filling) -> None:
    problem = NodeProblem(code="HandshakeTooOld", vendor="NVIDIA", message="the handshake is of 12:00:00")
    checks = [
        NodeChecked(
            cluster="default",
            node="n-node1",
            observed_at=to_time(minute),
            scheduler="hami-scheduler",
            problems=problems,
        )
        for minute, problems in ((10, [problem]), (20, []))
    ]
    filling.index_observations(
        a_registration("n-node1", 0, "GPU-n-0", "GPU-n-1"),
        a_registration("n-node1", 30, "GPU-n-0"),
        a_registration("n-node1", 5, "GPU-n-0", scheduler="other-scheduler"),
        an_observation("n-node1", 1),
        an_observation("n-node1", 40, ready="False", cpu="8"),
        *checks,
    )
    filling.index_placements(
        a_placement("api-held/a", "n-node1", 10, 50, "GPU-n-0"),
        a_placement("api-held/b", "n-node1", 20, None, "GPU-n-0", "GPU-n-1", memory_mib=2000),
        a_placement("api-held/web", "n-node1", 25, 35),
        a_placement("api-held/a", "n-node2", 60, 70, "GPU-m-0"),
        a_placement("api-held/a", "n-node1", 80),
    )


def fetch_node(api: Served, **query: str) -> dict[str, Any]:
    answer = api.get("/api/v1/nodes/n-node1", **query)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_a_node_is_answered_as_it_is_now_with_when_and_by_whom_reported(api: Served) -> None:
    answer = fetch_node(api)
    assert answer["status"] == {
        "observed_at": format_rfc3339(40),
        "reported_by": "cluster",
        "capacity": {"cpu": "8"},
        "allocatable": {"cpu": "8"},
        "conditions": [
            {
                "type": "Ready",
                "status": "False",
                "reason": "KubeletReady",
                "message": "",
                "last_transition_at": format_rfc3339(40),
            }
        ],
        "cordoned": False,
    }
    hami, other = answer["registrations"]
    assert (hami["reported_by"], hami["observed_at"], [device["uuid"] for device in hami["devices"]]) == (
        "hami-scheduler", format_rfc3339(30), ["GPU-n-0"]
    )  # fmt: skip
    assert (other["reported_by"], other["observed_at"]) == ("other-scheduler", format_rfc3339(5))
    assert hami["devices"][0] == {
        "uuid": "GPU-n-0", "model": "NVIDIA A100", "mode": "hami-core", "index": 0, "memory_mib": 40960,
        "cores_percent": 100, "slots": 10, "numa": 0, "healthy": True, "cordoned": False,
    }  # fmt: skip
    assert answer["checks"] == [{"observed_at": format_rfc3339(20), "reported_by": "hami-scheduler", "problems": []}]


@pytest.mark.parametrize(
    ("minute", "ready", "devices", "problems"),
    [
        (0, None, ["GPU-n-0", "GPU-n-1"], None),
        (15, "True", ["GPU-n-0", "GPU-n-1"], ["HandshakeTooOld"]),
        (30, "True", ["GPU-n-0"], []),
        (39.99, "True", ["GPU-n-0"], []),
        (40, "False", ["GPU-n-0"], []),
    ],
)
def test_a_node_is_answered_as_it_was(
    api: Served, minute: float, ready: str | None, devices: list[str], problems: list[str] | None
) -> None:
    answer = fetch_node(api, at=format_rfc3339(minute))
    assert (answer["status"] or {"conditions": [{"status": None}]})["conditions"][0]["status"] == ready
    assert [device["uuid"] for device in answer["registrations"][0]["devices"]] == devices
    codes = [[problem["code"] for problem in check["problems"]] for check in answer["checks"]]
    assert codes == ([] if problems is None else [problems])


def test_of_two_observations_in_one_millisecond_the_later_counts(filling: Filling, api: Served) -> None:
    base = START.replace(microsecond=5_000)
    for microseconds in (900, 100, 500):
        event = NodeObserved(
            cluster="default",
            node="n-quick",
            observed_at=base + timedelta(microseconds=microseconds),
            capacity={"cpu": str(microseconds)},
        )
        filling.index_observations(event)
    assert api.get("/api/v1/nodes/n-quick").json()["status"]["capacity"] == {"cpu": "900"}
    moment = (base + timedelta(microseconds=600)).isoformat()
    assert api.get("/api/v1/nodes/n-quick", at=moment).json()["status"]["capacity"] == {"cpu": "500"}


def test_what_is_held_now_is_answered_per_device_with_the_pods(api: Served) -> None:
    answer = api.get("/api/v1/nodes/n-node1/occupancy").json()
    first, second = answer["devices"]
    assert (first["uuid"], first["memory_held_mib"], first["memory_total_mib"]) == ("GPU-n-0", 2000, 40960)
    assert (second["uuid"], second["memory_held_mib"], second["memory_total_mib"]) == ("GPU-n-1", 2000, None)
    assert [(holder["name"], holder["started_at"]) for holder in first["held_by"]] == [("b", format_rfc3339(20))]
    assert [pod["name"] for pod in answer["pods"]] == ["b", "a"]


@pytest.mark.parametrize(
    ("minute", "pods", "held"),
    [
        (9.99, [], {"GPU-n-0": 0, "GPU-n-1": 0}),
        (10, ["a"], {"GPU-n-0": 1000, "GPU-n-1": 0}),
        (29, ["a", "b", "web"], {"GPU-n-0": 3000, "GPU-n-1": 2000}),
        (35, ["a", "b"], {"GPU-n-0": 3000, "GPU-n-1": 2000}),
        (50, ["b"], {"GPU-n-0": 2000, "GPU-n-1": 2000}),
    ],
)
def test_what_was_held_at_any_time_in_the_past(
    api: Served, minute: float, pods: list[str], held: dict[str, int]
) -> None:
    answer = api.get("/api/v1/nodes/n-node1/occupancy", at=format_rfc3339(minute)).json()
    assert [pod["name"] for pod in answer["pods"]] == pods
    assert {device["uuid"]: device["memory_held_mib"] for device in answer["devices"]} == held


def test_the_list_of_a_node_has_every_placement_that_overlaps_the_range(api: Served) -> None:
    def list_names(**query: str) -> list[str]:
        answer = api.get("/api/v1/nodes/n-node1/occupancy", **query)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        assert body["total"] == len(body["items"])
        return [item["name"] for item in body["items"]]

    assert list_names(limit="50") == ["a", "web", "b", "a"]
    assert list_names(since=format_rfc3339(35), until=format_rfc3339(79)) == ["b", "a"]
    assert list_names(since=format_rfc3339(50), until=format_rfc3339(79)) == ["b"]
    assert list_names(until=format_rfc3339(20)) == ["a"]
    assert list_names(since=format_rfc3339(0), device="GPU-n-1") == ["b"]
    seen, query = [], {"limit": "1"}
    while True:
        answer = api.get("/api/v1/nodes/n-node1/occupancy", **query).json()
        seen += [item["name"] for item in answer["items"]]
        if answer["continue"] is None:
            break
        query["continue"] = answer["continue"]
    assert seen == ["a", "web", "b", "a"]


def test_the_placements_of_a_pod_have_node_devices_start_and_end(api: Served) -> None:
    answer = api.get("/api/v1/namespaces/api-held/pods/a/occupancy").json()
    assert [(item["node"], item["started_at"], item["ended_at"], item["ended_by"]) for item in answer["items"]] == [
        ("n-node1", format_rfc3339(80), None, ""),
        ("n-node2", format_rfc3339(60), format_rfc3339(70), "Succeeded"),
        ("n-node1", format_rfc3339(10), format_rfc3339(50), "Succeeded"),
    ]
    assert answer["items"][1]["devices"] == [
        {
            "uuid": "GPU-m-0", "container": "main", "init": False, "model": "", "memory_mib": 1000,
            "cores_percent": 10, "slots": 1,
        }
    ]  # fmt: skip
    assert answer["items"][0]["devices"] == []


def test_the_observations_of_a_pod_have_phase_node_and_conditions_over_time(filling: Filling, api: Served) -> None:
    pod = PodRef(namespace="api-seen", name="a", uid="u1")
    scheduled = Condition(type="PodScheduled", status="True", last_transition_at=to_time(1))
    filling.index_observations(
        PodObserved(cluster="default", pod=pod, observed_at=to_time(0), phase="Pending"),
        PodObserved(
            cluster="default", pod=pod, observed_at=to_time(1), phase="Pending", node="n-node1", conditions=[scheduled]
        ),
        PodObserved(
            cluster="default", pod=pod, observed_at=to_time(2), phase="Running", node="n-node1", conditions=[scheduled]
        ),
        PodObserved(
            cluster="default", pod=pod, observed_at=to_time(9), phase="Running", node="n-node1", deleted=True,
            bind_phase="success", started_at=to_time(2), scheduler="hami-scheduler",
            problems=[ObjectProblem(reason="CreateContainerError", message="no device", at=to_time(2))],
            allocations=[DeviceAllocation(uuid="GPU-n-0", container="main", memory_mib=1000)],
        ),
    )  # fmt: skip
    path = "/api/v1/namespaces/api-seen/pods/a/observations"
    answer = api.get(path).json()
    assert [(item["observed_at"], item["phase"], item["node"], item["deleted"]) for item in answer["items"]] == [
        (format_rfc3339(9), "Running", "n-node1", True),
        (format_rfc3339(2), "Running", "n-node1", False),
        (format_rfc3339(1), "Pending", "n-node1", False),
        (format_rfc3339(0), "Pending", "", False),
    ]
    assert answer["items"][1]["conditions"][0]["type"] == "PodScheduled"
    last = answer["items"][0]
    assert (last["bind_phase"], last["started_at"], last["scheduler"]) == (
        "success",
        format_rfc3339(2),
        "hami-scheduler",
    )
    assert (last["problems"][0]["reason"], last["devices"][0]["uuid"]) == ("CreateContainerError", "GPU-n-0")
    within = api.get(path, since=format_rfc3339(1), until=format_rfc3339(9)).json()
    assert [item["observed_at"] for item in within["items"]] == [format_rfc3339(2), format_rfc3339(1)]


def test_an_unknown_pod_or_node_is_not_found_with_what_to_check(filling: Filling, api: Served) -> None:
    for suffix in ("", "/occupancy", "/occupancy?until=1h"):
        answer = api.client.get("/api/v1/nodes/n-nobody" + suffix)
        assert answer.status_code == 404
        assert "kubectl get node n-nobody" in answer.json()["next"]
    for path in ("/api/v1/nodes/n-node1", "/api/v1/nodes/n-node1/occupancy"):
        answer = api.get(path, at=format_rfc3339(-1))
        assert answer.status_code == 404
        rounded_up = to_time(0) + timedelta(milliseconds=1)  # the index does not know it more finely
        assert rounded_up.isoformat()[:23] in answer.json()["next"]
    for kind in ("occupancy", "observations"):
        answer = api.get(f"/api/v1/namespaces/api-held/pods/nobody/{kind}")
        assert answer.status_code == 404
        assert "pipeline placements" in answer.json()["next"]
    filling.index(an_attempt("api-held/pending"))
    answer = api.get("/api/v1/namespaces/api-held/pods/pending/occupancy")
    assert answer.json() == {"total": 0, "items": [], "continue": None}


def test_a_node_that_is_known_held_nothing_while_nothing_was_on_it(api: Served) -> None:
    answer = api.get("/api/v1/nodes/n-node1/occupancy", at=format_rfc3339(0), device="GPU-none").json()
    assert (answer["devices"], answer["pods"]) == ([], [])
    assert api.get("/api/v1/nodes/n-node2/occupancy", since=format_rfc3339(71)).json()["items"] == []
