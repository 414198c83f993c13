"""Events of a decision: they say what was decided, in records that every intermediary forwards."""

import random
import uuid
from collections import Counter
from datetime import UTC, datetime

import hypothesis.strategies as st
import pytest
import zstandard
from hypothesis import given, settings

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.attempt import AttemptRef, Identity
from engine.fit.events.event_builder import build_bind, build_events, build_failure, to_request
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, Failed, SchedulingPolicy
from engine.fit.judge.request.pod_request import VendorRequest
from engine.hami.annotations import ASSIGNED_NODE, DEVICES_ALLOCATED
from schemas.codec.records import MAX_VALUE_BYTES, decode, encode
from schemas.events import (
    NOT_REASONS,
    AttemptConcluded,
    BindConcluded,
    DevicesJudged,
    Event,
    LockHolder,
    NodesJudged,
    PodRef,
)
from schemas.json_types import Json
from tests.support.builders.kube_objects import STARTED, a_cluster, a_container, a_device, a_node, a_pod
from tests.support.builders.node_states import build_lookup
from tests.support.harness.states_in_memory import LIFE, build_states, read_back
from tests.support.stress import count_examples

ATTEMPT = AttemptRef.start(
    Identity("default", "hami-scheduler"), PodRef(namespace="default", name="pod1", uid="uid-pod1"), STARTED
)


def decide_pod(columns: ClusterColumns, pod: Json, names: list[str]) -> Decision:
    answer = decide(columns, pod, names, SchedulingPolicy())
    assert isinstance(answer, Decision)
    return answer


def publish(decision: Decision, error: str = "") -> list[Event]:
    """Return the events as a reader of Kafka gets them."""
    events = list(build_events(ATTEMPT, decision, STARTED, error, epoch=LIFE.epoch))
    assert all(len(encode(event).value) < MAX_VALUE_BYTES for event in events)
    return read_back(events)


def collect_device_verdicts(
    events: list[Event], columns: ClusterColumns
) -> dict[tuple[int, str], list[tuple[str, str]]]:
    state_of = build_lookup(build_states(columns))
    verdicts: dict[tuple[int, str], list[tuple[str, str]]] = {}
    for event in events:
        if isinstance(event, DevicesJudged):
            for row in event.iterate_devices(state_of):
                verdicts.setdefault((event.container, row.node), []).append((row.uuid, row.verdict))
    return verdicts


def collect_node_verdicts(events: list[Event]) -> dict[str, tuple[str, Counter[str], str]]:
    """Collect per node: verdict, typed counts of its refusal, bare reason."""
    verdicts = {}
    for event in events:
        if isinstance(event, NodesJudged):
            for row, name in enumerate(event.nodes):
                code = int(event.refusal[row])
                refusal = event.refusals[code] if code >= 0 else None
                counts = Counter(refusal.counts if refusal else {})
                verdicts[name] = (event.verdicts[event.verdict[row]], counts, refusal.bare if refusal else "")
    return verdicts


def get_conclusion(events: list[Event]) -> AttemptConcluded:
    last = events[-1]
    assert isinstance(last, AttemptConcluded)
    return last


def test_every_device_of_every_node_is_reported_also_when_the_pod_fits() -> None:
    columns = a_cluster(a_node("node1"), a_node("node2", devices=2))
    events = publish(decide_pod(columns, a_pod(), ["node1", "node2"]))
    verdicts = collect_device_verdicts(events, columns)
    assert [len(verdicts[0, name]) for name in ("node1", "node2")] == [8, 2]
    assert {word for rows in verdicts.values() for _, word in rows} == {"picked", "not reached"}
    assert get_conclusion(events).chosen == "node1"
    assert get_conclusion(events).judged_devices == 10


def test_a_node_that_is_not_registered_is_reported_with_what_is_wrong_with_it() -> None:
    columns = a_cluster(a_node("good"), a_node("bad", annotations={"hami.io/node-nvidia-register": "[{]"}))
    events = publish(decide_pod(columns, a_pod(), ["bad", "good", "unheard-of"]))
    judged = next(event for event in events if isinstance(event, NodesJudged))
    causes = {
        name: judged.refusals[code].cause for name, code in zip(judged.nodes, judged.refusal, strict=True) if code >= 0
    }
    assert judged.verdicts[judged.verdict[0]] == "unregistered"
    assert "hami.io/node-nvidia-register" in causes["bad"]
    assert causes["unheard-of"] == ""


def test_a_decision_that_could_not_be_written_to_the_pod_chooses_nothing_and_keeps_its_verdicts() -> None:
    events = publish(decide_pod(a_cluster(a_node()), a_pod(), ["node1"]), error='pods "pod1" not found')
    assert get_conclusion(events).chosen is None
    assert get_conclusion(events).error == 'pods "pod1" not found'
    assert collect_node_verdicts(events)["node1"][0] == "fits"


def test_the_conclusion_counts_the_records_before_it() -> None:
    names = [f"node{number:0240}" for number in range(400)]
    events = publish(decide_pod(a_cluster(*(a_node(name) for name in names)), a_pod(), names))
    kinds = Counter(type(event) for event in events)
    assert get_conclusion(events).device_records == kinds[DevicesJudged] > 1
    assert get_conclusion(events).node_records == kinds[NodesJudged]
    for kind in (DevicesJudged, NodesJudged):
        parts = [
            event.part for event in events if isinstance(event, (DevicesJudged, NodesJudged)) and type(event) is kind
        ]
        assert parts == list(range(kinds[kind]))


def a_big_cluster(nodes: int) -> tuple[ClusterColumns, list[str]]:
    draw = random.Random(3)
    names = [f"node-{number:04}" for number in range(nodes)]
    gpus = ([a_device(f"GPU-{uuid.UUID(int=draw.getrandbits(128))}", index=n) for n in range(8)] for _ in names)
    return a_cluster(*map(a_node, names, gpus)), names


def test_a_verdict_on_a_device_of_a_big_cluster_is_less_than_two_bytes_on_the_wire() -> None:
    columns, names = a_big_cluster(1000)
    decision = decide_pod(columns, a_pod(containers=[a_container(gpus=8, gpumem=50000)]), names)
    records = [encode(event) for event in build_events(ATTEMPT, decision, STARTED, epoch=LIFE.epoch)]
    assert max(len(record.value) for record in records) < MAX_VALUE_BYTES
    compress = zstandard.ZstdCompressor(level=1).compress
    assert sum(len(compress(record.value)) for record in records) < 2 * 8000


def test_rows_that_are_the_devices_of_the_state_in_order_name_no_positions() -> None:
    columns = a_cluster(a_node("node1"), a_node("node2", devices=2))
    (judged,) = (
        event for event in publish(decide_pod(columns, a_pod(), ["node1", "node2"])) if isinstance(event, DevicesJudged)
    )
    assert (judged.rows.tolist(), judged.device.tolist()) == ([8, 2], [])


def test_rows_count_the_models_of_their_devices() -> None:
    mixed = [a_device("GPU-0"), a_device("GPU-1", type="NVIDIA L4"), a_device("GPU-2", type="NVIDIA L4", devmem=1)]
    columns = a_cluster(a_node("node1", mixed), a_node("node2", devices=2))
    (judged,) = (
        event for event in publish(decide_pod(columns, a_pod(), ["node1", "node2"])) if isinstance(event, DevicesJudged)
    )
    assert judged.models == {"NVIDIA A40": 3, "NVIDIA L4": 2}


def test_the_conclusion_has_the_picked_devices_as_they_stood_before() -> None:
    running = a_pod("running", annotations={ASSIGNED_NODE: "node1", DEVICES_ALLOCATED: "GPU-node1-1,NVIDIA,1000,20:;"})
    columns = a_cluster(a_node(devices=2))
    columns.apply_pod(running)
    share = a_container("second", gpus=2, **{"gpumem-percentage": 25})
    requested = [a_container("first", gpumem=3000, gpucores=30), share]
    picked = get_conclusion(publish(decide_pod(columns, a_pod(containers=requested), ["node1"]))).picked
    assert [(device.container, device.uuid, device.memory_mib, device.cores_percent) for device in picked] == [
        (0, "GPU-node1-0", 3000, 30),
        # A quarter of 45,912 MiB.
        (1, "GPU-node1-0", 11478, 0),
        (1, "GPU-node1-1", 11478, 0),
    ]
    # What the first container took counts for the second one.
    used = [(device.memory_used_mib, device.cores_used_percent, device.slots_used) for device in picked]
    assert used == [(0, 0, 0), (3000, 30, 1), (1000, 20, 1)]
    assert {
        (device.model, device.memory_total_mib, device.cores_total_percent, device.slots_total) for device in picked
    } == {("NVIDIA A40", 45912, 100, 10)}


def test_a_decision_that_was_not_written_has_no_picked_devices() -> None:
    assert get_conclusion(publish(decide_pod(a_cluster(a_node()), a_pod(), ["node1"]), "refused")).picked == []


def test_a_share_of_the_device_is_reported_as_a_percentage() -> None:
    assert to_request(VendorRequest("a", False, "NVIDIA", 2, 0, 50, 10)).model_dump() == {
        "container": "a",
        "init": False,
        "vendor": "NVIDIA",
        "count": 2,
        "memory_mib": None,
        "memory_percent": 50,
        "cores_percent": 10,
    }


def test_a_container_that_asks_for_nothing_is_reported_without_a_vendor() -> None:
    assert to_request(VendorRequest("a", True, "NVIDIA", 0, -1, 101, -7)).vendor == ""


def test_an_attempt_that_could_not_be_judged_is_concluded_with_the_cause() -> None:
    event = build_failure(ATTEMPT, Failed((VendorRequest("a"),), "calcScore failed"), 7, STARTED)
    record = encode(event)
    again = decode(record.value, record.headers)
    assert isinstance(again, AttemptConcluded)
    assert (again.error, again.offered_nodes, again.judged_nodes) == ("calcScore failed", 7, 0)


@pytest.mark.parametrize(
    ("lock", "pod", "locked_at"),
    [
        ("2026-11-21T03:00:00Z,ml,train", "ml/train", datetime(2026, 11, 21, 3, tzinfo=UTC)),
        ("2026-11-21T03:00:00Z", "", datetime(2026, 11, 21, 3, tzinfo=UTC)),
        ("1969-01-01T00:00:00Z,ml,train", "ml/train", None),
        ("by hand", "", None),
    ],
)
def test_a_bind_that_failed_on_a_lock_names_its_holder(lock: str, pod: str, locked_at: datetime | None) -> None:
    bind = build_bind(ATTEMPT, "node1", "locked", STARTED, STARTED, lock)
    assert bind.lock_holder == LockHolder(pod=pod, locked_at=locked_at)
    assert build_bind(ATTEMPT, "node1", "", STARTED, STARTED).lock_holder is None


@pytest.mark.parametrize(
    ("error", "is_locked"),
    [
        # As HAMi spells it up to v2.6, from v2.7 on, and from v2.10 on (pkg/util/nodelock).
        ("node node5 has been locked within 5 minutes", True),
        ("node node5 has been locked within 5m0s", True),
        ("node node5 has been locked within 5m0s: node lock contention", True),
        ("timed out after 30s waiting for node node5 to be unlocked: node lock contention", True),
        ('pods "one" is forbidden', False),
    ],
)
def test_a_held_lock_is_known_by_the_words_of_every_version(error: str, is_locked: bool) -> None:
    bind = build_bind(ATTEMPT, "node5", error, STARTED, STARTED)
    assert bind.lock_holder == (LockHolder() if is_locked else None)


@pytest.mark.parametrize(("error", "bound"), [("", True), ("node node5 has been locked", False)])
def test_a_bind_is_reported_with_its_error(error: str, bound: bool) -> None:
    record = encode(build_bind(ATTEMPT, "node5", error, STARTED, STARTED))
    again = decode(record.value, record.headers)
    assert isinstance(again, BindConcluded)
    assert (again.bound, again.error, again.attempt_id) == (bound, error, ATTEMPT.id)


node_devices = st.builds(
    lambda uuid, memory, cores, slots, numa, model, health: a_device(
        uuid, devmem=memory, devcore=cores, count=slots, numa=numa, type=model, health=health
    ),
    st.text(min_size=1, max_size=8),
    st.integers(0, 2**31 - 1),
    st.integers(0, 300),
    st.integers(0, 20),
    st.integers(-1, 3),
    st.sampled_from(["NVIDIA A40", "NVIDIA-Tesla T4", "NVIDIA"]),
    st.booleans(),
)
node_names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
clusters = st.dictionaries(
    node_names, st.lists(node_devices, min_size=1, max_size=5, unique_by=lambda device: device["id"]), max_size=5
)
containers = st.builds(
    lambda gpus, memory, cores: a_container(gpus=gpus, gpumem=memory, gpucores=cores),
    st.integers(0, 3),
    st.integers(0, 50000),
    st.integers(0, 100),
)


@settings(max_examples=count_examples(20))
@given(clusters, st.lists(containers, min_size=1, max_size=3), st.booleans())
def test_what_is_decoded_is_what_was_decided(cluster: dict[str, list[Json]], requested: list[Json], numa: bool) -> None:
    columns = a_cluster(*(a_node(name, listed) for name, listed in cluster.items()))
    names = [*cluster, "unheard-of"]
    annotations = {"nvidia.com/numa-bind": "true"} if numa else {}
    answer = decide(columns, a_pod(containers=requested, annotations=annotations), names, SchedulingPolicy())
    if not isinstance(answer, Decision):
        return
    events = publish(answer)
    rows, nodes = collect_device_verdicts(events, columns), collect_node_verdicts(events)
    reasons = answer.list_failed_nodes()
    assert list(nodes) == names
    assert get_conclusion(events).chosen == answer.chosen
    for name, (verdict, counts, bare) in nodes.items():
        assert (verdict in ("refused", "unregistered")) == (name in reasons)
        content = ", ".join(sorted(f"{x}/{len(cluster.get(name, []))} {code}" for code, x in counts.items()))
        assert (bare or content) == reasons.get(name, "")
    for (_, name), judged in rows.items():
        assert [uuid for uuid, _ in judged] == [device["id"] for device in cluster[name]]
    for name in cluster:
        last = max((container for container, node in rows if node == name), default=None)
        if last is not None and name in reasons and not nodes[name][2]:
            assert Counter(word for _, word in rows[last, name] if word not in NOT_REASONS) == nodes[name][1]
