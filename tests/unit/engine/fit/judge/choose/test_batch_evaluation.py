"""Shares that the containers of one pod take, counted for its later ones on each node of a batch.

Amounts are worked out by hand from HAMi's rules: init containers end before app containers begin, so each finds the
devices as they are; since v2.11 a sidecar holds its devices next to all that start after it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from engine.fit import device_config
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.device_matrix import build_batches
from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.choose.batch_evaluation import BatchEvaluation
from engine.fit.judge.judgement import ContainerJudgement
from engine.fit.judge.request.pod_annotations import read_pod_annotations
from engine.fit.judge.request.pod_constraints import build_constraints
from engine.fit.judge.request.pod_request import list_requests
from engine.hami.releases import HamiRelease
from engine.hami.vendor_catalog import HYGON, XPU
from engine.hami.vendors import NVIDIA, Vendors
from tests.support.builders.nodes_to_judge import (
    SIDECAR,
    a_device,
    a_mig_device,
    a_node,
    a_pod,
    a_quota,
    a_running_pod,
    ask_for,
)

OLD, NEW = HamiRelease(2, 10), HamiRelease(2, 11)
Pod = Mapping[str, Any]


class Evaluated:
    """One pod judged on one batch of nodes, container after container."""

    def __init__(
        self,
        columns: ClusterColumns,
        pod: Pod,
        *,
        one_by_one: bool = False,
        keeps_order: bool = False,
    ) -> None:
        metadata = pod["metadata"]
        self.names = list(columns.node_names)
        self.requests = list_requests(pod, columns.vendors)
        words = [request.vendor for request in self.requests if request.asks]
        constraints = {
            vendor.word: build_constraints(
                columns,
                metadata,
                read_pod_annotations(metadata["annotations"], "binpack", "spread", vendor),
                vendor,
            )._replace(one_by_one=one_by_one)
            for vendor in columns.vendors
            if vendor.word in words
        }
        (batch,) = build_batches(columns, columns.look_up_ids(self.names), next(iter(constraints.values())).code)
        options = {"keeps_order": True} if keeps_order else {}
        self.evaluation = BatchEvaluation(constraints, batch, **options)
        self.judgements: list[ContainerJudgement] = []
        self.picks: list[list[list[str]]] = []
        for container, request in enumerate(self.requests):
            if request.asks and not self.evaluation.is_over:
                self.judgements.append(self.evaluation.judge(container, request))
                self.picks.append([[pick.device.uuid for pick in picks] for picks in self.evaluation.picks])

    def list_passed(self) -> list[list[str]]:
        """List the nodes that pass each container which was judged."""
        return [[self.names[node] for node in part.nodes[part.passed].tolist()] for part in self.judgements]

    def list_verdicts(self, container: int, node: str) -> list[str]:
        """List the verdicts about the devices of a node, in the order of registration."""
        return [verdict_codes.VERDICTS[code] for code in self.list_numbers("verdict", container, node)]

    def list_numbers(self, name: str, container: int, node: str) -> list[int]:
        part = self.judgements[container]
        position = part.nodes.tolist().index(self.names.index(node))
        return list(getattr(part, name)[part.offsets[position] : part.offsets[position + 1]].tolist())

    def list_used(self, node: str) -> list[tuple[int, int, int]]:
        """List slots, memory and cores of a node's first device in use before each container."""
        names = ("used_slots", "used_memory_mib", "used_cores")
        return [
            tuple(self.list_numbers(name, container, node)[0] for name in names)  # type: ignore[misc]
            for container in range(len(self.judgements))
        ]


def a_cluster(*nodes: Pod, vendors: Vendors = (NVIDIA,), pods: Sequence[Pod] = ()) -> ClusterColumns:
    columns = ClusterColumns(vendors)
    for node in nodes:
        columns.apply_node(node)
    for pod in pods:
        columns.apply_pod(pod)
    return columns


def a_container(kind: str, memory: int, cores: int = 10, count: int = 1) -> dict[str, Any]:
    always = {"restartPolicy": "Always"} if kind == "sidecar" else {}
    return ask_for(count, gpumem=memory, gpucores=cores) | always


def a_pod_of(*containers: tuple[Any, ...], **fields: Any) -> dict[str, Any]:
    """Build a pod of containers: kind, MiB, percent, devices."""
    init = [a_container(*item) for item in containers if item[0] != "app"]
    apps = [a_container(*item) for item in containers if item[0] == "app"]
    return a_pod(*(apps or [SIDECAR]), init=init, **fields)


def build_devices(node: str, count: int, memory: int = 10_000, **fields: Any) -> list[dict[str, Any]]:
    return [a_device(f"{node}-{number}", devmem=memory, **fields) for number in range(count)]


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize(
    ("release", "containers", "passed"),
    [
        # One device of 10,000 MiB: init containers find all of it, an app container what those before it left.
        (OLD, [("init", 8000), ("init", 8000), ("app", 8000)], 3),
        (OLD, [("app", 6000), ("app", 4000)], 2),
        (OLD, [("app", 6000), ("app", 4001)], 1),
        (OLD, [("app", 100, 60), ("app", 100, 40)], 2),
        (OLD, [("app", 100, 60), ("app", 100, 41)], 1),
        (OLD, [("sidecar", 6000), ("init", 6000), ("app", 6000)], 3),
        (NEW, [("sidecar", 6000), ("init", 4000), ("app", 4000)], 3),
        (NEW, [("sidecar", 6000), ("init", 4001)], 1),
        (NEW, [("sidecar", 6000), ("app", 4001)], 1),
        (NEW, [("init", 8000), ("sidecar", 6000), ("app", 4000)], 3),
        (NEW, [("sidecar", 4000), ("sidecar", 4000), ("app", 2001)], 2),
    ],
)
def test_a_container_finds_what_those_that_last_have_left(
    release: HamiRelease, containers: list[tuple[Any, ...]], passed: int, one_by_one: bool
) -> None:
    columns = a_cluster(a_node("n1", build_devices("n1", 1)), vendors=device_config.read_shipped(release))
    evaluated = Evaluated(columns, a_pod_of(*containers), one_by_one=one_by_one)
    judged = [["n1"]] * passed + [[]] * (passed < len(containers))
    assert evaluated.list_passed() == judged
    assert evaluated.evaluation.is_over == (passed < len(containers))


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize(
    ("release", "quota", "containers", "passed"),
    [
        # Two devices of 10,000 MiB; the quota is of both.
        (OLD, {"gpumem": 7500}, [("app", 5000), ("app", 2500)], 2),
        (OLD, {"gpumem": 7500}, [("app", 5000), ("app", 2501)], 1),
        (OLD, {"gpumem": 7500}, [("app", 2500, 10, 2), ("app", 2501)], 1),
        (OLD, {"gpucores": 90}, [("app", 100, 50), ("app", 100, 40)], 2),
        (OLD, {"gpucores": 90}, [("app", 100, 50), ("app", 100, 41)], 1),
        (OLD, {"gpucores": 90}, [("app", 100, 30, 2), ("app", 100, 31)], 1),
        (OLD, {"gpumem": 7500}, [("init", 5000), ("init", 7500), ("app", 7500)], 3),
        (OLD, {"gpucores": 90}, [("init", 100, 90), ("app", 100, 90)], 2),
        # The largest share of each device counts: 5,000 of one, 4,000 of the other.
        (OLD, {"gpumem": 9000}, [("init", 5000), ("init", 4000, 10, 2)], 2),
        (OLD, {"gpumem": 8999}, [("init", 5000), ("init", 4000, 10, 2)], 1),
        (NEW, {"gpumem": 7500}, [("sidecar", 4000), ("init", 3500)], 2),
        (NEW, {"gpumem": 7500}, [("sidecar", 4000), ("init", 3501)], 1),
        (NEW, {"gpucores": 90}, [("sidecar", 100, 50), ("init", 100, 41)], 1),
    ],
)
def test_a_quota_counts_what_the_containers_take_together(
    release: HamiRelease, quota: dict[str, Any], containers: list[tuple[Any, ...]], passed: int, one_by_one: bool
) -> None:
    columns = a_cluster(a_node("n1", build_devices("n1", 2)), vendors=device_config.read_shipped(release))
    columns.apply_quota(a_quota(**quota))
    evaluated = Evaluated(columns, a_pod_of(*containers), one_by_one=one_by_one)
    assert [bool(names) for names in evaluated.list_passed()] == [True] * passed + [False] * (passed < len(containers))
    if passed < len(containers):
        assert "ResourceQuotaNotFit" in evaluated.list_verdicts(passed, "n1")


@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_node_that_refuses_a_container_is_judged_no_more(one_by_one: bool) -> None:
    small, large = a_node("n1", build_devices("n1", 1, 1000)), a_node("n2", build_devices("n2", 1, 3000))
    pod = a_pod_of(("app", 500), ("app", 800, 20), ("app", 1700, 5), ("app", 1))
    evaluated = Evaluated(a_cluster(small, large), pod, one_by_one=one_by_one, keeps_order=True)
    assert evaluated.list_passed() == [["n1", "n2"], ["n2"], ["n2"], []]
    assert [part.container for part in evaluated.judgements] == [0, 1, 2, 3]
    assert [part.nodes.tolist() for part in evaluated.judgements] == [[0, 1], [0, 1], [1], [1]]
    assert evaluated.list_used("n2") == [(0, 0, 0), (1, 500, 10), (2, 1300, 30), (3, 3000, 35)]
    assert evaluated.list_verdicts(1, "n1") == ["CardInsufficientMemory"]
    assert evaluated.evaluation.passed.tolist() == []
    assert evaluated.evaluation.is_over


@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_quota_is_counted_on_each_node_by_itself(one_by_one: bool) -> None:
    columns = a_cluster(*(a_node(f"n{number}", build_devices(f"n{number}", 1, 1000 * number)) for number in (1, 3)))
    columns.apply_quota(a_quota(gpumem=3000))
    pod = a_pod_of(("app", 500), ("app", 800), ("app", 1700), ("app", 1))
    evaluated = Evaluated(columns, pod, one_by_one=one_by_one)
    assert evaluated.list_passed() == [["n1", "n3"], ["n3"], ["n3"], []]
    assert evaluated.list_verdicts(1, "n1") == ["CardInsufficientMemory"]
    assert evaluated.list_verdicts(3, "n3") == ["ResourceQuotaNotFit"]


@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_node_with_too_few_devices_is_refused_before_any_is_tried(one_by_one: bool) -> None:
    columns = a_cluster(a_node("n1", build_devices("n1", 1)), a_node("n2", build_devices("n2", 2)))
    evaluated = Evaluated(columns, a_pod_of(("app", 100, 0, 2)), one_by_one=one_by_one)
    (part,) = evaluated.judgements
    assert (part.is_short.tolist(), part.passed.tolist()) == ([True, False], [False, True])
    assert evaluated.list_verdicts(0, "n1") == ["not reached"]
    assert evaluated.list_verdicts(0, "n2") == ["picked", "picked"]


def test_only_nodes_with_mig_devices_are_walked_device_by_device() -> None:
    columns = a_cluster(
        a_node("n1", build_devices("n1", 1)), a_node("n2", [a_mig_device("n2-0")]), a_node("n3", build_devices("n3", 1))
    )
    evaluated = Evaluated(columns, a_pod(ask_for(gpumem=4000), ask_for(gpumem=4000)))
    assert evaluated.list_passed() == [["n1", "n2", "n3"]] * 2
    assert evaluated.picks == [[["n2-0"]], [["n2-0"]]]
    # An instance of the profile 1g.5gb has 4,864 MiB and 14 percent of the cores.
    assert evaluated.list_used("n2") == [(0, 0, 0), (1, 4864, 14)]
    assert evaluated.list_used("n1") == evaluated.list_used("n3") == [(0, 0, 0), (1, 4000, 0)]


@pytest.mark.parametrize(
    ("mode", "passed", "is_short"), [("", ["n1"], False), ("mig", ["n1"], False), ("hami-core", [], True)]
)
def test_one_mig_device_may_give_a_container_several_instances(mode: str, passed: list[str], is_short: bool) -> None:
    annotations = {"nvidia.com/vgpu-mode": mode} if mode else {}
    evaluated = Evaluated(
        a_cluster(a_node("n1", [a_mig_device("n1-0")])), a_pod(ask_for(2, gpumem=4000), annotations=annotations)
    )
    assert evaluated.list_passed() == [passed]
    assert evaluated.judgements[0].is_short.tolist() == [is_short]


def test_an_app_container_finds_the_instances_of_those_before_it() -> None:
    """Two instances of the profile 3g.20gb have their places on a device, whatever memory is left."""
    columns = a_cluster(a_node("n1", [a_mig_device("n1-0", devmem=81_920)]))
    large = ask_for(gpumem=15_000)
    assert Evaluated(columns, a_pod(large, large, large)).list_passed() == [["n1"], ["n1"], []]
    assert Evaluated(columns, a_pod(large, init=[large, large, large])).list_passed() == [["n1"]] * 4


@pytest.mark.parametrize(
    ("kind", "is_limited", "is_walked"),
    [
        ("init", True, True),
        ("init", False, False),
        ("app", True, False),
        ("app", False, False),
    ],
)
def test_an_init_container_under_a_quota_is_walked_device_by_device(
    kind: str, is_limited: bool, is_walked: bool
) -> None:
    columns = a_cluster(a_node("n1", build_devices("n1", 1)))
    if is_limited:
        columns.apply_quota(a_quota(gpumem=9000))
    evaluated = Evaluated(
        columns,
        a_pod_of(
            (kind, 100),
        ),
    )
    assert evaluated.picks[0] == ([["n1-0"]] if is_walked else [])


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize(("keeps_order", "picked"), [(True, [True, True, False]), (False, [True, False, True])])
def test_equal_devices_keep_their_order_of_the_container_before(
    keeps_order: bool, picked: list[bool], one_by_one: bool
) -> None:
    """HAMi sorts the list of one container again for the next one.

    The first container takes the second device, which is then as full as the third; registered last, the third one
    would come before it.
    """
    running = a_running_pod("n1-2,NVIDIA,2000,10:;", "n1")
    columns = a_cluster(a_node("n1", build_devices("n1", 3)), pods=[running])
    pod = a_pod_of(("init", 2000), ("app", 2000), ("app", 2000, 10, 2))
    evaluated = Evaluated(columns, pod, one_by_one=one_by_one, keeps_order=keeps_order)
    assert evaluated.list_verdicts(1, "n1") == ["not reached", "picked", "not reached"]
    assert [verdict == "picked" for verdict in evaluated.list_verdicts(2, "n1")] == picked


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("numa_bind", ["false", "true"])
def test_devices_with_the_best_links_are_taken(numa_bind: str, one_by_one: bool) -> None:
    scores = {"n1-0": {"n1-1": 10, "n1-2": 100}, "n1-1": {"n1-0": 10, "n1-2": 20}, "n1-2": {"n1-0": 100, "n1-1": 20}}
    rows = json.dumps([{"uuid": uuid, "score": score} for uuid, score in scores.items()])
    node = a_node("n1", build_devices("n1", 3), node_nvidia_score=rows)
    annotations = {"hami.io/gpu-scheduler-policy": "topology-aware", "nvidia.com/numa-bind": numa_bind}
    evaluated = Evaluated(
        a_cluster(node), a_pod_of(("app", 100, 10, 2), annotations=annotations), one_by_one=one_by_one
    )
    assert evaluated.list_verdicts(0, "n1") == ["picked", "fits", "picked"]


@pytest.mark.parametrize("one_by_one", [False, True])
def test_devices_of_one_numa_node_are_taken(one_by_one: bool) -> None:
    devices = [a_device(f"n1-{number}", numa=numa) for number, numa in enumerate((0, 0, 1))]
    pod = a_pod_of(("app", 100, 10, 2), annotations={"nvidia.com/numa-bind": "true"})
    evaluated = Evaluated(a_cluster(a_node("n1", devices)), pod, one_by_one=one_by_one)
    assert evaluated.list_verdicts(0, "n1") == ["picked", "picked", "NumaNotFit"]


@pytest.mark.parametrize("one_by_one", [False, True])
def test_containers_of_another_vendor_take_of_its_devices_only(one_by_one: bool) -> None:
    node = a_node("n1", build_devices("n1", 1))
    node["metadata"]["annotations"]["hami.io/node-dcu-register"] = "D-0,4,8000,100,DCU-K100,0,true:"
    dcu = {
        "name": "dcu",
        "resources": {"limits": {"hygon.com/dcunum": 1, "hygon.com/dcumem": 4000, "hygon.com/dcucores": 50}},
    }
    gpu = ask_for(gpumem=6000)
    columns = a_cluster(node, vendors=(NVIDIA, HYGON))
    passed = Evaluated(columns, a_pod(dcu, gpu, dcu, gpu), one_by_one=one_by_one).list_passed()
    assert passed == [["n1"], ["n1"], ["n1"], []]
    passed = Evaluated(columns, a_pod(gpu, dcu, dcu, dcu), one_by_one=one_by_one).list_passed()
    assert passed == [["n1"], ["n1"], ["n1"], []]


def test_a_part_of_a_kunlun_device_counts_for_the_next_container() -> None:
    device = a_device("X-0", devmem=98_304, devcore=100, type="XPU")
    node = {"metadata": {"name": "n1", "annotations": {"hami.io/node-register-xpu": json.dumps([device])}}}
    half = {"name": "half", "resources": {"limits": {"kunlunxin.com/vxpu": 1, "kunlunxin.com/vxpu-memory": 49_152}}}
    columns = a_cluster(node, vendors=(XPU,))
    evaluated = Evaluated(columns, a_pod(half, half, half))
    assert evaluated.list_passed() == [["n1"], ["n1"], []]
    assert evaluated.picks[:2] == [[["X-0"]], [["X-0"]]]
    node_id = int(columns.look_up_ids(["n1"])[0])
    assert evaluated.evaluation.state.list_earlier("XPU", node_id, is_init=False) == ((0,), (0,), ())
    assert [used[:2] for used in evaluated.list_used("n1")] == [(0, 0), (1, 49_152), (2, 98_304)]


def test_what_the_pod_holds_already_is_free_for_it() -> None:
    held = a_running_pod("n1-0,NVIDIA,8000,80:;", "n1", uid="uid-pod")
    evaluated = Evaluated(a_cluster(a_node("n1", build_devices("n1", 1)), pods=[held]), a_pod_of(("app", 9000, 90)))
    assert evaluated.list_passed() == [["n1"]]
    assert evaluated.list_used("n1") == [(0, 0, 0)]
