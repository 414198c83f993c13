"""Devices that pods hold by their annotations: the review's cluster, whose devices were full and looked empty."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from engine.fit import manifests
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.attempt import Identity
from engine.hami.allocation import AllocationError, MigAllocation, decode_mig, list_allocations
from engine.hami.annotations import ASSIGNED_NODE, DEVICES_ALLOCATED
from engine.hami.mig import Placement
from ingest.readers.kube import KubeEvents
from scheduler.cluster.claims import Claims
from scheduler.cluster.file_cluster import SimulatedCluster
from scheduler.cluster.kubernetes.slim import slim_pod
from scheduler.publish.observer import Observer
from schemas.events import DeviceAllocation, Event, PodObserved
from schemas.json_types import Json
from tests.support.builders.kube_objects import a_container, a_node, a_pod
from tests.support.builders.spool_entries import NOW

CLUSTER = Path("examples/cluster.yaml")
# Read from the file by hand: the devices of node1 that its five pods hold, in MiB.
HELD_ON_NODE1 = {
    "GPU-4972a185-507a-4e0b-82b4-ef5af46fa229": 39645,
    "GPU-9e83b1fc-a3a6-4b7b-920a-66c344f0955e": 37645,
    "GPU-1447b655-3133-5107-abb1-caa977bceea9": 41645,
    "GPU-cad03885-b6ed-5c38-897d-0fdaa8fb8d60": 9000,
}


class Collected(list[Event]):
    """Takes the place of the spool's writer."""

    write = list.extend


def observe_as_scheduler() -> list[Event]:
    events = Collected()
    observer = Observer(Identity("default", "hami"), ClusterColumns(), Claims(), events, lambda: NOW)  # type: ignore[arg-type]
    cluster = SimulatedCluster(observer)
    cluster.apply(manifests.read(CLUSTER))
    return events


def observe_as_kube_events() -> list[Event]:
    reader, manifest = KubeEvents(), manifests.read(CLUSTER)
    created = {"creationTimestamp": "2026-11-21T03:00:00Z"}
    pods = [pod | {"metadata": pod["metadata"] | created} for pod in manifest.pods.values()]
    return [event for pod in pods for event in reader.read_object("pod", pod, 0.0)]


@pytest.mark.parametrize("observe", [observe_as_scheduler, observe_as_kube_events])
def test_pods_that_were_placed_before_hold_what_they_carry(observe: Any) -> None:
    pods = [event for event in observe() if isinstance(event, PodObserved) and event.node == "node1"]
    held: Counter[str] = Counter()
    for pod in pods:
        for device in pod.allocations:
            held[device.uuid] += device.memory_mib or 0
    assert {uuid: held[uuid] for uuid in HELD_ON_NODE1} == HELD_ON_NODE1
    chat = next(pod for pod in pods if pod.pod.name == "chat-0")
    assert (chat.phase, chat.bind_phase) == ("Running", "success")
    assert [(device.container, device.cores_percent) for device in chat.allocations] == [
        ("main0", 80), ("main1", 80), ("main2", 80),
    ]  # fmt: skip


def an_allocated_pod(text: str, containers: list[Json], init: list[Json] | None = None) -> Json:
    pod = a_pod(containers=containers, annotations={ASSIGNED_NODE: "node1", DEVICES_ALLOCATED: text})
    pod["spec"]["initContainers"] = init or []
    return pod


def test_init_containers_come_first_and_empty_places_are_kept() -> None:
    text = ";GPU-1,NVIDIA,1000,10:;;GPU-1,NVIDIA,2000,20:GPU-2,NVIDIA,2000,20:;"
    pod = an_allocated_pod(
        text, [a_container("side"), a_container("main")], [a_container("plain"), a_container("warm")]
    )
    assert list_allocations(pod) == [
        DeviceAllocation(uuid="GPU-1", container="warm", init=True, memory_mib=1000, cores_percent=10),
        DeviceAllocation(uuid="GPU-1", container="main", memory_mib=2000, cores_percent=20),
        DeviceAllocation(uuid="GPU-2", container="main", memory_mib=2000, cores_percent=20),
    ]


def test_without_the_empty_places_the_containers_are_not_known_but_the_amounts_are() -> None:
    pod = an_allocated_pod("GPU-1,NVIDIA,1000,10:;", [a_container("side"), a_container("main")])
    assert list_allocations(pod) == [DeviceAllocation(uuid="GPU-1", container="", memory_mib=1000, cores_percent=10)]


def test_every_vendors_annotation_counts_and_a_broken_one_holds_nothing() -> None:
    annotations = {
        DEVICES_ALLOCATED: "GPU-1,NVIDIA;", "hami.io/dcu-devices-allocated": "DCU-1,DCU,512,5:;",
        "hami.io/vgpu-devices-to-allocate": "GPU-9,NVIDIA,1,1:;",
    }  # fmt: skip
    assert [device.uuid for device in list_allocations(a_pod(annotations=annotations))] == ["DCU-1"]


@pytest.mark.parametrize("pod", [{}, {"metadata": 3}, {"metadata": {"annotations": {DEVICES_ALLOCATED: 3}}}])
def test_any_object_is_read_without_an_error(pod: Json) -> None:
    assert list_allocations(pod) == []


def test_a_pod_that_is_not_bound_holds_nothing_yet() -> None:
    pod = an_allocated_pod("GPU-1,NVIDIA,1000,10:;", [a_container("main")])
    pod["metadata"]["creationTimestamp"] = "2026-11-21T03:00:00Z"
    (waiting,) = KubeEvents().read_object("pod", pod, 0.0)
    assert isinstance(waiting, PodObserved)
    assert waiting.allocations == []


def test_the_scheduler_reports_an_earlier_pod_once_and_none_that_it_bound_itself() -> None:
    events = Collected()
    observer = Observer(Identity("default", "hami"), ClusterColumns(), Claims(), events, lambda: NOW)  # type: ignore[arg-type]
    observer.on_node(a_node("node1"))
    events.clear()
    earlier = an_allocated_pod("GPU-1,NVIDIA,1000,10:;", [a_container("main")])
    earlier["spec"]["nodeName"] = "node1"
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-20T03:00:00Z"}
    earlier["status"] = {"phase": "Running", "conditions": [scheduled]}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True}
    earlier["metadata"] |= {"ownerReferences": [owner], "labels": {"runai/queue": "blue"}}
    earlier["spec"]["serviceAccountName"] = "trainer"
    # As the watch of a real cluster delivers it.
    earlier = slim_pod(earlier)
    observer.on_pod(earlier)
    observer.on_pod(earlier)
    (event,) = events
    assert isinstance(event, PodObserved)
    assert [device.uuid for device in event.allocations] == ["GPU-1"]
    assert event.description is not None
    assert (event.description.workload, event.description.queue) == ("Job/train", "blue")
    assert event.description.service_account == "trainer"
    assert str(event.conditions[0].last_transition_at) == "2026-11-20 03:00:00+00:00"
    events.clear()
    ours = an_allocated_pod("GPU-2,NVIDIA,1000,10:;", [a_container("main")])
    ours["metadata"] |= {"name": "pod2", "uid": "uid-pod2"}
    observer.on_pod(ours)
    ours = ours | {"spec": ours["spec"] | {"nodeName": "node1"}}
    observer.on_pod(ours)
    assert events == []


AN_INSTANCE = '"gpuUUID":"GPU-1","profile":"2g.10gb","placement":{"start":4,"size":2}'
ITS_RUNTIME = '"migUUID":"MIG-1","gpuInstanceID":3,"computeInstanceID":0'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("null", ()),
        # As Go's decoder: what is absent or null is zero.
        (f"[{{{AN_INSTANCE}}}]", (MigAllocation(0, 0, "GPU-1", "2g.10gb", Placement(4, 2)),)),
        (
            '[{"containerIndex":null,"DEVICEINDEX":2,"gpuUUID":"GPU-1","profile":"7g.40gb","placement":{"size":8}}]',
            (MigAllocation(0, 2, "GPU-1", "7g.40gb", Placement(0, 8)),),
        ),
        (
            f'[{{"containerIndex":1,"deviceIndex":0,{AN_INSTANCE},{ITS_RUNTIME}}}]',
            (MigAllocation(1, 0, "GPU-1", "2g.10gb", Placement(4, 2), "MIG-1", 3, 0),),
        ),
    ],
)
def test_mig_instances_are_read_with_gos_zero_values(text: str, expected: tuple[MigAllocation, ...]) -> None:
    assert decode_mig(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is not JSON"),
        ("{}", "is not a JSON array"),
        ("[3]", "entry 0 is not a JSON object"),
        (f"[{{{AN_INSTANCE}}}, {{{AN_INSTANCE}}}]", "names one device of one container twice"),
        ('[{"gpuUUID":"GPU-1","profile":"p"}]', "entry 0 is incomplete"),
        (f'[{{{AN_INSTANCE},"migUUID":"MIG-1"}}]', "entry 0 has some of migUUID, gpuInstanceID, computeInstanceID"),
        (f'[{{{AN_INSTANCE},"gpuInstanceID":0}}]', "entry 0 has some of migUUID, gpuInstanceID, computeInstanceID"),
        (f'[{{{AN_INSTANCE},"deviceIndex":true}}]', "field deviceindex is True"),
        (f'[{{{AN_INSTANCE},"deviceIndex":-1}}]', "field deviceindex is -1"),
        (f'[{{{AN_INSTANCE},"deviceIndex":{2**63}}}]', f"field deviceindex is {2**63}"),
        ('[{"gpuUUID":7}]', "field gpuuuid is 7, write a string"),
    ],
)
def test_a_damaged_list_of_mig_instances_names_its_entry(text: str, problem: str) -> None:
    with pytest.raises(AllocationError, match=problem):
        decode_mig(text)


def test_an_index_may_have_63_bits_and_a_slice_32() -> None:
    span = f'"placement":{{"start":{2**32 - 1},"size":{2**32 - 1}}}'
    (row,) = decode_mig(f'[{{"deviceIndex":{2**63 - 1},"gpuUUID":"G","profile":"p",{span}}}]')
    assert (row.device, row.placement) == (2**63 - 1, Placement(2**32 - 1, 2**32 - 1))
    with pytest.raises(AllocationError, match="field start"):
        decode_mig(f'[{{"gpuUUID":"G","profile":"p","placement":{{"start":{2**32},"size":1}}}}]')
