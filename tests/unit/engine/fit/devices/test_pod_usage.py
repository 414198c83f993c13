"""Devices that one pod holds: worked out by hand from HAMi's rules for init containers, sidecars and MIG instances.

HAMi's `getNodesUsage` and `initContainer.go`: app containers add up, init containers count by their largest, a pod
holds the larger of the two, and only its app containers' part once every init container has succeeded.
"""

from dataclasses import replace
from typing import Any

import pytest

from engine.fit.devices.pod_usage import (
    DeviceUse,
    PodUse,
    build_pod_use,
    explain_overclaim,
    has_ended,
    is_leaving,
    list_sidecars,
    read_pod_use,
)
from engine.hami.allocation import AllocatedDevice, AllocationError, MigAllocation
from engine.hami.mig import Placement
from engine.hami.releases import RULES, RULES_OF_2_10, HamiRelease, ReleaseRules
from engine.hami.vendor_catalog import HYGON
from engine.hami.vendors import NVIDIA, Vendors
from schemas.json_types import Json

V2_10, V2_11 = RULES_OF_2_10, RULES[HamiRelease(2, 11)]
NODE, ALLOCATED = "hami.io/vgpu-node", "hami.io/vgpu-devices-allocated"
DCU = "hami.io/dcu-devices-allocated"


def get_vendors(rules: ReleaseRules = V2_10) -> Vendors:
    return replace(NVIDIA, rules=rules), replace(HYGON, rules=rules)


def a_pod(devices: str = "", init: list[Json] | None = None, statuses: Any = None) -> Json:
    """Build a pod on n1 with the text of its devices; init containers come first in it."""
    annotations = {NODE: "n1"} | ({ALLOCATED: devices} if devices else {})
    return {
        "metadata": {"namespace": "ml", "name": "train", "annotations": annotations},
        "spec": {"initContainers": init or [], "containers": [{"name": "main"}]},
        "status": {"phase": "Running", "initContainerStatuses": statuses},
    }


def read(pod: Json, rules: ReleaseRules = V2_10, *, is_first_sight: bool = False) -> PodUse:
    use = read_pod_use(pod, get_vendors(rules), is_first_sight=is_first_sight)
    assert use
    return use


def get_amounts(use: PodUse) -> dict[str, tuple[int, int, int]]:
    """Return MiB, cores and slots by device."""
    return {uuid: (share.memory_mib, share.cores, share.slots) for uuid, share in use.by_uuid.items()}


INIT, SIDECAR = {"name": "init"}, {"name": "side", "restartPolicy": "Always"}


def terminate(name: str, code: int = 0) -> Json:
    return {"name": name, "state": {"terminated": {"exitCode": code}}}


RUNNING = {"name": "init", "state": {"running": {}}}


def test_app_containers_add_up_by_device() -> None:
    use = read(a_pod("A,NVIDIA,3000,30:;A,NVIDIA,1000,0:B,NVIDIA,500,5:;"))
    assert (use.node, use.namespace, use.name, use.app_class) == ("n1", "ml", "train", "")
    assert get_amounts(use) == {"A": (4000, 30, 2), "B": (500, 5, 1)}
    assert {share.vendor for share in use.by_uuid.values()} == {"NVIDIA"}
    assert [len(container) for container in use.held["NVIDIA"]] == [1, 2, 0]


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        # Memory of the first init container, cores of the second, and one slot of them.
        ("A,NVIDIA,9000,10:;A,NVIDIA,100,50:;A,NVIDIA,2000,20:;", (9000, 50, 1)),
        # The app container is the larger one.
        ("A,NVIDIA,100,10:;A,NVIDIA,100,5:;A,NVIDIA,2000,20:A,NVIDIA,1,1:;", (2001, 21, 2)),
        ("A,NVIDIA,100,10:;;;", (100, 10, 1)),
    ],
)
def test_an_init_container_counts_by_the_larger_amount(devices: str, expected: tuple[int, int, int]) -> None:
    assert get_amounts(read(a_pod(devices, [INIT, INIT]))) == {"A": expected}


HELD = "A,NVIDIA,9000,90:;A,NVIDIA,2000,20:;"
LARGER, APP = (9000, 90, 1), (2000, 20, 1)


@pytest.mark.parametrize(
    ("init", "statuses", "is_first_sight", "expected"),
    [
        ([INIT], [terminate("init")], False, APP),
        # HAMi counts the init containers of a pod that it sees for the first time until the next event.
        ([INIT], [terminate("init")], True, LARGER),
        ([INIT], [terminate("init", 1)], False, LARGER),
        ([INIT], [RUNNING], False, LARGER),
        ([INIT], [], False, LARGER),
        ([INIT], None, False, LARGER),
        ([INIT], "unreadable", False, LARGER),
        ([INIT], [{"name": "init", "state": {"terminated": {}}}], False, LARGER),
        # Up to v2.10 HAMi counts the statuses, without their names.
        ([INIT], [terminate("other")], False, APP),
        ([INIT], [terminate("init"), terminate("more")], False, APP),
        ([INIT], [terminate("init"), RUNNING], False, LARGER),
    ],
)
def test_ended_init_containers_give_their_devices_back(
    init: list[Json], statuses: Any, is_first_sight: bool, expected: tuple[int, int, int]
) -> None:
    assert get_amounts(read(a_pod(HELD, init, statuses), is_first_sight=is_first_sight)) == {"A": expected}


def test_a_status_of_one_of_two_init_containers_gives_nothing_back() -> None:
    pod = a_pod("A,NVIDIA,9000,90:;A,NVIDIA,1,1:;A,NVIDIA,2000,20:;", [INIT, INIT], [terminate("init")])
    assert get_amounts(read(pod)) == {"A": LARGER}


def test_a_device_of_an_ended_init_container_is_free() -> None:
    pod = a_pod("B,NVIDIA,9000,90:;A,NVIDIA,2000,20:;", [INIT], [terminate("init")])
    assert get_amounts(read(pod)) == {"A": APP}


# A sidecar of 1,000 MiB, an init container of 4,000 MiB, and an app container of 2,000 MiB.
SIDECAR_FIRST = "A,NVIDIA,1000,10:;A,NVIDIA,4000,40:;A,NVIDIA,2000,20:;"
SIDECAR_LAST = "A,NVIDIA,4000,40:;A,NVIDIA,1000,10:;A,NVIDIA,2000,20:;"


@pytest.mark.parametrize(
    ("rules", "devices", "init", "expected"),
    [
        # While the init container runs, the sidecar before it holds its part as well.
        (V2_11, SIDECAR_FIRST, [SIDECAR, INIT], (5000, 50, 2)),
        # The sidecar after it starts later; then it and the app container hold 3,000.
        (V2_11, SIDECAR_LAST, [INIT, SIDECAR], (4000, 40, 2)),
        (V2_11, "A,NVIDIA,4000,40:;A,NVIDIA,1000,10:;A,NVIDIA,5000,50:;", [SIDECAR, SIDECAR], (10000, 100, 3)),
        # v2.10 takes a sidecar for an init container.
        (V2_10, SIDECAR_FIRST, [SIDECAR, INIT], (4000, 40, 1)),
        (V2_10, SIDECAR_LAST, [INIT, SIDECAR], (4000, 40, 1)),
    ],
)
def test_a_sidecar_holds_its_devices_next_to_all_that_start_after_it(
    rules: ReleaseRules, devices: str, init: list[Json], expected: tuple[int, int, int]
) -> None:
    assert get_amounts(read(a_pod(devices, init), rules)) == {"A": expected}


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([terminate("init")], (3000, 30, 2)),
        ([{"name": "side", "state": {"running": {}}}, terminate("init")], (3000, 30, 2)),
        ([terminate("side"), RUNNING], (5000, 50, 2)),
        ([terminate("side")], (5000, 50, 2)),
        ([terminate("init", 1)], (5000, 50, 2)),
        (None, (5000, 50, 2)),
    ],
)
def test_sidecars_hold_on_while_init_containers_end_by_their_own_status(
    statuses: Any, expected: tuple[int, int, int]
) -> None:
    """Since v2.11 HAMi looks for the status of each init container by name."""
    assert get_amounts(read(a_pod(SIDECAR_FIRST, [SIDECAR, INIT], statuses), V2_11)) == {"A": expected}


def test_every_init_container_has_to_succeed_before_its_devices_are_free() -> None:
    devices = "A,NVIDIA,1000,10:;A,NVIDIA,4000,40:;A,NVIDIA,1,1:;A,NVIDIA,2000,20:;"
    pod = a_pod(devices, [SIDECAR, INIT, {"name": "last"}], [terminate("init"), {"name": "last", "state": {}}])
    assert get_amounts(read(pod, V2_11)) == {"A": (5000, 50, 2)}


@pytest.mark.parametrize(
    ("containers", "positions"),
    [
        ([SIDECAR, INIT, SIDECAR], {0, 2}),
        ([{"restartPolicy": "OnFailure"}, "text", None], set()),
        ("text", set()),
        (None, set()),
    ],
)
def test_sidecars_are_init_containers_that_always_restart(containers: Any, positions: set[int]) -> None:
    assert list_sidecars({"spec": {"initContainers": containers}}) == positions


@pytest.mark.parametrize("init", [None, "text", {"name": "init"}])
def test_a_pod_without_a_list_of_init_containers_has_none(init: Any) -> None:
    pod = a_pod("A,NVIDIA,9000,90:;A,NVIDIA,2000,20:;", statuses=[])
    pod["spec"]["initContainers"] = init
    assert get_amounts(read(pod)) == {"A": (11000, 110, 2)}


def test_devices_of_several_vendors_are_read_from_their_annotations() -> None:
    pod = a_pod("A,NVIDIA,3000,30:;")
    pod["metadata"]["annotations"][DCU] = "D,DCU,4000,40:;"
    use = read(pod)
    assert get_amounts(use) == {"A": (3000, 30, 1), "D": (4000, 40, 1)}
    assert {uuid: share.vendor for uuid, share in use.by_uuid.items()} == {"A": "NVIDIA", "D": "DCU"}
    assert use.sum_quota_use() == {"NVIDIA": (3000, 30), "DCU": (4000, 40)}
    assert set(read(a_pod("A,NVIDIA,3000,30:;")).held) == {"NVIDIA"}


def test_what_counts_against_a_quota_is_the_sum_of_the_devices() -> None:
    assert read(a_pod("A,NVIDIA,3000,30:B,NVIDIA,500,5:;")).sum_quota_use() == {"NVIDIA": (3500, 35)}


MIG = '[{"containerIndex":0,"deviceIndex":0,"gpuUUID":"A","profile":"1g.5gb","placement":{"start":2,"size":1}}]'


@pytest.mark.parametrize(
    ("text", "instances"), [(MIG, (("1g.5gb", Placement(2, 1)),)), ("not JSON", ()), ("", ()), (7, ())]
)
def test_mig_instances_are_on_their_device(text: Any, instances: Any) -> None:
    """HAMi keeps the shares of the device annotation where the instances cannot be read."""
    pod = a_pod("A,NVIDIA,4864,14:B,NVIDIA,1,1:;")
    pod["metadata"]["annotations"]["hami.io/vgpu-mig-allocations"] = text
    use = read(pod)
    assert use.by_uuid == {"A": DeviceUse(4864, 14, 1, instances), "B": DeviceUse(1, 1, 1)}


def test_instances_outlast_the_init_container_that_had_them() -> None:
    mig = [MigAllocation(0, 0, "A", "1g.5gb", Placement(0, 1)), MigAllocation(1, 0, "B", "2g.10gb", Placement(2, 2))]
    held = {"NVIDIA": [[AllocatedDevice("A", "NVIDIA", 4864, 14)], [AllocatedDevice("B", "NVIDIA", 9856, 28)]]}
    use = build_pod_use("n1", "ml", "p", held, mig, init_containers=1, init_done=True)
    assert use.by_uuid == {
        "A": DeviceUse(0, 0, 0, (("1g.5gb", Placement(0, 1)),)),
        "B": DeviceUse(9856, 28, 1, (("2g.10gb", Placement(2, 2)),)),
    }


def test_only_devices_of_nvidia_have_instances() -> None:
    mig = [MigAllocation(0, 0, "D", "1g.5gb", Placement(0, 1))]
    held = {"DCU": [[AllocatedDevice("D", "DCU", 4864, 14)]]}
    use = build_pod_use("n1", "ml", "p", held, mig, init_containers=0, init_done=False)
    assert use.by_uuid == {"D": DeviceUse(4864, 14, 1, (), "DCU")}


def test_uses_of_the_same_devices_are_equal_whatever_the_pod_is_called() -> None:
    """A difference in names or containers changes no state of a node."""
    use = read(a_pod("A,NVIDIA,3000,30:;"))
    assert replace(use, name="other", held={}) == use
    assert replace(use, app_class="online") != use


def test_a_fifth_field_is_the_number_of_slots_since_v2_11() -> None:
    pod = a_pod("A,NVIDIA,3000,30,3:;")
    assert get_amounts(read(pod, V2_11)) == {"A": (3000, 30, 3)}
    assert get_amounts(read(pod)) == {"A": (3000, 30, 1)}


@pytest.mark.parametrize(
    "pod",
    [
        {},
        {"metadata": None},
        {"metadata": {"annotations": {ALLOCATED: "A,NVIDIA,3000,30:;"}}},
        {"metadata": {"annotations": {NODE: 7}}},
    ],
)
def test_a_pod_without_a_node_was_never_placed(pod: Json) -> None:
    assert read_pod_use(pod, get_vendors(), is_first_sight=True) is None


def test_a_pod_without_names_holds_its_devices_anyway() -> None:
    pod = {"metadata": {"namespace": 7, "annotations": {NODE: "n1", ALLOCATED: "A,NVIDIA,3000,30:;"}}}
    use = read(pod)
    assert (use.namespace, use.name, get_amounts(use)) == ("", "", {"A": (3000, 30, 1)})


def test_a_placed_pod_without_devices_holds_nothing() -> None:
    assert read(a_pod()).by_uuid == {}


def test_devices_that_cannot_be_read_raise_an_error() -> None:
    with pytest.raises(AllocationError, match="3 fields"):
        read(a_pod("A,NVIDIA,3000:;"))


def test_the_class_of_an_app_of_metax_is_read() -> None:
    pod = a_pod()
    pod["metadata"]["annotations"]["metax-tech.com/sgpu-app-class"] = "online"
    assert read(pod).app_class == "online"
    pod["metadata"]["annotations"]["metax-tech.com/sgpu-app-class"] = 7
    assert read(pod).app_class == ""


@pytest.mark.parametrize(
    ("phase", "expected"),
    [("Succeeded", True), ("Failed", True), ("Running", False), ("Pending", False), (None, False), (["Failed"], False)],
)
def test_a_pod_has_ended_by_its_phase(phase: Any, expected: bool) -> None:
    """https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-phase"""
    assert has_ended({"status": {"phase": phase}}) is expected
    assert has_ended({}) is False


def test_a_pod_leaves_from_the_time_of_its_deletion() -> None:
    assert is_leaving({"metadata": {"deletionTimestamp": "2026-11-21T03:00:00Z"}})
    assert not is_leaving({"metadata": {}})
    assert not is_leaving({})


SINGLE, TWO = "A,NVIDIA,100,10:;", "A,NVIDIA,100,10:B,NVIDIA,100,10:;"


def ask(**amounts: Any) -> Json:
    """Build a container; amounts: limits and requests of nvidia.com/gpu."""
    return {"resources": {kind: {"nvidia.com/gpu": count} for kind, count in amounts.items()}}


@pytest.mark.parametrize(
    ("annotations", "spec", "cause"),
    [
        ({ALLOCATED: TWO}, {"containers": [ask(limits=1), ask(limits="1")]}, ""),
        ({ALLOCATED: TWO}, {"containers": [ask(limits=1)]}, "it names 2 devices of NVIDIA, the pod asks for 1"),
        ({ALLOCATED: TWO}, {"initContainers": [ask(requests=1)], "containers": [ask(limits=1)]}, ""),
        # A limit comes before a request, also where it is 0.
        (
            {ALLOCATED: SINGLE}, {"containers": [ask(limits=0, requests=1)]},
            "it names 1 devices of NVIDIA, the pod asks for 0",
        ),
        ({ALLOCATED: SINGLE}, {"containers": [ask(limits="x")]}, "it names 1 devices of NVIDIA, the pod asks for 0"),
        ({ALLOCATED: "A,NVIDIA,-1,0:;"}, {"containers": [ask(limits=1)]}, "an amount is negative"),
        ({ALLOCATED: "A,NVIDIA,0,-1:;"}, {"containers": [ask(limits=1)]}, "an amount is negative"),
        ({ALLOCATED: "A,NVIDIA,0,0:;"}, {"containers": [ask(limits=1)]}, ""),
        ({DCU: "D,DCU,100,10:;"}, {"containers": [ask(limits=1)]}, "it names 1 devices of DCU, the pod asks for 0"),
        ({DCU: "D,DCU,100,10:;"}, {"containers": [{"resources": {"limits": {"hygon.com/dcunum": 1}}}]}, ""),
        ({ALLOCATED: 7}, {}, ""),
    ],
)  # fmt: skip
def test_annotations_name_no_more_than_the_pod_asks_for(annotations: Json, spec: Json, cause: str) -> None:
    pod = {"metadata": {"annotations": {NODE: "n1", **annotations}}, "spec": spec}
    assert explain_overclaim(pod, get_vendors()) == cause


def test_a_pod_that_names_no_node_claims_nothing() -> None:
    assert explain_overclaim({"metadata": {"annotations": {ALLOCATED: TWO}}, "spec": {}}, get_vendors()) == ""


def test_an_unreadable_list_of_devices_is_its_own_cause() -> None:
    pod = {"metadata": {"annotations": {NODE: "n1", ALLOCATED: "A,NVIDIA;"}}, "spec": {"containers": [ask(limits=1)]}}
    assert "2 fields" in explain_overclaim(pod, get_vendors())
