"""A recorded range of time in the real index, and its replay."""

from datetime import datetime, timedelta
from typing import Any, Final

import pytest

from engine.capacity.added_nodes import Addition
from engine.capacity.replay import ReplayChange
from engine.capacity.replayed_waits import compare_ranges
from engine.fit import device_config
from schemas.answers.replays import Recording
from schemas.events import AttemptSummarized, DeviceAllocation, DeviceKind, NodeStateChanged, PodDescription, PodRef
from schemas.placements import PodPlacement
from tests.support.builders.node_states import a_node_state, write_uuid
from tests.support.harness.api_process import Served
from tests.support.harness.index_filling import NOW, Filling, an_attempt

CLUSTER: Final = "api-recording"
BASE: Final = f"/api/v1/clusters/{CLUSTER}"
KIND: Final = DeviceKind(
    model="NVIDIA A100", vendor="NVIDIA", mode="hami-core", memory_mib=4_000, cores_percent=100, slots=10
)
"""Takes one of the pods, which ask for 3,000 MiB, at a time."""


def add_hours(hours: float) -> datetime:
    return NOW + timedelta(hours=hours)


def a_state(node: str, hours: float, revision: int = 1) -> NodeStateChanged:
    return a_node_state(node, 1, cluster=CLUSTER, kinds=[KIND], revision=revision, observed_at=add_hours(hours))


def an_attempt_at(name: str, hours: float, chosen: str | None = None, **fields: Any) -> AttemptSummarized:
    attempt = an_attempt(
        f"llm/{name}", started_at=add_hours(hours), nodes=["r-node1"], chosen=chosen, bound=True if chosen else None
    )
    return attempt.model_copy(update={"cluster": CLUSTER, **fields})


def a_placement(name: str, since: float, until: float | None, **fields: Any) -> PodPlacement:
    share = DeviceAllocation(uuid=write_uuid("r-node1", 0), container="main", memory_mib=3_000, cores_percent=0)
    return PodPlacement(
        cluster=CLUSTER, id=f"{CLUSTER}-{name}", pod=PodRef(namespace="llm", name=name, uid=f"uid-{name}"),
        node="r-node1", started_at=add_hours(since), bound_at=add_hours(since),
        ended_at=None if until is None else add_hours(until),
        scheduler="hami-scheduler", phase="Running", allocations=[share], **fields,
    )  # fmt: skip


@pytest.fixture(scope="module")
def recorded(filling: Filling) -> None:
    """One device: ``old`` until 5 h ago, ``first`` until 2 h ago, then ``second``, which came before; ``gone`` left."""
    described = PodDescription(created_at=add_hours(-3.5), priority=7)
    filling.index(
        an_attempt_at("first", -4, "r-node1", first_judged_at=add_hours(-4)),
        an_attempt_at("second", -3, first_judged_at=add_hours(-3)),
        an_attempt_at("second", -2, "r-node1", first_judged_at=add_hours(-3)),
        an_attempt_at("gone", -2.5, first_judged_at=add_hours(-2.5)),
        an_attempt_at("plain", -2.5, requests=[]),
    )
    filling.index_states(a_state("r-node1", -8), a_state("r-node1", -2, 2), a_state("r-node2", -1))
    filling.index_placements(
        a_placement("old", -30, -5),
        a_placement("first", -4, -2, first_judged_at=add_hours(-4)),
        a_placement("second", -2, None, first_judged_at=add_hours(-3), description=described),
    )


def test_the_recording_has_pods_with_their_times_and_the_nodes_from_the_time_they_came(
    recorded: None, api: Served
) -> None:
    answer = api.get(f"{BASE}/recording", since="6h").json()
    pods = {pod["name"]: pod for pod in answer["pods"]}
    hours = {
        name: [
            pod[field] and round((datetime.fromisoformat(pod[field]) - NOW).total_seconds() / 3600, 2)
            for field in ("waits_since", "bound_at", "left_at")
        ]
        for name, pod in pods.items()
    }
    # `gone` was tried last more than an hour ago; the creation that a source reports counts before the first attempt.
    assert hours == {
        "old": [-30, -30, -5], "first": [-4, -4, -2], "second": [-3.5, -2, None], "gone": [-2.5, None, -2.5]
    }  # fmt: skip
    assert [pods["second"][field] for field in ("priority", "node_policy", "node")] == [7, "binpack", "r-node1"]
    assert [pod["requests"][0]["memory_mib"] for pod in pods.values() if pod["requests"]] == [3000, 3000, 3000]
    assert {pod["offered"] and answer["offers"][pod["offered"]] for pod in pods.values()} <= {None, 0}
    assert answer["offers"] == [["r-node1"]]
    nodes = [(node["state"]["node"], datetime.fromisoformat(node["since"])) for node in answer["nodes"]]
    assert [name for name, _ in nodes] == ["r-node1", "r-node2"]
    # OpenSearch has milliseconds.
    assert abs((nodes[1][1] - add_hours(-1)).total_seconds()) < 0.01


def test_its_replay_is_like_the_record_and_another_node_takes_the_second_pod_when_it_comes(
    recorded: None, api: Served
) -> None:
    recording = Recording.model_validate(api.get(f"{BASE}/recording", since="6h").json())
    change = ReplayChange(additions=(Addition("r-node1", 1),))
    answer = compare_ranges(recording, change, device_config.read_shipped())
    # Neither node has room for `gone` when it comes; it was tried once.
    assert (answer.pods, answer.agreeing, answer.is_reproduced) == (3, 3, True)
    assert (answer.unchanged.started, answer.unchanged.gpu_hours) == (2, 1.5)
    assert answer.changed
    assert (answer.changed.started, answer.changed.gpu_hours) == (2, 0.0)
    assert [(row.workload, row.before_gpu_hours) for row in answer.shorter] == [("Pod/second", 1.5)]


def test_a_range_without_a_node_says_what_is_missing(recorded: None, api: Served) -> None:
    answer = api.get("/api/v1/clusters/nothing/recording")
    assert (answer.status_code, "no node states" in answer.json()["error"]) == (404, True)
    assert api.get(f"{BASE}/recording", since="1h", until="2h").status_code == 400
    # A range ends now and begins with the oldest states, whatever is asked.
    answer = api.get(f"{BASE}/recording", since="2020-01-01T00:00:00Z", until="9999-12-31T23:59:59Z").json()
    assert abs((datetime.fromisoformat(answer["since"]) - add_hours(-8)).total_seconds()) < 0.01
