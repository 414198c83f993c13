from collections.abc import Mapping
from typing import Any

import pytest

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, Failed, NotOurs, SchedulingPolicy
from engine.fit.judge.request import pod_request
from engine.fit.judge.request.pod_request import VendorRequest
from engine.fit.judge.reservation import release, reserve
from engine.hami.vendors import Vendors
from tests.support.builders.nodes_to_judge import (
    SIDECAR,
    a_cluster,
    a_device,
    a_mig_device,
    a_node,
    a_pod,
    a_quota,
    a_running_pod,
    ask_for,
    decide_on,
    get_reason,
    list_granted_uuids,
)


def list_verdicts(decision: Decision, node: str = "node-a", container: int = 0) -> list[str]:
    """List the verdict of each row of one node, in registration order."""
    for judged in decision.judgements:
        if judged.container == container:
            index = judged.nodes.tolist().index(decision.node_names.index(node))
            rows = judged.verdict[judged.offsets[index] : judged.offsets[index + 1]].tolist()
            return [verdict_codes.VERDICTS[code] for code in rows]
    raise AssertionError(f"container {container} was not judged")


def test_a_pod_without_gpus_is_not_ours() -> None:
    assert isinstance(decide(a_cluster(), a_pod(SIDECAR), ["node-a"], SchedulingPolicy()), NotOurs)


def test_malformed_weights_fail_the_attempt_with_hamis_words() -> None:
    pod = a_pod(annotations={"hami.io/device-scoring-weights": "slot=1"})
    answer = decide(a_cluster(), pod, ["node-a"], SchedulingPolicy())
    assert isinstance(answer, Failed)
    assert answer.error == (
        'calcScore failed invalid hami.io/device-scoring-weights annotation "slot=1": '
        "expected slot, core, and memory weights for pod pod"
    )


@pytest.mark.parametrize(
    ("gpu", "container", "expected"),
    [
        (a_device(health=False), ask_for(), "1/1 CardNotHealth"),
        (a_device(devmem=1000), ask_for(gpumem=1001), "1/1 CardInsufficientMemory"),
        (a_device(devcore=50), ask_for(gpumem=1, gpucores=60), "1/1 CardInsufficientCore"),
        (a_device(devcore=50), ask_for(gpumem=1, gpucores=400), "1/1 CardInsufficientCore"),
        (a_device(count=0), ask_for(), "1/1 CardTimeSlicingExhausted"),
        (a_device(), ask_for(2), "NodeInsufficientDevice"),
        (a_device(type="Tesla P4"), ask_for(), "NodeInsufficientDevice"),
    ],
)
def test_a_device_is_refused_for_its_first_failing_check(gpu: dict, container: dict, expected: str) -> None:  # type: ignore[type-arg]
    assert get_reason(decide_on(a_cluster(a_node(devices=[gpu])), a_pod(container))) == expected


def test_an_unhealthy_cordoned_device_of_the_wrong_type_is_not_healthy_first() -> None:
    gpus = [a_device("GPU-0", health=False), a_device("GPU-1")]
    node = a_node(devices=gpus, device_cordon="GPU-0,GPU-1")
    pod = a_pod(annotations={"nvidia.com/use-gputype": "H100"})
    assert get_reason(decide_on(a_cluster(node), pod)) == "1/2 CardCordoned, 1/2 CardNotHealth"


def test_a_lifted_cordon_counts_at_once() -> None:
    columns = a_cluster(a_node(device_cordon="GPU-0"))
    columns.apply_node(a_node())
    assert decide_on(columns, a_pod()).chosen == "node-a"


def test_type_and_uuid_lists_refuse_devices() -> None:
    columns = a_cluster(a_node(devices=[a_device("GPU-0"), a_device("GPU-1", type="NVIDIA H100")]))
    pod = a_pod(annotations={"nvidia.com/use-gputype": "h100", "nvidia.com/nouse-gpuuuid": "GPU-1"})
    assert get_reason(decide_on(columns, pod)) == "1/2 CardTypeMismatch, 1/2 CardUuidMismatch"


def test_d5_a_type_list_of_separators_only_refuses_every_device() -> None:
    """A template with empty values writes it, and HAMi finds no word that a device has."""
    pod = a_pod(annotations={"nvidia.com/use-gputype": " , "})
    assert get_reason(decide_on(a_cluster(), pod)) == "1/1 CardTypeMismatch"


def test_a_whole_device_is_not_given_while_someone_uses_it() -> None:
    columns = a_cluster(pods=[a_running_pod("GPU-0,NVIDIA,100,0:;")])
    assert (
        get_reason(decide_on(columns, a_pod(ask_for(gpumem=100, gpucores=100))))
        == "1/1 ExclusiveDeviceAllocateConflict"
    )


def test_a_device_without_cores_left_takes_no_pod_that_asks_for_none() -> None:
    columns = a_cluster(pods=[a_running_pod("GPU-0,NVIDIA,100,100:;")])
    assert get_reason(decide_on(columns, a_pod(ask_for(gpumem=100)))) == "1/1 CardComputeUnitsExhausted"


def test_devices_found_but_too_few_are_counted_as_such() -> None:
    gpus = [a_device(f"GPU-{i}", health=i != 1) for i in range(3)]
    decision = decide_on(a_cluster(a_node(devices=gpus)), a_pod(ask_for(3)))
    assert get_reason(decision) == "1/3 CardNotHealth, 2/3 AllocatedCardsInsufficientRequest"


def test_the_walk_ends_when_there_are_enough_and_says_so() -> None:
    gpus = [a_device(f"GPU-{i}", health=i != 3) for i in range(4)]
    decision = decide_on(a_cluster(a_node(devices=gpus)), a_pod())
    assert list_verdicts(decision) == ["not reached", "not reached", "picked", "CardNotHealth"]


def test_verdicts_are_kept_for_nodes_that_refuse_while_another_fits() -> None:
    columns = a_cluster(a_node("node-a", [a_device(devmem=10)]), a_node("node-b", [a_device("GPU-1")]))
    decision = decide_on(columns, a_pod(ask_for(gpumem=100)))
    assert decision.chosen == "node-b"
    assert get_reason(decision) == "1/1 CardInsufficientMemory"
    assert list_verdicts(decision, "node-b") == ["picked"]


def test_a_change_of_numa_node_drops_what_was_taken() -> None:
    gpus = [a_device(f"GPU-{i}", numa=int(i > 0)) for i in range(3)]
    pod = a_pod(ask_for(3), annotations={"nvidia.com/numa-bind": "true"})
    decision = decide_on(a_cluster(a_node(devices=gpus)), pod)
    assert get_reason(decision) == "1/3 AllocatedCardsInsufficientRequest, 2/3 NumaNotFit"
    assert list_verdicts(decision) == ["AllocatedCardsInsufficientRequest", "NumaNotFit", "NumaNotFit"]


def test_binpack_fills_the_fullest_node_and_spread_the_emptiest() -> None:
    nodes = [a_node("node-a"), a_node("node-b", [a_device("GPU-1")])]
    columns = a_cluster(*nodes, pods=[a_running_pod("GPU-1,NVIDIA,100,10:;", "node-b")])
    assert decide_on(columns, a_pod(ask_for(gpumem=1)), policy=SchedulingPolicy(node="binpack")).chosen == "node-b"
    assert decide_on(columns, a_pod(ask_for(gpumem=1)), policy=SchedulingPolicy(node="spread")).chosen == "node-a"


@pytest.mark.parametrize(("policy", "uuid"), [("binpack", "GPU-1"), ("spread", "GPU-2")])
def test_binpack_takes_the_fullest_device_of_a_node_and_spread_the_emptiest(policy: str, uuid: str) -> None:
    devices = [a_device(f"GPU-{number}") for number in range(3)]
    pods = [
        a_running_pod("GPU-0,NVIDIA,4000,20:;", uid="uid-0"),
        a_running_pod("GPU-1,NVIDIA,9000,60:;", uid="uid-1"),
        a_running_pod("GPU-2,NVIDIA,100,10:;", uid="uid-2"),
    ]
    pod = a_pod(ask_for(gpumem=1), annotations={"hami.io/gpu-scheduler-policy": policy})
    assert list_granted_uuids(decide_on(a_cluster(a_node(devices=devices), pods=pods), pod)) == [[uuid]]


def test_the_node_score_adds_the_used_shares_before_the_pod_itself() -> None:
    columns = a_cluster(
        a_node(devices=[a_device(devmem=1000, count=10)]), pods=[a_running_pod("GPU-0,NVIDIA,500,20:;")]
    )
    (score,) = decide_on(columns, a_pod(ask_for(gpumem=1))).score.tolist()
    assert score == pytest.approx(10 * (1 / 10 + 20 / 100 + 500 / 1000))


def test_among_equal_nodes_the_first_name_wins() -> None:
    columns = a_cluster(a_node("node-b", [a_device("GPU-1")]), a_node("node-a"))
    assert decide_on(columns, a_pod(), "node-b", "node-a").chosen == "node-a"


def test_a_container_without_gpu_keeps_its_place_in_the_annotation() -> None:
    decision = decide_on(a_cluster(), a_pod(SIDECAR, ask_for(gpumem=3000, gpucores=30)))
    assert decision.annotations == {
        "hami.io/vgpu-node": "node-a",
        "hami.io/vgpu-devices-allocated": ";GPU-0,NVIDIA,3000,30:;",
        "hami.io/vgpu-devices-to-allocate": ";GPU-0,NVIDIA,3000,30:;",
    }
    assert decision.labels == {"hami.io/vgpu-node": "node-a"}


def test_app_containers_add_up_and_init_containers_do_not() -> None:
    columns = a_cluster(a_node(devices=[a_device(devmem=1000)]))
    fits = a_pod(ask_for(gpumem=600), init=[ask_for(gpumem=900), ask_for(gpumem=900)])
    assert decide_on(columns, fits).chosen == "node-a"
    too_much = decide_on(columns, a_pod(ask_for(gpumem=600), ask_for(gpumem=600)))
    assert get_reason(too_much) == "1/1 CardInsufficientMemory"
    assert too_much.refused_by.tolist() == [1]


def test_a_container_behind_the_refused_one_is_not_judged() -> None:
    decision = decide_on(a_cluster(), a_pod(ask_for(gpumem=999_999), ask_for(gpumem=1)))
    assert [judged.container for judged in decision.judgements] == [0]


def test_the_numbers_of_a_verdict_are_those_before_its_own_container() -> None:
    decision = decide_on(a_cluster(), a_pod(ask_for(gpumem=1000), ask_for(gpumem=500)))
    assert [judged.used_memory_mib.tolist() for judged in decision.judgements] == [[0], [1000]]


def test_a_decision_keeps_its_numbers_when_the_cluster_changes() -> None:
    columns = a_cluster(pods=[a_running_pod("GPU-0,NVIDIA,7000,0:;")])
    decision = decide_on(columns, a_pod(ask_for(gpumem=20000)))
    columns.delete_node("node-a")
    columns.apply_node(a_node("node-z", [a_device("GPU-9", devmem=5)]))
    assert decision.judgements[0].used_memory_mib.tolist() == [7000]
    fragment = decision.get_fragment(0)
    assert fragment is not None
    assert fragment.uuids == ("GPU-0",)


def test_an_unregistered_node_is_refused_in_words() -> None:
    columns = a_cluster(a_node("node-a", "{"))
    decision = decide_on(columns, a_pod(), "node-a", "cpu-node")
    assert decision.list_failed_nodes() == {"node-a": "node unregistered", "cpu-node": "node unregistered"}
    assert list(decision.node_causes) == ["node-a"]


def test_no_offered_node_is_a_decision_for_none() -> None:
    assert decide(a_cluster(), a_pod(), [], SchedulingPolicy()).chosen is None  # type: ignore[union-attr]


def test_a_node_offered_twice_is_judged_twice() -> None:
    decision = decide_on(a_cluster(), a_pod(ask_for(gpumem=999_999)), "node-a", "node-a")
    assert decision.refusal.tolist() == [0, 0]


def test_nodes_of_very_different_sizes_are_judged_in_one_decision() -> None:
    big = [a_device(f"BIG-{i}", health=False) for i in range(100)]
    columns = a_cluster(a_node("node-a", big), a_node("node-b"))
    decision = decide_on(columns, a_pod())
    assert get_reason(decision) == "100/100 CardNotHealth"
    assert decision.chosen == "node-b"


def test_reserving_takes_the_devices_and_releasing_gives_them_back() -> None:
    columns = a_cluster(a_node(devices=[a_device(devmem=1000)]))
    first = a_pod(ask_for(gpumem=600), uid="uid-1")
    reserve(columns, decide_on(columns, first), first)
    assert get_reason(decide_on(columns, a_pod(ask_for(gpumem=600), uid="uid-2"))) == "1/1 CardInsufficientMemory"
    release(columns, "uid-1")
    assert decide_on(columns, a_pod(ask_for(gpumem=600), uid="uid-2")).chosen == "node-a"


def test_a_pod_is_not_in_its_own_way_when_it_is_tried_again() -> None:
    columns = a_cluster(a_node(devices=[a_device(devmem=1000)]))
    pod = a_pod(ask_for(gpumem=600))
    reserve(columns, decide_on(columns, pod), pod)
    again = decide_on(columns, pod)
    assert again.chosen == "node-a"
    assert again.score.tolist() == [0.0]
    reserve(columns, again, pod)
    assert get_reason(decide_on(columns, a_pod(ask_for(gpumem=401), uid="uid-2"))) == "1/1 CardInsufficientMemory"


def test_a_late_observation_of_the_pod_without_annotations_does_not_free_its_reservation() -> None:
    columns = a_cluster(a_node(devices=[a_device(devmem=1000)]))
    pod = a_pod(ask_for(gpumem=600))
    reserve(columns, decide_on(columns, pod), pod)
    columns.apply_pod(pod)
    assert columns.get_pod_use("uid-pod") is not None


class TestQuota:
    def test_what_is_over_the_quota_is_refused_device_by_device(self) -> None:
        columns = a_cluster(a_node(devices=[a_device(f"GPU-{i}") for i in range(3)]))
        columns.apply_quota(a_quota(gpumem="5000"))
        decision = decide_on(columns, a_pod(ask_for(2, gpumem=3000)))
        assert get_reason(decision) == "1/3 AllocatedCardsInsufficientRequest, 2/3 ResourceQuotaNotFit"

    def test_other_namespaces_are_not_limited(self) -> None:
        columns = a_cluster()
        columns.apply_quota(a_quota(namespace="other", gpumem="1"))
        assert decide_on(columns, a_pod(ask_for(gpumem=3000))).chosen == "node-a"

    def test_what_running_pods_hold_counts_and_comes_back(self) -> None:
        columns = a_cluster(pods=[a_running_pod("GPU-0,NVIDIA,3000,0:;")])
        columns.apply_quota(a_quota(gpumem="5000"))
        assert get_reason(decide_on(columns, a_pod(ask_for(gpumem=3000)))) == "1/1 ResourceQuotaNotFit"
        columns.delete_pod("uid-running")
        assert decide_on(columns, a_pod(ask_for(gpumem=3000))).chosen == "node-a"

    def test_app_containers_after_an_init_container_all_count(self) -> None:
        columns = a_cluster()
        columns.apply_quota(a_quota(gpumem="5000"))
        pod = a_pod(ask_for(gpumem=3000), ask_for(gpumem=3000), init=[ask_for(gpumem=10)])
        assert get_reason(decide_on(columns, pod)) == "1/1 ResourceQuotaNotFit"

    def test_amounts_beyond_32_bits_do_not_wrap_around_a_quota(self) -> None:
        columns = a_cluster(a_node(devices=[a_device(f"GPU-{i}", devmem=2**31 - 1) for i in range(3)]))
        columns.apply_quota(a_quota(gpumem="100000"))
        decision = decide_on(columns, a_pod(ask_for(3, gpumem=2**31 - 1)))
        assert get_reason(decision) == "3/3 ResourceQuotaNotFit"

    def test_a_deleted_quota_limits_no_more(self) -> None:
        columns = a_cluster()
        columns.apply_quota(a_quota(gpumem="1"))
        columns.delete_quota("default", "quota")
        assert decide_on(columns, a_pod(ask_for(gpumem=3000))).chosen == "node-a"


class TestMig:
    def build_cluster(self) -> ClusterColumns:
        return a_cluster(a_node(devices=[a_mig_device()]))

    def test_one_device_may_give_several_instances(self) -> None:
        decision = decide_on(self.build_cluster(), a_pod(ask_for(2, gpumem=10_000)))
        assert list_granted_uuids(decision) == [["GPU-0", "GPU-0"]]
        assert decision.allocation is not None
        slices = [grant.mig for grant in decision.allocation.containers[0]]
        assert [(part.profile, part.start) for part in slices if part] == [("3g.20gb", 4), ("3g.20gb", 0)]

    def test_a_grant_has_the_memory_and_cores_of_its_profile(self) -> None:
        decision = decide_on(self.build_cluster(), a_pod(ask_for(gpumem=100, gpucores=5)))
        assert decision.annotations["hami.io/vgpu-devices-allocated"] == "GPU-0,NVIDIA,4864,14:;"

    def test_each_look_at_a_device_is_a_row(self) -> None:
        decision = decide_on(self.build_cluster(), a_pod(ask_for(3, gpumem=10_000)))
        assert get_reason(decision) == "1/1 CardMigTopologyInfeasible, 2/1 AllocatedCardsInsufficientRequest"
        assert list_verdicts(decision) == ["AllocatedCardsInsufficientRequest"] * 2 + ["CardMigTopologyInfeasible"]
        (judged,) = decision.judgements
        assert (judged.device.tolist(), judged.is_complete.tolist(), judged.devices.tolist()) == (
            [0, 0, 0],
            [False],
            [1],
        )

    def test_a_reserved_instance_keeps_its_place(self) -> None:
        columns = self.build_cluster()
        first = a_pod(ask_for(gpumem=10_000), uid="uid-1")
        reserve(columns, decide_on(columns, first), first)
        decision = decide_on(columns, a_pod(ask_for(gpumem=10_000), uid="uid-2"))
        assert decision.allocation is not None
        part = decision.allocation.containers[0][0].mig
        assert part is not None
        assert part.start == 0

    def test_a_device_whose_instances_are_not_reported_is_not_healthy(self) -> None:
        columns = self.build_cluster()
        columns.apply_pod(a_running_pod("GPU-0,NVIDIA,4864,14:;"))
        assert get_reason(decide_on(columns, a_pod(ask_for(gpumem=100)))) == "1/1 CardNotHealth"


def test_topology_aware_takes_the_best_connected_devices() -> None:
    gpus = [a_device(f"GPU-{i}") for i in range(3)]
    scores = '[{"uuid":"GPU-0","score":{"GPU-2":9,"GPU-1":1}},{"uuid":"GPU-2","score":{"GPU-0":9,"GPU-1":1}}]'
    columns = a_cluster(a_node(devices=gpus, node_nvidia_score=scores))
    decision = decide_on(columns, a_pod(ask_for(2)), policy=SchedulingPolicy(device="topology-aware"))
    assert sorted(list_granted_uuids(decision)[0]) == ["GPU-0", "GPU-2"]
    assert list_verdicts(decision) == ["picked", "fits", "picked"]


@pytest.mark.parametrize("limit", ["9223372036854775807", "-9223372036854775808"])
@pytest.mark.parametrize("held", ["-2147483648,-1000", "2147483647,1000"])
def test_l8_a_quota_of_64_bits_is_judged_without_an_overflow(limit: str, held: str) -> None:
    """L8: with what pods hold added or taken away, the number no longer fits into 64 bits."""
    columns = a_cluster(a_node(devices=[a_device("GPU-free")]), pods=[a_running_pod(f"GPU-0,NVIDIA,{held}:;")])
    columns.apply_quota(a_quota(gpumem=limit, gpucores=limit))
    decision = decide_on(columns, a_pod(ask_for(gpumem=3000)))
    assert (decision.chosen == "node-a") is not limit.startswith("-")


def test_m5_a_pod_with_more_containers_than_an_event_holds_is_refused_before_it_is_judged() -> None:
    containers = [ask_for() | {"name": f"container-{number}"} for number in range(9_000)]
    answer = decide(a_cluster(), a_pod(*containers), ["node-a"], SchedulingPolicy())
    assert isinstance(answer, Failed)
    assert answer.error == "the pod has 9000 containers, 500 are judged at most: divide it into several pods"
    assert (len(answer.containers), answer.left_out) == (500, 8_500)


def test_n17_containers_are_counted_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes a tenth of a millisecond, in which no other pod is answered."""
    looked_at: list[object] = []

    def note(container: Mapping[str, Any], is_init: bool, vendors: Vendors) -> list[VendorRequest]:
        looked_at.append(container)
        return list_container_requests(container, is_init, vendors)

    list_container_requests = pod_request._list_container_requests
    monkeypatch.setattr(pod_request, "_list_container_requests", note)
    containers = [ask_for() | {"name": f"container-{number}"} for number in range(9_000)]
    assert isinstance(decide(a_cluster(), a_pod(*containers), ["node-a"], SchedulingPolicy()), Failed)
    assert len(looked_at) == 500


def test_m4_a_pod_of_which_more_containers_ask_than_are_judged_is_refused_with_what_to_do() -> None:
    asking = [ask_for(gpumem=1) | {"name": f"container-{number}"} for number in range(17)]
    other = [{"name": f"sidecar-{number}"} for number in range(100)]
    answer = decide(a_cluster(), a_pod(*asking, *other), ["node-a"], SchedulingPolicy())
    assert isinstance(answer, Failed)
    assert answer.error == "17 containers of the pod ask for devices, 16 may: divide it into several pods"
    assert isinstance(decide(a_cluster(), a_pod(*asking[1:], *other), ["node-a"], SchedulingPolicy()), Decision)
