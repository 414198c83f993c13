"""Refused pods on clusters of a few objects: expected by hand, in the words of kube-scheduler and of KAI."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.cases import refused_pods
from engine.cases.refused_pods import (
    MAX_EXPLAINED,
    ClusterToJudge,
    DeviceShortage,
    RefusedPod,
    assume_pods,
    collect_cluster,
    compare_counts,
    judge_refused_pod,
)
from engine.filters.release import SchedulerRelease
from engine.snapshot import kinds
from engine.snapshot.reading import change_snapshot, read_snapshot
from tests.support.builders import claims
from tests.support.builders.cluster import Object, a_node, a_pod
from tests.support.builders.divisible_devices import a_device as a_divisible_device

CPU, CLAIMS = "Insufficient cpu", "cannot allocate all claims"
GPUS, GPU_MEMORY = (f"node(s) didn't have enough resources: {resource}" for resource in ("GPUs", "GPU memory"))
UNTOLERATED = "node(s) had untolerated taint(s)"
TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}
BIG = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('80Gi')) >= 0"
NOW = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)


def collect(*objects: Object, release: SchedulerRelease | None = None, unread: tuple[str, ...] = ()) -> ClusterToJudge:
    snapshot = read_snapshot(objects, unread)
    assert not snapshot.rejected
    return collect_cluster(snapshot, release or SchedulerRelease())


def judge(
    pod: Object, *objects: Object, release: SchedulerRelease | None = None, now: datetime | None = None
) -> RefusedPod:
    judged = judge_refused_pod(collect(*objects, release=release), pod, now)
    assert judged
    return judged


def a_share(name: str = "p", node: str = "", group: str = "", **annotations: str) -> Object:
    """Build a pod of KAI that asks for a part of a device, or holds one on a node."""
    pod = a_pod(name, node=node, labels={"runai-gpu-group": group} if group else {})
    pod["metadata"]["annotations"] = {key.replace("_", "-"): value for key, value in annotations.items()}
    pod["spec"]["schedulerName"] = "kai-scheduler"
    return pod


def reserve(group: str, node: str) -> Object:
    """Build the pod by which KAI holds a shared device."""
    pod = a_share(f"reservation-{group}", node, group)
    pod["metadata"]["namespace"] = "kai-resource-reservation"
    pod["spec"]["containers"][0]["resources"] = {"requests": {"nvidia.com/gpu": "1"}}
    return pod


def a_gpu_node(name: str = "n1", gpus: str = "1", memory_mib: str = "40960") -> Object:
    return a_node(name, labels={"nvidia.com/gpu.memory": memory_mib}, gpu=gpus)


def test_a_refused_node_has_the_words_of_its_first_plugin_and_a_fitting_one_is_named_apart() -> None:
    nodes = [a_node("small", cpu="1"), a_node("tainted", taints=[TAINT]), a_node("free")]
    judged = judge(a_pod(cpu="2"), *nodes)
    assert judged.total == 3
    assert judged.reasons == {"small": (CPU,), "tainted": (UNTOLERATED,)}
    assert judged.passing == ("free",)
    assert judged.counts == {CPU: 1, UNTOLERATED: 1}
    assert (judged.error, judged.shortages, judged.shares, judged.missing_kinds) == ("", {}, None, frozenset())
    assert judged.obstacle is None


def test_a_pod_that_fits_nowhere_has_a_main_obstacle() -> None:
    judged = judge(a_pod(cpu="16"), a_node("n1"), a_node("n2"), a_node("n3", taints=[TAINT]))
    assert judged.passing == ()
    assert judged.obstacle
    assert judged.obstacle.code == "ResourceNeverEnough"


def test_an_amount_that_no_node_has_is_the_obstacle_also_behind_a_taint() -> None:
    """The scheduler counts the taint only; without it the pod would fit nowhere either."""
    judged = judge(a_pod(cpu="16"), *(a_node(name, taints=[TAINT]) for name in ("n1", "n2")))
    assert judged.counts == {UNTOLERATED: 2}
    assert judged.obstacle
    assert judged.obstacle.code == "ResourceNeverEnough"


@pytest.mark.parametrize(
    ("minor", "words"),
    [
        (36, "node(s) didn't satisfy plugin(s) [NodeAffinity]"),
        (30, "node is filtered out by the prefilter result"),
    ],
)
def test_nodes_outside_the_named_ones_have_the_words_of_the_release(minor: int, words: str) -> None:
    pod = a_pod(cpu="16")
    fields = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [fields]}]}}
    pod["spec"]["affinity"] = {"nodeAffinity": affinity}
    judged = judge(pod, *(a_node(name) for name in ("n1", "n2", "n3")), release=SchedulerRelease(minor))
    assert judged.reasons == {"n1": (CPU,), "n2": (words,), "n3": (words,)}
    assert judged.counts == {CPU: 1, words: 2}


def a_pod_with_volume(claim: str = "data") -> Object:
    pod = a_pod()
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    return pod


def test_a_pod_that_is_refused_before_any_node_has_an_error_and_no_obstacle() -> None:
    judged = judge(a_pod_with_volume(), a_node())
    assert judged.error == 'persistentvolumeclaim "data" not found'
    assert judged.obstacle is None


def test_a_gate_of_the_pod_is_an_error_as_well() -> None:
    pod = a_pod(cpu="16")
    pod["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    judged = judge(pod, a_node())
    assert "example.com/wait" in judged.error
    assert judged.obstacle is None


def test_kinds_that_were_not_read_leave_the_verdict_open() -> None:
    cluster = collect(a_node(), unread=(kinds.VOLUME_CLAIM,))
    judged = judge_refused_pod(cluster, a_pod_with_volume())
    assert judged
    assert kinds.VOLUME_CLAIM in judged.missing_kinds
    assert compare_counts(judged, {CPU: 1}, "") == "not compared"


def test_a_malformed_pod_is_not_judged() -> None:
    assert judge_refused_pod(collect(a_node()), {"kind": "Pod", "spec": 7}) is None


def a_claiming_pod(*names: str, **requests: Any) -> Object:
    pod = a_pod(**requests)
    pod["spec"]["resourceClaims"] = claims.a_pod_with(*(names or ("c0",)))["spec"]["resourceClaims"]
    return pod


def list_devices(shortage: DeviceShortage) -> list[tuple[str, str, bool]]:
    return [(device.id[2], device.reason.value, device.is_held) for device in shortage.devices]


def test_a_node_that_lacks_devices_of_a_claim_has_the_reason_of_each_device() -> None:
    devices = [claims.a_device("held", "80Gi"), claims.a_device("small", "40Gi")]
    holder = claims.a_claim(name="held", status=claims.an_allocation("held"))
    judged = judge(
        a_claiming_pod(), a_node(), claims.a_class(), claims.a_slice(*devices), holder,
        claims.a_claim(claims.a_request(BIG, count=2)),
    )  # fmt: skip
    assert judged.reasons == {"n1": (CLAIMS,)}
    shortage = judged.shortages["n1"]
    assert (shortage.claim, shortage.request, shortage.class_name, shortage.wanted) == ("c0", "r0", "gpu", 2)
    assert list_devices(shortage) == [("held", "DeviceInUse", True), ("small", "SelectorNotMatched", False)]
    assert [device.device.name for device in shortage.devices] == ["held", "small"]


def test_the_devices_of_equal_nodes_are_their_own() -> None:
    nodes = [a_node(name) for name in ("n1", "n2")]
    slices = [claims.a_slice(claims.a_device(f"gpu-of-{name}", "40Gi"), node=name) for name in ("n1", "n2")]
    judged = judge(a_claiming_pod(), *nodes, claims.a_class(), *slices, claims.a_claim(claims.a_request(BIG)))
    assert {name: [row[0] for row in list_devices(judged.shortages[name])] for name in judged.shortages} == {
        "n1": ["gpu-of-n1"],
        "n2": ["gpu-of-n2"],
    }


def test_the_first_request_is_named_of_which_no_device_would_do() -> None:
    """The middle device would do for the first request, and none for the second one."""
    middle = BIG.replace("80Gi", "40Gi")
    requests = [claims.a_request(middle, name="middle"), claims.a_request(BIG, name="large")]
    devices = [claims.a_device("small", "20Gi"), claims.a_device("middle", "40Gi")]
    judged = judge(a_claiming_pod(), a_node(), claims.a_class(), claims.a_slice(*devices), claims.a_claim(*requests))
    assert judged.shortages["n1"].request == "large"


def test_a_request_for_all_devices_wants_no_number() -> None:
    device = claims.a_device("gpu", "40Gi")
    every = {"deviceClassName": "gpu", "allocationMode": "All"}
    status = claims.an_allocation("gpu")
    judged = judge(
        a_claiming_pod(), a_node(), claims.a_class(), claims.a_slice(device),
        claims.a_claim(name="held", status=status), claims.a_claim({"name": "r0", "exactly": every}),
    )  # fmt: skip
    assert judged.shortages["n1"].wanted is None


def test_a_node_whose_pool_is_invalid_has_its_devices_as_well() -> None:
    """Two slices of one pool that list a device of the same name make it invalid."""
    slices = [claims.a_slice(claims.a_device("gpu"), name=name) for name in ("a", "b")]
    for item in slices:
        item["spec"]["pool"] = {"name": "n1", "generation": 1, "resourceSliceCount": 2}
    judged = judge(a_claiming_pod(), a_node(), claims.a_class(), *slices, claims.a_claim())
    assert judged.reasons == {"n1": ("invalid resource pools were encountered",)}
    assert {row[1] for row in list_devices(judged.shortages["n1"])} == {"PoolInvalid"}


@pytest.mark.parametrize(
    "objects",
    [
        # The node has no devices at all.
        [a_node(), claims.a_class(), claims.a_claim()],
        # Another plugin refuses the node first.
        [a_node(cpu="1"), claims.a_class(), claims.a_slice(claims.a_device("gpu", "40Gi")), claims.a_claim()],
        # The devices of the claim are of another node.
        [
            a_node(), a_node("n2"), claims.a_class(), claims.a_slice(claims.a_device("gpu"), node="n2"),
            claims.a_claim(status=claims.an_allocation("gpu", node="n2") | {"allocation": {
                "devices": {"results": []},
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
                    {"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]},
            }}),
        ],
    ],
)  # fmt: skip
def test_a_node_without_devices_that_do_not_do_has_no_shortage(objects: list[Object]) -> None:
    judged = judge(a_claiming_pod(cpu="2"), *objects)
    assert "n1" in judged.reasons
    assert judged.shortages == {}


def test_only_so_many_different_nodes_are_explained() -> None:
    """Each node has a device of another size."""
    names = [f"n{number:03}" for number in range(MAX_EXPLAINED + 1)]
    slices = [claims.a_slice(claims.a_device("gpu", f"{number + 1}Mi"), node=name) for number, name in enumerate(names)]
    judged = judge(
        a_claiming_pod(), *map(a_node, names), claims.a_class(), *slices, claims.a_claim(claims.a_request(BIG))
    )
    assert len(judged.reasons) == MAX_EXPLAINED + 1
    assert len(judged.shortages) == MAX_EXPLAINED


def test_a_binding_of_devices_that_took_too_long_is_a_matter_of_the_time() -> None:
    """DynamicResources waits `BindingTimeoutDefaultSeconds`, 600 s, for the binding conditions of devices."""
    status = claims.an_allocation("gpu", bindingConditions=["ready"])
    status["allocation"]["allocationTimestamp"] = "2026-01-02T11:00:00Z"
    objects = [a_node(), claims.a_class(), claims.a_slice(claims.a_device("gpu")), claims.a_claim(status=status)]
    early = NOW - timedelta(hours=1)
    assert judge(a_claiming_pod(), *objects, now=early).reasons == {}
    assert judge(a_claiming_pod(), *objects, now=NOW).reasons != {}


def test_a_share_of_kai_has_the_verdict_of_each_node() -> None:
    objects = [
        a_gpu_node("full"), reserve("g", "full"), a_share("other", "full", "g", gpu_fraction="0.7"),
        a_gpu_node("free"), a_node("tainted", taints=[TAINT]),
    ]  # fmt: skip
    judged = judge(a_share(gpu_fraction="0.5"), *objects)
    assert judged.reasons == {"full": (GPUS,), "tainted": (UNTOLERATED,)}
    assert judged.passing == ("free",)
    assert judged.counts == {GPUS: 1, UNTOLERATED: 1}
    assert judged.shares
    assert judged.shares.total == 3
    assert judged.obstacle is None


def test_a_share_that_no_node_has_is_the_obstacle() -> None:
    objects = [a_gpu_node(), reserve("g", "n1"), a_share("other", "n1", "g", gpu_fraction="0.7")]
    judged = judge(a_share(gpu_fraction="0.5"), *objects)
    assert judged.obstacle
    assert judged.obstacle.code == "KaiShareInUse"


@pytest.mark.parametrize(("cores", "reasons"), [("100", {}), ("200", {"n1": ("Insufficient gpu devices",)})])
def test_devices_of_koordinator_have_the_verdict_of_each_node(cores: str, reasons: dict[str, Any]) -> None:
    """One of the node's two GPUs is sick."""
    amounts: dict[str, Any] = dict.fromkeys(("koordinator.sh/gpu-core", "koordinator.sh/gpu-memory-ratio"), cores)
    pod = a_pod()
    pod["spec"]["schedulerName"] = "koord-scheduler"
    pod["spec"]["containers"][0]["resources"] = {"requests": amounts}
    judged = judge(pod, a_node("n1", **amounts), a_divisible_device("n1", sick=0))
    assert (judged.reasons, judged.shares, bool(judged.obstacle)) == (reasons, None, bool(reasons))
    assert judged.counts == {words: 1 for (words,) in reasons.values()}
    assert judged.passing == (() if reasons else ("n1",))


HELD = [a_gpu_node("n2"), reserve("g", "n2"), a_share("other", "n2", "g", gpu_fraction="0.9")]


@pytest.mark.parametrize(
    ("annotations", "counts", "is_counted"),
    [
        # A fraction is counted node by node.
        ({"gpu_fraction": "0.5"}, {GPUS: 1}, True),
        ({"gpu_fraction": "0.5"}, {}, False),
        # Both nodes have 40,900 MiB by device as KAI counts them. n1 is free, n2 has a tenth.
        ({"gpu_memory": "20000"}, {}, True),
        ({"gpu_memory": "20000"}, {GPUS: 1}, False),
        # More than one device of either node has, and more than all devices of n2, which has one.
        ({"gpu_memory": "50000"}, {GPU_MEMORY: 2}, True),
        ({"gpu_memory": "50000"}, {GPU_MEMORY: 2, GPUS: 1}, True),
        ({"gpu_memory": "50000"}, {GPU_MEMORY: 2, GPUS: 2}, False),
        ({"gpu_memory": "50000"}, {GPU_MEMORY: 1}, False),
        # More than all devices of both.
        ({"gpu_memory": "90000"}, {GPU_MEMORY: 2, GPUS: 2}, True),
    ],
)
def test_memory_of_devices_is_counted_as_either_release_of_kai_counts_it(
    annotations: dict[str, Any], counts: dict[str, int], is_counted: bool
) -> None:
    """Seen with KAI v0.13 and v0.17 on two nodes: v0.17 counts GPUs and GPU memory for one of them."""
    judged = judge(a_share(**annotations), a_gpu_node("n1", "2"), *HELD)
    assert judged.is_counted_by(counts) == is_counted


def test_reasons_that_other_releases_word_differently_are_the_same() -> None:
    judged = judge(a_pod(), a_node(taints=[TAINT]))
    assert judged.is_counted_by({"node(s) had untolerated taint {k: v}": 1})
    assert not judged.is_counted_by({"node(s) had untolerated taint {k: v}": 2})


@pytest.mark.parametrize(
    ("pod", "counts", "message", "expected"),
    [
        (a_pod(cpu="16"), {CPU: 1}, "", "equal"),
        (a_pod(cpu="16"), {CPU: 2}, "", "different"),
        (a_pod(cpu="16"), {}, "0/1 nodes are available", "different"),
        # The node takes the pod, and the scheduler counted nobody.
        (a_pod(), {}, "", "different"),
        (a_pod_with_volume(), {}, '0/1 nodes are available: persistentvolumeclaim "data" not found.', "equal"),
        (a_pod_with_volume(), {CPU: 1}, "0/1 nodes are available: 1 Insufficient cpu.", "different"),
        # KAI writes no counts where the memory fails on each device.
        (a_share(gpu_memory="50000"), {}, "", "not compared"),
        (a_share(gpu_memory="50000"), {GPU_MEMORY: 1}, "", "equal"),
        (a_share(gpu_memory="50000"), {CPU: 1}, "", "different"),
    ],
)
def test_verdicts_agree_with_the_scheduler_by_its_counts_or_its_words(
    pod: Object, counts: dict[str, int], message: str, expected: str
) -> None:
    assert compare_counts(judge(pod, a_gpu_node("n1", "2")), counts, message) == expected


def test_a_fraction_that_nothing_counts_is_different() -> None:
    assert compare_counts(judge(a_share(gpu_fraction="0.5"), *HELD), {}, "") == "different"


def list_placed(cluster: ClusterToJudge) -> dict[str, list[str]]:
    return {name: [pod.name for pod in info.pods] for name, info in cluster.snapshot.nodes.items()}


def test_pods_are_placed_one_after_the_other_on_the_first_node_that_takes_them() -> None:
    pods = [a_pod(name, cpu=cpu) for name, cpu in (("a", "5"), ("b", "9"), ("c", "5"), ("d", "2"), ("e", "5"))]
    before = collect(a_node("n1"), a_node("n2"))
    after = assume_pods(before, [*pods, {"kind": "Pod", "spec": 7}])
    # b is larger than a node, and nothing is left for e.
    assert list_placed(after) == {"n1": ["a", "d"], "n2": ["c"]}
    assert list_placed(before) == {"n1": [], "n2": []}
    placed = after.snapshot.nodes["n1"].pods[0].object
    assert (placed["status"]["phase"], placed["spec"]["nodeName"]) == ("Running", "n1")


def test_a_placed_pod_has_the_devices_of_its_claim() -> None:
    wanted = [claims.a_claim(name=name) for name in ("c0", "c1", "c2")]
    slices = claims.a_slice(claims.a_device("a"), claims.a_device("b"))
    cluster = assume_pods(collect(a_node(), claims.a_class(), slices, *wanted), [a_claiming_pod("c0")])
    stored = cluster.snapshot.get_objects(kinds.RESOURCE_CLAIM)["default", "c0"]
    assert [result["device"] for result in stored["status"]["allocation"]["devices"]["results"]] == ["a"]
    assert stored["status"]["reservedFor"] == [{"resource": "pods", "name": "p1", "uid": "uid-p1"}]
    # Its inventory knows of it: only the other device is left.
    again = assume_pods(cluster, [{**a_claiming_pod("c1"), "metadata": a_pod("p2")["metadata"]}])
    refused = judge_refused_pod(again, a_claiming_pod("c2"))
    assert refused
    assert [device.is_held for device in refused.shortages["n1"].devices] == [True, True]


def test_shares_of_kai_are_packed_on_devices() -> None:
    """Two halves fill the device of the first node; the third pod gets the second node, and the fifth none."""
    pods = [a_share(f"p{number}", gpu_fraction="0.5") for number in range(5)]
    after = assume_pods(collect(a_gpu_node("n1"), a_gpu_node("n2")), pods)
    placed = {
        name: [pod.name for pod in info.pods if pod.namespace == "default"]
        for name, info in after.snapshot.nodes.items()
    }
    assert placed == {"n1": ["p0", "p1"], "n2": ["p2", "p3"]}
    assert [pod.namespace for pod in after.snapshot.nodes["n1"].pods].count("kai-resource-reservation") == 1


@pytest.mark.parametrize(("limit", "placed"), [(6, 2), (8, 2), (9, 3), (100, 4)])
def test_pods_beyond_the_limit_of_verdicts_are_left_out(limit: int, placed: int) -> None:
    """Each pod is judged on three nodes."""
    cluster = collect(*(a_node(f"n{number}") for number in range(3)))
    pods = [a_pod(f"p{number}") for number in range(4)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refused_pods, "MAX_PLACED_VERDICTS", limit)
        assert sum(map(len, list_placed(assume_pods(cluster, pods)).values())) == placed


def test_pods_on_a_cluster_without_nodes_are_left_out() -> None:
    assert list_placed(assume_pods(collect(), [a_pod()])) == {}


def test_devices_are_read_again_only_after_one_of_them_changed() -> None:
    first = collect(a_node(), claims.a_class(), claims.a_slice(claims.a_device("a")))
    node = change_snapshot(first.snapshot, [a_node("n2")])
    device = change_snapshot(first.snapshot, [claims.a_slice(claims.a_device("b"))])
    unread = change_snapshot(first.snapshot, unread=(kinds.RESOURCE_SLICE,))
    assert collect_cluster(node, first.release, first).inventory is first.inventory
    assert collect_cluster(node, first.release, first).snapshot is node
    assert collect_cluster(node, first.release).inventory is not first.inventory
    for changed in (device, unread):
        assert collect_cluster(changed, first.release, first).inventory is not first.inventory
    # Gates of a release decide what is read of a device.
    assert collect_cluster(node, SchedulerRelease(33), first).inventory is not first.inventory
