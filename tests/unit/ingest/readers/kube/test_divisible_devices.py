"""Devices that Koordinator and Volcano give parts of: observed with their holders, and judged for refused pods."""

from typing import Any

from engine.diagnosis.waiting import derive_wait
from ingest.readers.kube import KubeEvents
from schemas.events import AttemptSummarized, NodeRegistered, PodObserved
from schemas.json_types import Json
from tests.support.builders import divisible_devices as devices
from tests.support.builders.api_server_objects import an_event, list_attempts
from tests.support.builders.watched_clusters import WatchedCluster, a_pod, list_reasons


def a_waiting_pod(scheduler: str, amounts: Json) -> Json:
    pod = a_pod()
    pod["spec"]["schedulerName"] = scheduler
    pod["spec"]["containers"][0]["resources"] = {"limits": amounts, "requests": amounts}
    return pod


def read_attempt(scheduler: str, message: str, pod: Json, *objects: Json) -> AttemptSummarized:
    cluster = WatchedCluster()
    cluster.put(*objects)
    event = an_event("FailedScheduling", message, scheduler=scheduler)
    (attempt,) = list_attempts(cluster.read(("pod", pod), ("event", event)))
    return attempt


def observe(kind: Any, value: Json) -> Any:
    (event,) = KubeEvents().read_object(kind, value, 0.0)
    return event


def test_koordinators_object_is_observed_as_the_devices_of_its_node() -> None:
    registered = observe("device", devices.a_device("n0", sick=1))
    assert isinstance(registered, NodeRegistered)
    assert (registered.node, registered.uuid) == ("n0", ["n0/gpu-0", "n0/gpu-1", "n0/rdma-0"])
    assert registered.healthy == [True, False, True]
    assert registered.memory_mib.tolist() == [81920, 81920, 0]


def test_a_pod_is_observed_with_the_parts_that_it_holds() -> None:
    pod = observe("pod", devices.a_koordinator_holder("train", "n0", 1, 50))
    assert isinstance(pod, PodObserved)
    assert [(held.uuid, held.cores_percent) for held in pod.allocations] == [("n0/gpu-1", 50)]
    pod = observe("pod", devices.a_volcano_holder("serve", "v0", "v0-a,NVIDIA,16000,30:;"))
    assert isinstance(pod, PodObserved)
    (held,) = pod.allocations
    assert (held.uuid, held.container, held.memory_mib, held.cores_percent) == ("v0-a", "main", 16000, 30)


def test_volcanos_registration_is_observed_as_the_devices_of_its_node() -> None:
    events = KubeEvents().read_object("node", devices.a_vgpu_node("v0"), 0.0)
    (registered,) = [event for event in events if isinstance(event, NodeRegistered)]
    assert (registered.uuid, registered.slots.tolist()) == (["v0-a", "v0-b"], [10, 10])


def test_counts_of_koordinator_prove_the_devices_that_lack() -> None:
    pod = a_waiting_pod("koord-scheduler", dict.fromkeys(devices.OF_KOORDINATOR, "60"))
    attempt = read_attempt(
        "koord-scheduler", "0/1 nodes are available: 1 Insufficient gpu devices.", pod,
        devices.a_node("n0", devices.OF_KOORDINATOR), devices.a_device("n0", sick=1),
        devices.a_koordinator_holder("train", "n0", 0, 50),
    )  # fmt: skip
    assert attempt.reconstruction
    assert attempt.reconstruction.agreement == "equal"
    assert list_reasons(attempt) == {"n0": "Insufficient gpu devices"}
    wait = derive_wait(attempt)
    assert wait
    assert wait.code == "DeviceShareShort"
    assert "gpu-0 of n0 is nearest" in wait.sentence_en


def test_counts_of_volcano_prove_the_devices_that_lack() -> None:
    pod = a_waiting_pod("volcano", {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "40960"})
    attempt = read_attempt(
        "volcano", "0/1 nodes are unavailable: 1 hami-vgpuDeviceSharing error.", pod, devices.a_vgpu_node("v0")
    )
    assert attempt.reconstruction
    assert attempt.reconstruction.agreement == "equal"
    wait = derive_wait(attempt)
    assert wait
    assert wait.code == "SharedDeviceTooSmall"
