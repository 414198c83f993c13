"""Devices of other vendors than NVIDIA: each vendor's example node, and the rules that all vendors share."""

import json
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.fit import device_config
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, NotOurs, SchedulingPolicy
from engine.fit.judge.reservation import reserve
from scheduler.cluster.kubernetes.slim import slim_node
from tests.support.builders.vendor_examples import NAMES, VENDORS, read_node, read_pod

WITH_CORES = ("ascend", "hygon", "cambricon", "iluvatar", "metax")


def a_cluster(name: str) -> ClusterColumns:
    columns = ClusterColumns(VENDORS)
    columns.apply_node(read_node(name))
    return columns


def decide_pod(columns: ClusterColumns, pod: dict[str, Any]) -> Decision:
    answer = decide(columns, pod, columns.node_names, SchedulingPolicy())
    assert isinstance(answer, Decision)
    return answer


def read_reason(columns: ClusterColumns, pod: dict[str, Any]) -> str:
    (recorded,) = decide_pod(columns, pod).list_failed_nodes().values()
    return recorded


@pytest.mark.parametrize(
    ("name", "key", "devices"),
    [
        # The webhook rounds to the sizes that an Ascend can be cut into. The last device is out of order.
        ("ascend", "hami.io/Ascend910B3-devices", "Ascend910B3-2,Ascend910B3,10240,0:;"),
        ("hygon", "hami.io/dcu-devices", "DCU-3,DCU,2000,60:;"),
        ("cambricon", "hami.io/cambricon-mlu-devices", "mlu-node-cambricon-mlu-1,MLU,10240,50:;"),
        ("iluvatar", "hami.io/MR-V100-devices", "ILU-0,MR-V100,16384,50:;"),
        ("metax", "hami.io/metax-sgpu-devices", "GPU-mx-1,Metax-SGPU,16384,40:;"),
        # The last first, as HAMi answered case 526 of the second collection (tests/conformance).
        ("gcu", "hami.io/enflame-gcu-devices", "gcu-node-GCU-7,GCU,100,100:gcu-node-GCU-6,GCU,100,100:;"),
    ],
)
def test_a_pod_gets_a_part_of_a_device_under_its_vendors_keys(name: str, key: str, devices: str) -> None:
    columns = a_cluster(name)
    decision = decide_pod(columns, read_pod(name))
    node = decision.chosen
    written = {"hami.io/vgpu-node": node, f"{key}-to-allocate": devices, f"{key}-allocated": devices}
    assert decision.annotations.items() >= written.items()


@pytest.mark.parametrize("name", NAMES)
def test_what_a_pod_holds_is_held_until_it_is_gone(name: str) -> None:
    columns = a_cluster(name)
    pod = read_pod(name)
    decision = decide_pod(columns, pod)
    annotated = {**pod, "metadata": {**pod["metadata"], "annotations": decision.annotations}}
    columns.apply_pod(annotated)
    assert columns.devices["used_slots"].sum() > 0
    again = ClusterColumns(VENDORS)
    again.apply_node(read_node(name))
    reserve(again, decision, pod)
    assert again.get_pod_use("uid") == columns.get_pod_use("uid")
    columns.delete_pod("uid")
    assert columns.devices["used_slots"].sum() == columns.nodes["used_memory"].sum() == 0


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_of_a_watched_node_has_the_same_devices(name: str) -> None:
    node = read_node(name)
    columns = ClusterColumns(VENDORS)
    columns.apply_node(slim_node(node))
    assert columns.get_registration(node["metadata"]["name"]) == a_cluster(name).get_registration(
        node["metadata"]["name"]
    )
    assert columns.node_names


COUNTS = {
    "ascend": "huawei.com/Ascend910B3",
    "hygon": "hygon.com/dcunum",
    "cambricon": "cambricon.com/vmlu",
    "iluvatar": "iluvatar.ai/MR-V100-vgpu",
    "metax": "metax-tech.com/sgpu",
}


@pytest.mark.parametrize("name", WITH_CORES)
def test_more_devices_than_the_node_has_are_refused(name: str) -> None:
    assert read_reason(a_cluster(name), read_pod(name, limits={COUNTS[name]: 9})) == "NodeInsufficientDevice"


@pytest.mark.parametrize(
    ("name", "limits", "recorded"),
    [
        ("ascend", {"huawei.com/Ascend910B3": 4}, "1/4 CardNotHealth, 3/4 AllocatedCardsInsufficientRequest"),
        ("hygon", {"hygon.com/dcumem": 99999}, "1/4 CardNotHealth, 1/4 CardUuidMismatch, 2/4 CardInsufficientMemory"),
        ("cambricon", {"cambricon.com/mlu.smlu.vmemory": 97}, "2/2 CardInsufficientMemory"),
        ("iluvatar", {"iluvatar.ai/MR-V100.vMem": 129}, "1/2 CardInsufficientMemory, 1/2 CardUuidMismatch"),
        ("metax", {"metax-tech.com/vmemory": "65Gi"}, "2/2 CardInsufficientMemory"),
    ],
)
def test_health_memory_and_uuid_are_reported_in_nvidias_words(name: str, limits: dict[str, Any], recorded: str) -> None:
    assert read_reason(a_cluster(name), read_pod(name, limits=limits)) == recorded


def test_a_type_that_is_not_wanted_is_reported() -> None:
    pod = read_pod("hygon")
    pod["metadata"]["annotations"] = {"hygon.com/use-dcutype": "K100"}
    assert read_reason(a_cluster("hygon"), pod) == "1/4 CardNotHealth, 3/4 CardTypeMismatch"


@pytest.mark.parametrize("name", NAMES)
def test_cores_are_shared_out_until_there_are_none(name: str) -> None:
    columns, placed = a_cluster(name), 0
    for number in range(200):
        pod = read_pod(name, uid=f"uid-{number}")
        decision = decide_pod(columns, pod)
        if decision.chosen is None:
            break
        reserve(columns, decision, pod)
        placed += 1
    devices = columns.devices
    assert 0 < placed < 200
    assert (devices["used_memory"] <= devices["total_memory"]).all()
    assert (devices["used_slots"] <= devices["total_slots"]).all()
    assert (devices["used_cores"] <= devices["total_cores"]).all()


def test_a_pod_for_one_vendor_does_not_see_the_devices_of_another() -> None:
    assert (
        read_reason(a_cluster("mixed"), read_pod("hygon", limits={"hygon.com/dcunum": 3})) == "NodeInsufficientDevice"
    )
    assert read_reason(a_cluster("metax"), read_pod("hygon")) == "NodeInsufficientDevice"


def test_a_container_may_ask_for_two_vendors_at_once() -> None:
    decision = decide_pod(a_cluster("mixed"), read_pod("mixed"))
    assert decision.annotations == {
        "hami.io/vgpu-node": "mixed-node",
        "hami.io/vgpu-devices-to-allocate": ";GPU-0,NVIDIA,4096,0:;",
        "hami.io/vgpu-devices-allocated": ";GPU-0,NVIDIA,4096,0:;",
        "hami.io/dcu-devices-to-allocate": ";DCU-1,DCU,2000,100:;",
        "hami.io/dcu-devices-allocated": ";DCU-1,DCU,2000,100:;",
    }


def test_a_node_that_lacks_either_vendor_is_refused() -> None:
    both = read_pod("mixed", limits={"hygon.com/dcunum": 3})
    assert read_reason(a_cluster("mixed"), both) == "NodeInsufficientDevice"


def test_the_filter_asks_no_quota_for_hygon() -> None:
    columns = a_cluster("mixed")
    quota = {"limits.nvidia.com/gpumem": "4096", "limits.hygon.com/dcumem": "1000"}
    columns.apply_quota({"metadata": {"namespace": "default", "name": "q"}, "spec": {"hard": quota}})
    pod = read_pod("mixed")
    del pod["spec"]["containers"][-1]["resources"]["limits"]["hygon.com/dcunum"]
    assert decide_pod(columns, pod).chosen == "mixed-node"
    assert decide_pod(columns, read_pod("mixed")).chosen == "mixed-node"


def test_a_vendor_that_is_not_in_the_table_is_not_ours() -> None:
    columns = ClusterColumns()
    columns.apply_node(read_node("hygon"))
    assert isinstance(decide(columns, read_pod("hygon"), ["hygon-node"], SchedulingPolicy()), NotOurs)


def test_a_vendor_that_left_a_question_open_and_has_nothing_allocatable_is_given_up() -> None:
    node = read_node("hygon")
    columns = ClusterColumns(VENDORS)
    columns.apply_node(node)
    node["metadata"]["annotations"]["hami.io/node-handshake-dcu"] = "Requesting_2026-11-21 03:00:00"
    for allocatable, now, names in [("16", 60, 1), ("0", 59, 1), ("0", 60, 0), ("1", 61, 0)]:
        node["status"]["allocatable"] = {"hygon.com/dcunum": allocatable}
        columns.apply_node(node, datetime(2026, 11, 21, 3, now // 60, now % 60))  # noqa: DTZ001 - handshakes carry no zone
        assert len(columns.node_names) == names


def test_annotation_keys_of_nvidia_can_be_configured_too() -> None:
    text = b"nvidia: {annotations: {register: example.com/cards, allocated: example.com/held}}"
    columns = ClusterColumns(device_config.parse(text, "file"))
    node = read_node("mixed")
    value = node["metadata"]["annotations"]
    value["example.com/cards"] = value.pop("hami.io/node-nvidia-register")
    columns.apply_node(node)
    pod = read_pod("mixed")
    del pod["spec"]["containers"][-1]["resources"]["limits"]["hygon.com/dcunum"]
    assert decide_pod(columns, pod).annotations["example.com/held"] == ";GPU-0,NVIDIA,4096,0:;"


def test_a_broken_registration_of_one_vendor_leaves_the_others() -> None:
    node = read_node("mixed")
    node["metadata"]["annotations"]["hami.io/node-dcu-register"] = "DCU-0,4:"
    columns = ClusterColumns(VENDORS)
    columns.apply_node(node)
    assert columns.get_cause("mixed-node") == (
        "annotation hami.io/node-dcu-register, device 0: has 2 fields, write 7 or 9"
    )
    registration = columns.get_registration("mixed-node")
    assert registration is not None
    assert [device.uuid for device in registration.devices] == ["GPU-0"]


_WORDS = st.sampled_from(["[null]", "[]", "{}", "a,1:", "1"])
_VALUE = st.none() | st.booleans() | st.integers() | st.text(max_size=6) | _WORDS
_KEYS = [key for vendor in VENDORS for key in (vendor.node.register, vendor.pod.allocated, vendor.pod.use_uuid) if key]
_ANNOTATIONS = st.dictionaries(st.sampled_from([*_KEYS, "hami.io/vgpu-node"]), _VALUE, max_size=4)
_METAX_FIELDS = st.sampled_from(["uuid", "totalDevCount", "totalVRam", "healthy", "numa"])
_METAX = st.lists(st.dictionaries(_METAX_FIELDS, _VALUE) | _VALUE, max_size=3)
_CAPACITY = st.dictionaries(
    st.sampled_from(["cambricon.com/mlu.smlu.vcore", "cambricon.com/mlu.smlu.vmemory"]),
    _VALUE | st.sampled_from(["200", str(10**18), "-5", "1k"]),
)


@given(_ANNOTATIONS, _METAX, _CAPACITY, _ANNOTATIONS, st.sampled_from(NAMES))
def test_any_node_and_pod_of_any_vendor_is_judged(
    value: dict[str, Any], metax: list[Any], capacity: dict[str, Any], held: dict[str, Any], name: str
) -> None:
    columns = a_cluster(name)
    annotations = {**value, "metax-tech.com/node-gpu-devices": json.dumps(metax)}
    status = {"capacity": capacity}
    columns.apply_node({"metadata": {"name": "other", "annotations": annotations}, "status": status})
    columns.apply_pod({"metadata": {"name": "held", "uid": "held", "annotations": held}})
    pod = read_pod(name)
    pod["metadata"]["annotations"] = held
    decide(columns, pod, columns.node_names, SchedulingPolicy())


def test_a_device_of_another_vendor_in_the_mode_mig_is_given_as_a_whole() -> None:
    node = {
        "metadata": {
            "name": "node-a",
            "annotations": {"hami.io/node-dcu-register": "DCU-0,4,16368,100,DCU-Z100L,0,true,2,mig:"},
        },
        "status": {"allocatable": {"hygon.com/dcunum": "4"}},
    }
    columns = ClusterColumns(VENDORS)
    columns.apply_node(node)
    limits = {"hygon.com/dcunum": "1"}
    pod = {
        "metadata": {"name": "pod", "namespace": "default", "uid": "uid"},
        "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]},
    }
    decision = decide_pod(columns, pod)
    assert decision.annotations["hami.io/dcu-devices-allocated"] == "DCU-0,DCU,16368,100:;"
