"""The cluster that an attempt saw is in the records: judging it again gives the same verdicts, also from a file."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.fit import manifests
from engine.fit.devices.as_of import look_up_cluster, rebuild_columns
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.attempt import AttemptRef, Identity
from engine.fit.events.event_builder import build_events
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, SchedulingPolicy
from engine.fit.judge.reservation import release
from engine.hami.cluster_objects import ClusterObjects, build_cluster_objects
from engine.hami.vendor_catalog import HYGON
from engine.hami.vendors import NVIDIA
from schemas.codec.records import encode
from schemas.events import (
    AttemptConcluded,
    DeviceKind,
    DevicesJudged,
    Event,
    NodesJudged,
    NodeStateChanged,
    PodRef,
)
from tests.support.builders.kube_objects import STARTED
from tests.support.builders.node_states import a_node_state, build_lookup
from tests.support.builders.nodes_to_judge import A100_PROFILES, a_device, a_mig_device, a_node, a_pod, a_running_pod
from tests.support.harness.states_in_memory import LIFE, build_states, read_back
from tests.support.stress import count_examples

VENDORS = (NVIDIA, HYGON)
ATTEMPT = AttemptRef.start(
    Identity("default", "hami-scheduler"), PodRef(namespace="default", name="pod", uid="uid-pod"), STARTED
)
INSTANCES = [(0, 1), (4, 1), (0, 4), (3, 2)]
"""Spans of memory slices: the last one is no placement of any profile."""


@st.composite
def gpus(draw: st.DrawFn, node: str) -> list[dict[str, Any]]:
    plain = {
        "index": st.integers(0, 3),
        "numa": st.integers(-1, 2),
        "count": st.integers(0, 4),
        "devmem": st.sampled_from([0, 1000, 4000]),
        "devcore": st.sampled_from([0, 100, 200]),
        "type": st.sampled_from(["NVIDIA", "NVIDIA A30", "NVIDIA A30", "Tesla P4"]),
        "health": st.sampled_from([True, True, True, False]),
    }
    mig = {"migProfiles": st.sampled_from([A100_PROFILES, A100_PROFILES[:1]]), "health": st.booleans()}
    listed = []
    for number in range(draw(st.integers(1, 5))):
        make, fields = draw(st.sampled_from([(a_device, plain), (a_device, plain), (a_mig_device, mig)]))
        listed.append(make(f"{node}-{number}", **{field: draw(values) for field, values in fields.items()}))
    return listed


@st.composite
def pair_scores(draw: st.DrawFn, node: str) -> dict[str, str]:
    uuids = [f"{node}-{number}" for number in range(draw(st.sampled_from([0, 0, 4])))]
    score = st.sampled_from([0, 10, 20, -5])
    rows = [{"uuid": uuid, "score": {other: draw(score) for other in uuids}} for uuid in uuids]
    return {"node_nvidia_score": json.dumps(rows)} if uuids else {}


@st.composite
def nodes(draw: st.DrawFn, name: str) -> dict[str, Any]:
    node = a_node(
        name, draw(gpus(name)), device_cordon=draw(st.sampled_from(["", f"{name}-0"])), **draw(pair_scores(name))
    )
    annotations = node["metadata"]["annotations"]
    if draw(st.booleans()):
        devices = (
            f"{name}-d{number},4,16368,100,DCU-Z100L,0,{draw(st.sampled_from(['true', 'false']))}" for number in (0, 1)
        )
        annotations["hami.io/node-dcu-register"] = ":".join((*devices, ""))
    return node


def an_instance(uuid: str, start: int, size: int) -> str:
    placement = {"start": start, "size": size}
    profile = "1g.5gb" if size == 1 else "3g.20gb"
    return json.dumps(
        [{"containerIndex": 0, "deviceIndex": 0, "gpuUUID": uuid, "profile": profile, "placement": placement}]
    )


@st.composite
def running_pods(draw: st.DrawFn, names: list[str]) -> dict[str, Any]:
    node = draw(st.sampled_from(names))
    uid = draw(st.sampled_from(["uid-pod", *(f"uid-{number}" for number in range(9))]))
    uuid, memory, cores = (
        f"{node}-{draw(st.integers(0, 4))}",
        draw(st.integers(0, 3000)),
        draw(st.sampled_from([0, 30, 100])),
    )
    kind = draw(st.sampled_from(["plain", "instance", "dcu"]))
    pod = a_running_pod("" if kind == "dcu" else f"{uuid},NVIDIA,{memory},{cores}:;", node, uid)
    annotations = pod["metadata"]["annotations"]
    if kind == "dcu":
        annotations["hami.io/dcu-devices-allocated"] = f"{node}-d{draw(st.integers(0, 1))},DCU,{memory},{cores}:;"
    if kind == "instance":
        annotations["hami.io/vgpu-mig-allocations"] = an_instance(uuid, *draw(st.sampled_from(INSTANCES)))
    return pod


@st.composite
def clusters(draw: st.DrawFn) -> ClusterColumns:
    names = [f"n{number}" for number in range(draw(st.integers(1, 5)))]
    columns = ClusterColumns(VENDORS)
    for name in names:
        columns.apply_node(draw(nodes(name)))
    for _ in range(draw(st.integers(0, 10))):
        columns.apply_pod(draw(running_pods(names)))
    # Ids and rows that were used before, as after days in operation.
    if draw(st.booleans()):
        columns.delete_node(names[0])
        columns.apply_node(draw(nodes(names[0])))
    return columns


@st.composite
def containers(draw: st.DrawFn) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": draw(st.integers(0, 3)), "hygon.com/dcunum": draw(st.sampled_from([0, 0, 1, 2]))}
    amounts = {
        "nvidia.com/gpumem": [0, 500, 2500, 15000],
        "nvidia.com/gpumem-percentage": [0, 40],
        "nvidia.com/gpucores": [0, 30, 100],
        "hygon.com/dcumem": [0, 2000],
    }
    drawn = {resource: draw(st.sampled_from(values)) for resource, values in amounts.items()}
    limits |= {resource: amount for resource, amount in drawn.items() if amount}
    return {"name": "main", "resources": {"limits": {resource: n for resource, n in limits.items() if n}}}


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    annotations = {
        "nvidia.com/numa-bind": draw(st.sampled_from(["true", "false"])),
        "nvidia.com/nouse-gpuuuid": draw(st.sampled_from(["", "n0-0", "n1-1, n2-0"])),
        "nvidia.com/use-gputype": draw(st.sampled_from(["", "", "A30,A100"])),
        "nvidia.com/vgpu-mode": draw(st.sampled_from(["", "", "mig", "hami-core"])),
        "hami.io/gpu-scheduler-policy": draw(st.sampled_from(["binpack", "spread", "numa", "mutex", "topology-aware"])),
    }
    drawn_containers = draw(st.lists(containers(), min_size=1, max_size=3))
    return a_pod(*drawn_containers, init=draw(st.lists(containers(), max_size=1)), annotations=annotations)


def record_attempt(columns: ClusterColumns, pod: dict[str, Any], names: list[str]) -> list[Event]:
    """Return what readers of Kafka get of the attempt; nothing where the pod asks for no device."""
    # As the scheduler does before it decides.
    release(columns, "uid-pod")
    answer = decide(columns, pod, names, SchedulingPolicy())
    return read_back(build_events(ATTEMPT, answer, STARTED, epoch=LIFE.epoch)) if isinstance(answer, Decision) else []


def select_judgements(events: list[Event]) -> list[DevicesJudged | NodesJudged]:
    return [event for event in events if isinstance(event, DevicesJudged | NodesJudged)]


def list_fields(events: Sequence[Event]) -> list[dict[str, Any]]:
    """List all fields of the events but the revisions, which a rebuilt cluster counts by itself."""
    plain = [orjson.loads(encode(event).value) for event in events]
    return [{field: value for field, value in record.items() if field != "revision"} for record in plain]


def test_a_score_of_a_device_with_itself_is_in_the_state() -> None:
    scores = json.dumps([{"uuid": "n0-1", "score": {"n0-1": 10}}])
    columns = ClusterColumns(VENDORS)
    columns.apply_node(a_node("n0", [a_mig_device("n0-0"), a_mig_device("n0-1")], node_nvidia_score=scores))
    pod = a_pod(
        {"name": "main", "resources": {"limits": {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 4000}}},
        annotations={"hami.io/gpu-scheduler-policy": "topology-aware"},
    )
    events, states = record_attempt(columns, pod, ["n0"]), build_states(columns)
    [concluded] = [event for event in events if isinstance(event, AttemptConcluded)]
    assert [picked.uuid for picked in concluded.picked] == ["n0-1", "n0-1"]
    assert list_fields(record_attempt(rebuild_columns(states, VENDORS), pod, ["n0"])) == list_fields(events)


@given(clusters(), pods(), st.randoms(use_true_random=False))
@settings(max_examples=count_examples(15))
def test_judging_the_rebuilt_cluster_again_gives_the_same_records(
    columns: ClusterColumns, pod: dict[str, Any], order: Any
) -> None:
    names = [*columns.node_names, "unheard-of"]
    order.shuffle(names)
    events = record_attempt(columns, pod, names)
    states = build_states(columns)
    cluster = look_up_cluster(select_judgements(events), build_lookup(states))
    assert list_fields(build_states(rebuild_columns(states, VENDORS))) == list_fields(states)
    if events:
        assert list(cluster.states) == names
        assert cluster.unknown == ()
        registered_states = [state for state in cluster.states.values() if state]
        assert list_fields(record_attempt(rebuild_columns(registered_states, VENDORS), pod, names)) == list_fields(
            events
        )


def test_a_state_that_no_reader_has_is_named() -> None:
    columns = ClusterColumns(VENDORS)
    for name in ("n0", "n1"):
        columns.apply_node(a_node(name))
    events = record_attempt(columns, a_pod(), ["n0", "n1", "cpu"])
    stored_states = [state for state in build_states(columns) if state.node == "n0"]
    cluster = look_up_cluster(select_judgements(events), build_lookup(stored_states))
    assert cluster.unknown == ("n1",)
    assert cluster.states == {"n0": stored_states[0], "n1": None, "cpu": None}
    assert any(isinstance(event, AttemptConcluded) for event in events)


def test_a_node_without_devices_is_not_registered_again() -> None:
    assert rebuild_columns([a_node_state("gone", 0), a_node_state("there", 1)]).node_names == ("there",)


def read_again(written: ClusterObjects) -> ClusterColumns:
    text = b"".join(b"---\n" + orjson.dumps(item, option=orjson.OPT_INDENT_2) + b"\n" for item in written.objects)
    manifest = manifests.parse(text, Path("cluster.yaml"))
    columns = ClusterColumns()
    for node in manifest.nodes.values():
        columns.apply_node(node)
    for pod in manifest.pods.values():
        columns.apply_pod(pod)
    return columns


def has_only_nvidia(state: NodeStateChanged) -> bool:
    return all(kind.vendor in ("", "NVIDIA") for kind in state.kinds)


def has_its_own_reasons(state: NodeStateChanged) -> bool:
    """Tell whether each device of which nobody knows what is left has a share without an instance. A reservation of a
    device that the node does not have takes all its MIG devices out, and no pod of a file stands for that.
    """
    return all(not use.unknown or int(state.slots_used[use.device]) > len(use.spans) for use in state.mig)


@settings(max_examples=count_examples(15), deadline=None)
@given(clusters())
def test_devices_and_what_is_in_use_of_them_come_back(columns: ClusterColumns) -> None:
    states = [state for state in build_states(columns) if has_only_nvidia(state) and has_its_own_reasons(state)]
    written = build_cluster_objects(states)
    assert written.left_out == []
    assert merge_holders(read_again(written)) == merge_holders(rebuild_columns(states))


def test_instances_on_a_device_that_is_no_longer_cut_into_instances_come_back() -> None:
    columns = ClusterColumns(VENDORS)
    columns.apply_node(a_node("n0", [a_device(f"n0-{number}") for number in range(3)]))
    for uid, uuid in (("uid-1", "n0-1"), ("uid-2", "n0-1"), ("uid-3", "n0-2")):
        pod = a_running_pod(f"{uuid},NVIDIA,0,0:;", "n0", uid)
        pod["metadata"]["annotations"]["hami.io/vgpu-mig-allocations"] = an_instance(uuid, 0, 1)
        columns.apply_pod(pod)
    states = build_states(columns)
    assert [(use.device, len(use.spans), use.unknown) for use in states[0].mig] == [(1, 2, 2), (2, 1, 1)]
    assert merge_holders(read_again(build_cluster_objects(states))) == merge_holders(rebuild_columns(states))


def merge_holders(columns: ClusterColumns) -> list[dict[str, Any]]:
    """Merge the unknown instances of a device into one: one pod of the file holds what several held, and as with
    several of them nothing more fits on the device.
    """
    records = list_fields(build_states(columns))
    for record in records:
        record["mig"] = [use | {"unknown": min(use["unknown"], 1)} for use in record["mig"]]
    return records


def test_nodes_without_devices_are_there_and_what_can_not_be_written_is_named() -> None:
    kinds = [DeviceKind(model="910B", vendor="Ascend910B", memory_mib=1, cores_percent=1, slots=1)]
    unknown = [DeviceKind(model="L40S", memory_mib=45912)]
    states = [a_node_state("npu", 2, kinds=kinds), a_node_state("log", 1, kinds=unknown), a_node_state("gpu", 1)]
    written = build_cluster_objects(states, ["cpu"])
    assert [item["metadata"]["name"] for item in written.objects if item["kind"] == "Node"] == [
        "npu",
        "log",
        "gpu",
        "cpu",
    ]
    assert written.left_out == [
        "npu: 2 devices of other vendors than NVIDIA",
        "log: all devices, because its source does not report how many pods may share them",
    ]
    assert read_again(written).node_names == ("gpu",)
