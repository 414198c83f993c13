"""Changes that would let a pod in, on node states of a real topic, with the holders of devices of a real index."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from schemas.codec.records import format_rfc3339
from schemas.documents.pod_states import derive_state_after_attempt
from schemas.events import (
    AttemptSummarized,
    BindOutcome,
    DeviceAllocation,
    DeviceKind,
    LockHolder,
    NodeObserved,
    NodeStateChanged,
    PodRef,
    Request,
)
from schemas.placements import PodPlacement
from tests.support.builders.events import build_devices_judged
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
        slots_used=[int(mib > 0) for mib in used], observed_at=NOW - timedelta(minutes=minutes_ago),
    )  # fmt: skip


@pytest.fixture(scope="module")
def attempt_id(filling: Filling) -> str:
    """An attempt for 8,000 MiB, which found 1,000 and 3,000 MiB free; now 1,000 and 5,000 MiB are."""
    attempt = an_attempt("llm/want", started_at=NOW - timedelta(minutes=20), nodes=["s-node1"])
    wanting_attempt = attempt.model_copy(
        update={
            "cluster": CLUSTER,
            "attempt_id": "5e" * 16,
            "requests": [Request(container="main", vendor="NVIDIA", count=1, memory_mib=8_000)],
            "constraints": {},
        }
    )
    then, now = a_state(4, [9_000, 7_000], 30), a_state(5, [9_000, 5_000], 10)
    filling.index(wanting_attempt)
    filling.index_devices(
        build_devices_judged(
            ["s-node1"], per_node=2, cluster=CLUSTER, attempt_id=wanting_attempt.attempt_id, pod=wanting_attempt.pod,
            started_at=wanting_attempt.started_at, revision=[4],
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
    return wanting_attempt.attempt_id


def list_edits(answer: dict[str, Any]) -> list[list[tuple[str, str, str]]]:
    return [[(edit["where"], edit["before"], edit["after"]) for edit in item["edits"]] for item in answer["items"]]


def test_now_the_pod_fits_with_what_is_free_or_when_the_holder_ends(attempt_id: str, api: Served) -> None:
    assert until(lambda: bool(api.get(PATH).json()["items"]))
    answer = api.get(PATH).json()
    assert list_edits(answer) == [
        [("main: nvidia.com/gpumem", "8000", "5000")],
        [("team-b/holder", "5,000 MiB and 0 % cores on 1 device of s-node1", "")],
    ]
    first, second = answer["items"]
    assert (first["node"], first["who_acts"], second["who_acts"]) == ("s-node1", "you", "wait")
    assert first["sentence"]["en"] == "Lower nvidia.com/gpumem of main from 8000 to 5000: then it fits on s-node1."
    zh = "等待 team-b/holder 结束，它占用 s-node1 上 1 个设备的 5,000 MiB 显存和 0 % 算力：之后可调度到 s-node1。"
    assert second["sentence"]["zh"] == zh
    assert (answer["state"], answer["attempt"].endswith(attempt_id)) == ("refused", True)


def test_as_the_attempt_found_the_cluster_less_was_free(attempt_id: str, api: Served) -> None:
    answer = api.get(PATH, as_of="attempt", attempt=attempt_id).json()
    assert list_edits(answer) == [[("main: nvidia.com/gpumem", "8000", "3000")]]
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


LOST = "api-suggestions-lost"
LOCKED = "api-suggestions-locked"


def an_attempt_in_lost(pod: str, chosen: str | None = None, **fields: Any) -> AttemptSummarized:
    """An attempt of ten minutes ago for 8,000 MiB of one device, to which three nodes were offered."""
    nodes, started_at = ["l-full", "l-gone", "l-new"], NOW - timedelta(minutes=10)
    attempt = an_attempt(f"llm/{pod}", started_at=started_at, nodes=nodes, chosen=chosen)
    requests = [Request(container="main", vendor="NVIDIA", count=1, memory_mib=8_000)]
    return attempt.model_copy(update={"cluster": LOST, "requests": requests, "constraints": {}} | fields)


def a_lost_state(node: str, minutes_ago: float, revision: int, **fields: Any) -> NodeStateChanged:
    return a_node_state(
        node, 1, cluster=LOST, revision=revision, kinds=[KIND], slots_used=[1], cores_used_percent=[0],
        observed_at=NOW - timedelta(minutes=minutes_ago), **fields,
    )  # fmt: skip


@pytest.fixture(scope="module")
def lost(filling: Filling) -> None:
    """A full node; one whose devices went an hour ago, when pods held 9,000 MiB of it, of which 7,000 ended since; and
    one that never registered what its kubelet offers.
    """
    full = a_lost_state("l-full", 30, 3, memory_used_mib=[9_500])
    before = a_lost_state("l-gone", 70, 4, memory_used_mib=[9_000])
    unregistered = a_node_state("l-gone", 0, cluster=LOST, revision=5, observed_at=NOW - timedelta(minutes=60))
    attempt = an_attempt_in_lost("lost")
    filling.index(attempt)
    filling.index_devices(
        build_devices_judged(
            ["l-full"], per_node=1, cluster=LOST, attempt_id=attempt.attempt_id, pod=attempt.pod,
            started_at=attempt.started_at, revision=[3],
        )
    )  # fmt: skip
    filling.index_states(full, before, unregistered)
    filling.publish_states(full, before, unregistered)
    spans = {"ended": (NOW - timedelta(minutes=40), 7_000), "stays": (None, 2_000)}
    for name, (ended_at, memory_mib) in spans.items():
        held = DeviceAllocation(uuid=before.uuid[0], container="main", memory_mib=memory_mib, cores_percent=0)
        filling.index_placements(
            PodPlacement(
                cluster=LOST, id=f"{LOST}-{name}", pod=PodRef(namespace="team-b", name=name, uid=f"u-{name}"),
                node="l-gone", started_at=NOW - timedelta(minutes=90), ended_at=ended_at, allocations=[held],
            )
        )  # fmt: skip
    status = {"nvidia.com/gpu": "80"}
    filling.index_observations(
        NodeObserved(
            cluster=LOST, node="l-new", observed_at=NOW - timedelta(minutes=50), capacity=status, allocatable=status
        )
    )


def build_path(pod: str, cluster: str = LOST) -> str:
    return f"/api/v1/clusters/{cluster}/namespaces/llm/pods/{pod}/suggestions"


def test_a_node_that_registers_nothing_any_more_is_judged_as_it_last_was(lost: None, api: Served) -> None:
    assert until(lambda: bool(api.get(build_path("lost")).json()["items"]))
    answer = api.get(build_path("lost")).json()
    (suggestion,) = (item for item in answer["items"] if item["edits"][0]["constraint"] == "registration")
    # Of 10,000 MiB the pod that stays holds 2,000: what the other one held is free by now.
    last_at = format_rfc3339(NOW - timedelta(minutes=70))
    assert suggestion["edits"] == [
        {"constraint": "registration", "where": "l-gone", "before": f"last at {last_at}", "after": ""}
    ]
    assert (suggestion["node"], suggestion["who_acts"]) == ("l-gone", "administrator")
    request = f"Get the device plugin of node l-gone to register its devices again (last at {last_at})"
    text = f"{request}: then it fits on l-gone."
    assert suggestion["sentence"]["en"] == text
    # How much memory the devices have that the other node's kubelet offers is in no record.
    assert any("never registered" in unknown["en"] for unknown in answer["not_known"])


def test_as_the_attempt_found_it_the_node_is_judged_by_the_pods_of_that_time(lost: None, api: Served) -> None:
    answer = api.get(build_path("lost"), as_of="attempt").json()
    # The attempt is later than the end of the pod.
    assert "registration" in [edit["constraint"] for item in answer["items"] for edit in item["edits"]]


def test_of_all_waiting_pods_so_many_are_let_in_by_a_node_that_registers_again(
    lost: None, filling: Filling, api: Served
) -> None:
    summary = an_attempt_in_lost("lost")
    filling.index_pod_states([derive_state_after_attempt(summary)])
    fetch = partial(api.get, f"/api/v1/clusters/{LOST}/suggestions", since="1d")
    assert until(lambda: bool(fetch().json()["items"])), fetch().text
    (item,) = (suggestion for suggestion in fetch().json()["items"] if suggestion["constraint"] == "registration")
    assert (item["where"], item["pods"], item["who_acts"]) == ("l-gone", 1, "administrator")
    assert item["sentence"]["zh"] == "让节点 l-gone 的设备插件重新注册设备：1 个 Pod 中有 1 个可以调度。"


def test_a_lock_that_stopped_the_bind_of_a_pod_that_fits_is_named(filling: Filling, api: Served) -> None:
    tried_at = NOW - timedelta(minutes=10)
    held = LockHolder(pod="team-b/dead", locked_at=tried_at - timedelta(minutes=2))
    error = "node l-full has been locked within 5m0s: node lock contention"
    bind = BindOutcome(node="l-full", bound=False, error=error, ended_at=tried_at, lock_holder=held)
    attempt = an_attempt_in_lost(
        "locked", chosen="l-full", cluster=LOCKED, status="failed", bind=bind, attempt_id="6f" * 16
    )
    free = a_lost_state("l-full", 30, 3, memory_used_mib=[0]).model_copy(update={"cluster": LOCKED})
    filling.index(attempt)
    filling.index_devices(
        build_devices_judged(
            ["l-full"], per_node=1, cluster=LOCKED, attempt_id=attempt.attempt_id, pod=attempt.pod,
            started_at=attempt.started_at, revision=[3],
        )
    )  # fmt: skip
    filling.index_states(free)
    filling.publish_states(free)
    answer = api.get(build_path("locked", LOCKED), as_of="attempt").json()
    assert answer["state"] == "fits"
    (suggestion,) = answer["items"]
    command = "`kubectl annotate node l-full hami.io/mutex.lock-`"
    text = f"Remove the lock that the bind of team-b/dead left ({command}): then it can be bound to l-full."
    assert suggestion["sentence"]["en"] == text
    assert (suggestion["node"], suggestion["who_acts"]) == ("l-full", "administrator")
    # It is ten minutes old by now: a scheduler takes it over at its next attempt.
    assert until(lambda: api.get(build_path("locked", LOCKED)).json()["state"] == "fits")
    now = api.get(build_path("locked", LOCKED)).json()
    assert now["items"] == []
    assert any("locked" in unknown["en"] for unknown in now["not_known"])
