"""Rules of HAMi after v2.10: amounts and verdicts are those of HAMi's own tests and sources of autumn 2026."""

from collections.abc import Sequence
from typing import Any

import pytest

from engine.admission.admit import AdmissionRules, Admitted, Denied, admit
from engine.fit import device_config
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.quota import Quotas
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Failed, NotOurs, SchedulingPolicy
from engine.fit.judge.request.pod_annotations import read_pod_annotations
from engine.fit.judge.reservation import reserve
from engine.hami.allocation import AllocatedDevice, AllocationError, decode_devices, encode_devices
from engine.hami.releases import RULES_OF_2_10, HamiRelease, choose_rules, parse_release
from engine.hami.vendors import Vendors, find_vendor
from tests.support.builders.nodes_to_judge import (
    a_device,
    a_node,
    a_pod,
    a_quota,
    a_running_pod,
    ask_for,
    decide_on,
    get_reason,
    list_granted_uuids,
)

OLD, NEW = HamiRelease(2, 10), HamiRelease(2, 11)
RULES = choose_rules(NEW)
Share = tuple[str, int, int, str]
"""Kind of a container (init, sidecar or app), MiB and percent of its device, and the device."""


def list_vendors(release: HamiRelease) -> Vendors:
    return device_config.read_shipped(release)


def a_cluster_of(release: HamiRelease, *nodes: dict[str, Any]) -> ClusterColumns:
    columns = ClusterColumns(list_vendors(release))
    for node in nodes or [a_node()]:
        columns.apply_node(node)
    return columns


def a_container_of(kind: str, memory: int = 0, cores: int = 0) -> dict[str, Any]:
    container = ask_for(gpumem=memory, gpucores=cores) if memory else {"name": "main"}
    return {**container, **({"restartPolicy": "Always"} if kind == "sidecar" else {})}


def a_pod_of(*containers: dict[str, Any], init: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return a_pod(*containers, init=init)


def test_a_release_has_the_rules_of_the_newest_one_in_the_table_before_it() -> None:
    assert (parse_release("v2.11.0"), parse_release("2.10")) == (NEW, OLD)
    assert choose_rules(HamiRelease(2, 8)) == choose_rules(OLD) == RULES_OF_2_10
    assert choose_rules(HamiRelease(2, 12)) == RULES != RULES_OF_2_10


@pytest.mark.parametrize(
    ("shares", "expected", "expected_later"),
    [
        ([("sidecar", 4000, 40, "G0"), ("app", 4000, 40, "G0")], {"G0": (8000, 80, 2)}, {"G0": (8000, 80, 2)}),
        (
            [("sidecar", 2000, 10, "G0"), ("init", 20000, 60, "G0"), ("app", 10000, 30, "G0")],
            {"G0": (22000, 70, 2)},
            {"G0": (12000, 40, 2)},
        ),
        (
            [("init", 20000, 60, "G0"), ("sidecar", 2000, 10, "G0"), ("app", 10000, 30, "G0")],
            {"G0": (20000, 60, 2)},
            {"G0": (12000, 40, 2)},
        ),
        ([("init", 4000, 40, "G0"), ("app", 4000, 40, "G0")], {"G0": (4000, 40, 1)}, {"G0": (4000, 40, 1)}),
        (
            [("sidecar", 3000, 10, "G0"), ("sidecar", 5000, 20, "G0"), ("app", 1000, 5, "G0")],
            {"G0": (9000, 35, 3)},
            {"G0": (9000, 35, 3)},
        ),
        (
            [("sidecar", 2000, 10, "G0"), ("init", 7000, 70, "G1"), ("app", 3000, 30, "G0")],
            {"G0": (5000, 40, 2), "G1": (7000, 70, 1)},
            {"G0": (5000, 40, 2)},
        ),
        (
            [("init", 5000, 10, "G0"), ("sidecar", 3000, 30, "G0"), ("init", 4000, 20, "G0"), ("app", 1000, 5, "G0")],
            {"G0": (7000, 50, 2)},
            {"G0": (4000, 35, 2)},
        ),
    ],
)
def test_sidecars_hold_their_devices_next_to_all_that_start_after_them(
    shares: list[Share], expected: dict[str, tuple[int, int, int]], expected_later: dict[str, tuple[int, int, int]]
) -> None:
    text = "".join(f"{uuid},NVIDIA,{memory},{cores}:;" for _, memory, cores, uuid in shares)
    columns, pod = a_cluster_of(NEW), a_running_pod(text)
    starting = [kind for kind, *_ in shares if kind != "app"]
    pod["spec"]["initContainers"] = [
        {**a_container_of(kind), "name": f"i{position}"} for position, kind in enumerate(starting)
    ]
    columns.apply_pod(pod)
    assert list_held(columns) == expected
    ended = {"state": {"terminated": {"exitCode": 0}}}
    ending = [container["name"] for container in pod["spec"]["initContainers"] if "restartPolicy" not in container]
    statuses = [{"name": name, **ended} for name in ending]
    columns.apply_pod({**pod, "status": {"phase": "Running", "initContainerStatuses": statuses}})
    assert list_held(columns) == expected_later


def list_held(columns: ClusterColumns) -> dict[str, tuple[int, int, int]]:
    (use,) = columns.list_pod_uses()
    return {uuid: (share.memory_mib, share.cores, share.slots) for uuid, share in use.by_uuid.items()}


SIDECAR_PODS = [
    # MiB of the device and of the quota, init containers, MiB of the app container, and whether the pod fits.
    (10000, [("init", 5000, 50), ("sidecar", 8000, 80)], 0, True),
    (10000, [("sidecar", 8000, 80), ("init", 5000, 50)], 0, False),
    (7500, [("init", 5000, 10), ("sidecar", 3000, 10), ("init", 4000, 10)], 1000, True),
    (7500, [("sidecar", 4000, 10)], 4000, False),
]


@pytest.mark.parametrize(("memory", "init", "app", "fits"), SIDECAR_PODS)
def test_containers_find_the_devices_as_the_sidecars_before_them_leave_them(
    memory: int, init: list[tuple[str, int, int]], app: int, fits: bool
) -> None:
    columns = a_cluster_of(NEW, a_node(devices=[a_device(devmem=memory)]))
    pod = a_pod_of(a_container_of("app", app, 10), init=[a_container_of(*container) for container in init])
    decision = decide_on(columns, pod)
    assert get_reason(decision) == (None if fits else "1/1 CardInsufficientMemory")
    if fits:
        reserve(columns, decision, pod)
        (held,) = list_held(columns).values()
        assert held[0] == (8000 if memory == 10000 else 7000)


@pytest.mark.parametrize(("memory", "init", "app", "fits"), SIDECAR_PODS)
def test_the_webhook_counts_sidecars_with_all_that_start_after_them(
    memory: int, init: list[tuple[str, int, int]], app: int, fits: bool
) -> None:
    quotas = Quotas()
    quotas.apply(a_quota(gpumem=memory, gpucores=100))
    pod = a_pod_of(a_container_of("app", app, 10), init=[a_container_of(*container) for container in init])
    answer = admit(pod, AdmissionRules(vendors=list_vendors(NEW)), quotas)
    assert isinstance(answer, Admitted if fits else Denied)


def test_up_to_2_10_a_sidecar_is_an_init_container() -> None:
    columns = a_cluster_of(OLD, a_node(devices=[a_device(devmem=7500)]))
    decision = decide_on(columns, a_pod_of(a_container_of("app", 4000, 10), init=[a_container_of("sidecar", 4000, 10)]))
    assert decision.chosen == "node-a"


@pytest.mark.parametrize(("release", "left"), [(OLD, 5000), (NEW, 1000)])
def test_of_several_quotas_the_smallest_counts_and_none_with_a_scope(release: HamiRelease, left: int) -> None:
    quotas = Quotas()
    for name, limit in (("strict", 1000), ("loose", 5000)):
        quotas.apply(a_quota(name, gpumem=limit))
    vendor = list_vendors(release)[0]
    assert quotas.compute_left("default", vendor).memory_mib == left
    scoped = a_quota("scoped", gpumem=10)
    scoped["spec"]["scopes"] = ["BestEffort"]
    quotas.apply(scoped)
    assert quotas.compute_left("default", vendor).memory_mib == (10 if release == OLD else left)
    quotas.delete("default", "scoped")
    quotas.delete("default", "strict")
    assert quotas.compute_left("default", vendor).memory_mib == 5000


@pytest.mark.parametrize(
    ("node", "device", "expected"),
    [
        ("binpak", "spred", ("spread", "mutex")),
        (" binpack ", "binpack, numa", ("binpack", "binpack, numa")),
        ("", "", ("spread", "mutex")),
        ("binpack,spread", "mutex,topologyaware", ("spread", "mutex")),
    ],
)
def test_an_unknown_word_for_a_policy_leaves_the_schedulers_own(
    node: str, device: str, expected: tuple[str, str]
) -> None:
    texts = {"hami.io/node-scheduler-policy": node, "hami.io/gpu-scheduler-policy": device}
    annotations = read_pod_annotations(texts, "spread", "mutex", list_vendors(NEW)[0])
    assert (annotations.node_policy, annotations.device_policy) == expected
    before = read_pod_annotations(texts, "spread", "mutex", list_vendors(OLD)[0])
    assert (before.node_policy, before.device_policy) == (node, device)


@pytest.mark.parametrize(
    "amounts",
    [
        {"nvidia.com/gpu": "-1"},
        {"nvidia.com/gpu": "1Ei"},
        {"nvidia.com/gpu": "3000000000"},
        {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "-1"},
        {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3G"},
        {"nvidia.com/gpu": "1", "nvidia.com/gpucores": "101"},
        {"mthreads.com/vgpu": "-2"},
        {"hygon.com/hcunum": "1", "hygon.com/hcucores": "120"},
    ],
)
def test_a_request_that_cannot_be_read_refuses_the_pod(amounts: dict[str, str]) -> None:
    pod = a_pod({"name": "main", "resources": {"limits": amounts}})
    answer = decide(a_cluster_of(NEW), pod, ["node-a"], SchedulingPolicy())
    assert isinstance(answer, Failed)
    assert answer.error.startswith(f"container main: {next(reversed(amounts))}: ")
    denied = admit(pod, AdmissionRules(vendors=list_vendors(NEW)), Quotas())
    assert isinstance(denied, Denied)


def test_a_count_of_0_asks_for_nothing() -> None:
    pod = a_pod({"name": "main", "resources": {"limits": {"nvidia.com/gpu": "0"}}})
    assert isinstance(decide(a_cluster_of(NEW), pod, ["node-a"], SchedulingPolicy()), NotOurs)


@pytest.mark.parametrize(("release", "chosen"), [(OLD, "GPU-large"), (NEW, "GPU-small")])
def test_the_request_counts_in_the_scores_of_devices_with_a_models_name(release: HamiRelease, chosen: str) -> None:
    """Binpack takes the device with the larger share after the placement.

    Before it the larger device is used more (a fifth of 40000 against a tenth of 10000 MiB); with 8000 MiB more its
    share is two fifths, and that of the smaller one nine tenths.
    """
    devices = [a_device("GPU-small", devmem=10000), a_device("GPU-large", devmem=40000)]
    columns = a_cluster_of(release, a_node(devices=devices))
    for uuid, memory in (("GPU-small", 1000), ("GPU-large", 8000)):
        columns.apply_pod(a_running_pod(f"{uuid},NVIDIA,{memory},0:;", uid=f"uid-{uuid}"))
    pod = a_pod(ask_for(gpumem=8000), annotations={"hami.io/gpu-scheduler-policy": "binpack"})
    assert list_granted_uuids(decide_on(columns, pod)) == [[chosen]]


def test_devices_of_hygon_are_called_hcu() -> None:
    vendor = find_vendor(list_vendors(NEW), "HCU")
    assert vendor is not None
    assert find_vendor(list_vendors(NEW), "DCU") is None
    assert (vendor.resources.count, vendor.resources.memory, vendor.resources.cores) == (
        "hygon.com/hcunum", "hygon.com/hcumem", "hygon.com/hcucores",
    )  # fmt: skip
    assert (vendor.node.register, vendor.node.handshake) == ("hami.io/node-hcu-register", "hami.io/node-handshake-hcu")
    assert (vendor.pod.allocated, vendor.pod.to_allocate) == (
        "hami.io/hcu-devices-allocated", "hami.io/hcu-devices-to-allocate",
    )  # fmt: skip
    assert (vendor.pod.use_type, vendor.pod.no_use_uuid) == ("hygon.com/use-hcutype", "hygon.com/nouse-gpuuuid")
    node = {
        "metadata": {
            "name": "node-a",
            "annotations": {"hami.io/node-hcu-register": "HCU-s1,4,65536,100,HCU-K100_AI,0,true,0,hami:"},
        },
        "status": {"allocatable": {"hygon.com/hcunum": "4"}},
    }
    limits = {"hygon.com/hcunum": "1", "hygon.com/hcumem": "8192", "hygon.com/hcucores": "25"}
    decision = decide_on(a_cluster_of(NEW, node), a_pod({"name": "main", "resources": {"limits": limits}}))
    assert decision.annotations["hami.io/hcu-devices-allocated"] == "HCU-s1,HCU,8192,25:;"


def test_a_file_that_still_names_dcu_keeps_its_resources() -> None:
    (vendor,) = device_config.follow_release(
        device_config.parse(b"hygon:\n  resourceCountName: hygon.com/dcunum\n", "file"), NEW
    )
    assert (vendor.word, vendor.resources.count) == ("HCU", "hygon.com/dcunum")


def test_the_fifth_field_of_a_device_is_the_number_of_its_slots() -> None:
    for text, slots in (("G0,T,10,0,3", 3), ("G0,T,10,0", 1), ("G0,T,10,0,x", 1), ("G0,T,10,0,-3", 1)):
        ((device,), *_) = decode_devices(f"{text}:;", RULES)
        assert device.slots == slots
    ((device,), *_) = decode_devices("G0,T,10,0,3:;")
    assert device.slots == 1
    held = [[AllocatedDevice("G0", "T", 10, 0, 3), AllocatedDevice("G1", "T", 10, 0)]]
    assert encode_devices(held, RULES) == "G0,T,10,0,3:G1,T,10,0:;"
    assert encode_devices(held) == "G0,T,10,0:G1,T,10,0:;"


@pytest.mark.parametrize("text", ["G0:;", ",NVIDIA,1,1:;", "G0,,1,1:;", "G0,NVIDIA,-1,1:;", "G0,NVIDIA,1,-1:;"])
def test_a_damaged_device_makes_the_annotation_unreadable(text: str) -> None:
    with pytest.raises(AllocationError):
        decode_devices(text, RULES)
    decode_devices(text)


@pytest.mark.parametrize(("release", "granted"), [(OLD, "GPU-far"), (NEW, "GPU-near")])
def test_devices_of_the_mode_remote_are_left_out(release: HamiRelease, granted: str) -> None:
    # The last registered one is tried first.
    devices = [a_device("GPU-near"), a_device("GPU-far", mode="remote")]
    decision = decide_on(a_cluster_of(release, a_node(devices=devices)), a_pod(ask_for(gpumem=100)))
    assert list_granted_uuids(decision) == [[granted]]
