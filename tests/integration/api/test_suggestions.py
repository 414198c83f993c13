"""What would have to change, on node states from a real topic and with the holders of devices from a real index."""

from datetime import timedelta
from typing import Any

import pytest

from schemas.events import DeviceAllocation, DeviceKind, NodeStateChanged, PodRef, Request
from schemas.placements import PodPlacement
from tests.support.builders.events import devices_judged
from tests.support.builders.node_states import a_node_state
from tests.support.harness.api_process import Served
from tests.support.harness.index_filling import NOW, Filling, an_attempt
from tests.support.waiting import until

CLUSTER = "api-suggestions"
PATH = f"/api/v1/clusters/{CLUSTER}/namespaces/llm/pods/want/suggestions"
KIND = DeviceKind(
    model="NVIDIA A100", vendor="NVIDIA", mode="hami-core", memory_mib=10_000, cores_percent=100, slots=10
)


def a_state(revision: int, used: list[int], minutes_ago: float) -> NodeStateChanged:
    return a_node_state(
        "s-node1", 2, cluster=CLUSTER, revision=revision, kinds=[KIND], memory_used_mib=used, cores_used_percent=[0, 0],
        slots_used=[int(each > 0) for each in used], observed_at=NOW - timedelta(minutes=minutes_ago),
    )  # fmt: skip


@pytest.fixture(scope="module")
def attempt_id(filling: Filling) -> str:
    """An attempt for 8,000 MiB, which found 1,000 and 3,000 MiB free; now 1,000 and 5,000 MiB are."""
    attempt = an_attempt("llm/want", started_at=NOW - timedelta(minutes=20), nodes=["s-node1"])
    found = attempt.model_copy(
        update={
            "cluster": CLUSTER,
            "attempt_id": "5e" * 16,
            "requests": [Request(container="main", vendor="NVIDIA", count=1, memory_mib=8_000)],
            "constraints": {},
        }
    )
    then, now = a_state(4, [9_000, 7_000], 30), a_state(5, [9_000, 5_000], 10)
    filling.index(found)
    filling.index_devices(
        devices_judged(
            ["s-node1"], each=2, cluster=CLUSTER, attempt_id=found.attempt_id, pod=found.pod,
            started_at=found.started_at, revision=[4],
        )
    )  # fmt: skip
    filling.index_states(then, now)
    # Read in any order, the later state holds.
    filling.publish_states(now, then)
    held = DeviceAllocation(uuid=now.uuid[1], container="main", memory_mib=5_000, cores_percent=0)
    filling.index_placements(
        PodPlacement(
            cluster=CLUSTER,
            id="api-suggestions-holder",
            pod=PodRef(namespace="team-b", name="holder", uid="u-holder"),
            node="s-node1",
            started_at=NOW - timedelta(minutes=15),
            allocations=[held],
        )
    )
    return found.attempt_id


def edits(answer: dict[str, Any]) -> list[list[tuple[str, str, str]]]:
    return [[(each["where"], each["before"], each["after"]) for each in item["edits"]] for item in answer["items"]]


def test_now_the_pod_fits_with_what_is_free_or_when_the_holder_ends(attempt_id: str, api: Served) -> None:
    assert until(lambda: bool(api.get(PATH).json()["items"]))
    answer = api.get(PATH).json()
    assert edits(answer) == [
        [("main: nvidia.com/gpumem", "8000", "5000")],
        [("team-b/holder", "5000 MiB and 0 % cores on 1 device of s-node1", "")],
    ]
    first, second = answer["items"]
    assert (first["node"], first["who_acts"], second["who_acts"]) == ("s-node1", "you", "wait")
    assert first["sentence"]["en"] == "Ask main: nvidia.com/gpumem for 5000 instead of 8000: then it fits on s-node1."
    zh = "等待 team-b/holder 结束，它占用 s-node1 上 1 块设备的 5000 MiB 显存和 0 % 算力：之后可调度到 s-node1。"
    assert second["sentence"]["zh"] == zh
    assert (answer["state"], answer["attempt"].endswith(attempt_id)) == ("refused", True)


def test_as_the_attempt_found_the_cluster_less_was_free(attempt_id: str, api: Served) -> None:
    answer = api.get(PATH, as_of="attempt", attempt=attempt_id).json()
    assert edits(answer) == [[("main: nvidia.com/gpumem", "8000", "3000")]]
    # It would fit with less memory, and also on empty devices: it takes both to keep it out.
    assert answer["excluded_by"] == ["use", "memory"]


def test_the_diagnosis_names_what_keeps_the_pod_from_every_node_together(attempt_id: str, api: Served) -> None:
    assert until(lambda: bool(api.get(PATH).json()["items"]))
    answer = api.get(PATH.removesuffix("suggestions") + "diagnosis").json()
    # It would fit with less memory, and also where the holder ended: it takes both to keep it out.
    assert (answer["state"], answer["excluded_by"]) == ("refused", ["use", "memory"])
    without = api.get(PATH.removesuffix("suggestions") + "diagnosis", exclusion="false").json()
    assert (without["sentence"], without["excluded_by"]) == (answer["sentence"], None)


def test_an_unknown_pod_and_another_pods_attempt_are_not_found(attempt_id: str, api: Served) -> None:
    assert api.get(PATH.replace("want", "unknown")).status_code == 404
    assert api.get(PATH.replace("want", "unknown"), attempt=attempt_id).status_code == 404
    assert api.get(PATH, as_of="tomorrow").status_code == 400
