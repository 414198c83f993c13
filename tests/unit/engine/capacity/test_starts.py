"""Counts of pods that start: each is proved by placing the pods one after the other and judging each."""

from itertools import count

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.capacity.added_nodes import Addition, AdditionError, adding_nodes, parse_addition
from engine.capacity.per_node import measure_capacity
from engine.capacity.shapes import Shape, build_template
from engine.capacity.starts import plan_starts
from engine.simulation.cluster import SimulationCluster
from engine.simulation.pod_placer import placing_pods
from engine.simulation.verdict import PodOutcome, judge_simulated
from engine.simulation.workloads import PodTemplate
from tests.support.builders.capacity import SETTING, a_holder, clusters
from tests.support.builders.cluster import a_node, a_pod
from tests.support.builders.simulations import NOW, a_device, a_gpu_node, build_described


def fill_cluster(cluster: SimulationCluster, template: PodTemplate) -> dict[str, int]:
    """Place copies one after the other, each judged by the filters and the fit, until one waits."""
    placed: dict[str, int] = {}
    with placing_pods(cluster) as placer:
        for number in count():
            pod = template.build_pod(number, 1_000)
            verdict = judge_simulated(placer.cluster, pod, SETTING.identity, SETTING.policy, NOW)
            if verdict.outcome is not PodOutcome.FITS:
                return placed
            placer.bind(verdict)
            node = verdict.node or verdict.fitting[0]
            placed[node] = placed.get(node, 0) + 1
    raise AssertionError("the loop ends by a pod that waits")


shapes = st.builds(
    Shape,
    st.integers(1, 4),
    memory_mib=st.sampled_from([0, 3000, 7000, 13000]),
    cores_percent=st.sampled_from([0, 10, 40, 100]),
)


@settings(max_examples=25)
@given(clusters(), shapes)
def test_the_capacity_is_what_placing_one_pod_after_the_other_fills(cluster: SimulationCluster, shape: Shape) -> None:
    template = build_template(shape, cluster.vendors)
    assert dict(measure_capacity(cluster, template, SETTING).copies) == fill_cluster(cluster, template)


@st.composite
def uneven_clusters(draw: st.DrawFn) -> SimulationCluster:
    """A node of devices of several sizes and NUMA nodes, some unhealthy or MIG, with pods on some of them."""
    device = st.builds(
        lambda memory, slots, numa, is_healthy, mode: {
            **a_device(memory=memory, slots=slots), "numa": numa, "health": is_healthy, "mode": mode
        },
        st.sampled_from([8000, 16000, 24576]), st.sampled_from([1, 3, 10]), st.integers(0, 1),
        st.sampled_from([True, True, True, False]), st.sampled_from(["hami-core", "hami-core", "hami-core", "mig"]),
    )  # fmt: skip
    listed = draw(st.lists(device, min_size=1, max_size=6))
    for number, registered in enumerate(listed):
        registered |= {"id": f"GPU-n1-{number}", "index": number}
    node = a_node("n1", gpu="60")
    node["metadata"]["annotations"] = {"hami.io/node-nvidia-register": orjson.dumps(listed).decode()}
    uses = st.tuples(st.sampled_from([1000, 6000, 7000]), st.sampled_from([0, 30]))
    held = draw(st.dictionaries(st.integers(0, len(listed) - 1), uses))
    return build_described(node, *([a_holder("holder", "n1", held)] if held else []))


@settings(max_examples=60)
@given(
    uneven_clusters(),
    shapes,
    st.sampled_from(["", "binpack", "spread", "mutex", "numa,binpack", "spread,numa", "topology-aware"]),
    st.booleans(),
)
def test_the_capacity_follows_the_order_in_which_devices_are_tried(
    cluster: SimulationCluster, shape: Shape, policy: str, is_bound: bool
) -> None:
    template = build_template(shape, cluster.vendors)
    template.pod["metadata"]["annotations"] |= {"hami.io/gpu-scheduler-policy": policy} if policy else {}
    template.pod["metadata"]["annotations"] |= {"nvidia.com/numa-bind": "true"} if is_bound else {}
    assert dict(measure_capacity(cluster, template, SETTING).copies) == fill_cluster(cluster, template)


@pytest.mark.parametrize(("policy", "copies"), [("spread", 2), ("binpack", 1)])
def test_packed_copies_use_up_the_devices_that_the_next_one_needs(policy: str, copies: int) -> None:
    # Room for 1, 1 and 2 shares of 7,000 MiB: packed, the first copy takes both fuller devices.
    cluster = build_described(
        a_gpu_node("n1", 3), a_holder("holder", "n1", {0: (12000, 0), 1: (12000, 0), 2: (9000, 0)})
    )
    template = build_template(Shape(2, 7000), cluster.vendors)
    template.pod["metadata"]["annotations"]["hami.io/gpu-scheduler-policy"] = policy
    assert dict(measure_capacity(cluster, template, SETTING).copies) == {"n1": copies}


@settings(max_examples=12)
@given(clusters(), shapes, st.integers(1, 12))
def test_nodes_to_add_let_the_waiting_pods_start(cluster: SimulationCluster, shape: Shape, wanted: int) -> None:
    template = build_template(shape, cluster.vendors)
    plan = plan_starts(cluster, template, wanted, [], SETTING)
    assert plan.starts == min(wanted, sum(fill_cluster(cluster, template).values()))
    for addition in plan.to_add:
        with adding_nodes(cluster, [Addition(addition.like, addition.nodes)]) as (extended, _):
            assert sum(fill_cluster(extended, template).values()) >= wanted
        fewer = addition.nodes - 1
        with adding_nodes(cluster, [Addition(addition.like, fewer)]) as (extended, _):
            assert sum(fill_cluster(extended, template).values()) < wanted


@settings(max_examples=12)
@given(clusters(), shapes)
def test_the_next_end_makes_the_capacity_that_it_promises(cluster: SimulationCluster, shape: Shape) -> None:
    template = build_template(shape, cluster.vendors)
    before = sum(fill_cluster(cluster, template).values())
    plan = plan_starts(cluster, template, before + 1, [], SETTING)
    if release := plan.next_end:
        others = [item for item in cluster.objects if (item["kind"], item["metadata"]["name"]) != ("Pod", release.name)]
        assert sum(fill_cluster(build_described(*others), template).values()) == before + release.pods


def test_a_question_leaves_the_cluster_as_it_was() -> None:
    cluster = build_described(a_gpu_node("n1", 2), a_holder("p1", "n1", {0: (20000, 0)}))
    template = build_template(Shape(1, memory_mib=6000), cluster.vendors)
    before = plan_starts(cluster, template, 3, [], SETTING)
    plan_starts(cluster, template, 50, [Addition("n1", 3)], SETTING)
    assert plan_starts(cluster, template, 3, [], SETTING) == before
    assert cluster.columns.node_names == ("n1",)


def test_cpu_limits_the_capacity_of_a_file_pod() -> None:
    cluster = build_described(a_node("n1"), a_pod("busy", node="n1", cpu="2"))
    pod = a_pod("web", cpu="2500m")
    capacity = measure_capacity(cluster, PodTemplate("Pod", "web", pod, 1, {}), SETTING)
    assert dict(capacity.copies) == {"n1": 2}


def test_pods_that_keep_apart_are_placed_in_turn() -> None:
    cluster = build_described(*(a_node(name) for name in ("n1", "n2", "n3")))
    pod = a_pod("web", labels={"app": "web"}, cpu="1")
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    pod["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    capacity = measure_capacity(cluster, PodTemplate("Pod", "web", pod, 1, {}), SETTING)
    assert dict(capacity.copies) == {"n1": 1, "n2": 1, "n3": 1}


def test_an_added_node_is_open_and_healthy_where_its_model_is_not() -> None:
    node = a_gpu_node("n1", 2)
    node["spec"]["unschedulable"] = True
    cluster = build_described(node)
    template = build_template(Shape(1), cluster.vendors)
    assert plan_starts(cluster, template, 2, [], SETTING).starts == 0
    plan = plan_starts(cluster, template, 2, [Addition("n1", 1)], SETTING)
    assert (plan.starts, plan.added, plan.sentence.en) == (
        2, ["n1-added-1"], "All 2 start now; there is room for 2 on 1 node.",
    )  # fmt: skip


@pytest.mark.parametrize("text", ["", "like:", "like:n1=0", "like:n1=1001", "n1=x", "a b=1"])
def test_an_addition_that_names_no_node_or_count_is_refused(text: str) -> None:
    with pytest.raises(AdditionError, match="write like:NODE=COUNT"):
        parse_addition(text)


def test_an_addition_of_an_unknown_node_is_refused() -> None:
    cluster = build_described(a_gpu_node("n1"))
    with pytest.raises(AdditionError, match="the cluster has no node n9"):
        plan_starts(cluster, build_template(Shape(1), cluster.vendors), 1, [Addition("n9", 1)], SETTING)
