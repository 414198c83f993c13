"""Capacity counted on one node of each kind is that of every node judged by itself."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.capacity import per_node
from engine.capacity.shapes import Shape, build_template
from engine.simulation.cluster import SimulationCluster
from engine.simulation.counted import judge_for_counting
from engine.simulation.verdict import PodOutcome, judge_simulated
from engine.simulation.workloads import PodTemplate
from tests.support.builders.capacity import SETTING, a_holder
from tests.support.builders.cluster import a_pod, a_taint
from tests.support.builders.simulations import a_gpu_node, build_described

Object = dict[str, Any]
_TAINTS = st.sampled_from([(), (a_taint("gpu", "only"),), (a_taint("gpu", "soft", "PreferNoSchedule"),)])


@st.composite
def fleets(draw: st.DrawFn) -> SimulationCluster:
    """Up to six nodes of few kinds, some cordoned or tainted, with pods that take CPU, memory or devices."""
    objects: list[Object] = []
    for number in range(draw(st.integers(1, 6))):
        name = f"n{number}"
        node = a_gpu_node(name, draw(st.sampled_from([1, 2])), taints=draw(_TAINTS), cpu=draw(st.sampled_from("48")))
        node["spec"]["unschedulable"] = draw(st.sampled_from([False, False, True]))
        objects.append(node)
        if draw(st.booleans()):
            objects.append(a_holder(f"{name}-device", name, {0: (draw(st.sampled_from([9000, 20000])), 0)}))
        if draw(st.booleans()):
            objects.append(a_pod(f"{name}-cpu", node=name, cpu=draw(st.sampled_from(["1", "3"]))))
    return build_described(*objects)


@st.composite
def templates(draw: st.DrawFn) -> PodTemplate:
    """A pod of devices, perhaps with CPU, a toleration, or a rule about one of equal nodes."""
    cluster = build_described(a_gpu_node("n0", 1))
    shape = Shape(draw(st.integers(1, 2)), draw(st.sampled_from([0, 9000, 20000])))
    template = build_template(shape, cluster.vendors)
    spec = template.pod["spec"]
    if cpu := draw(st.sampled_from(["", "1", "2500m", "5"])):
        spec["containers"][0]["resources"]["requests"] = {"cpu": cpu}
    if draw(st.booleans()):
        spec["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    if draw(st.integers(0, 3)) == 0:
        spec["nodeSelector"] = {"kubernetes.io/hostname": "n1"}
    return template


@settings(max_examples=80, deadline=None)
@given(fleets(), templates())
def test_the_count_is_that_of_every_node_judged_by_itself(cluster: SimulationCluster, template: PodTemplate) -> None:
    counted = per_node.measure_capacity(cluster, template, SETTING)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(per_node, "judge_for_counting", lambda *_: None)
        patch.setattr(type(cluster.node_kinds), "read", lambda *_: None)
        plain = per_node.measure_capacity(cluster, template, SETTING)
    assert dict(counted.copies) == dict(plain.copies)
    assert (counted.verdict.outcome, counted.is_counted) == (plain.verdict.outcome, plain.is_counted)


@settings(max_examples=80, deadline=None)
@given(fleets(), templates())
def test_nodes_that_pass_are_those_of_the_complete_verdict(cluster: SimulationCluster, template: PodTemplate) -> None:
    verdict = judge_for_counting(cluster, template.pod, SETTING)
    full = judge_simulated(cluster, template.pod, SETTING.identity, SETTING.policy, SETTING.now)
    if verdict is None:
        return
    assert full.judgement is not None
    assert verdict.fitting == full.judgement.fitting
    if full.outcome is PodOutcome.FITS:
        assert full.decision is not None
        assert verdict.fitting == full.decision.node_names


def test_a_rule_about_single_nodes_is_judged_on_each_of_them() -> None:
    cluster = build_described(a_gpu_node("n0", 1), a_gpu_node("n1", 1))
    template = build_template(Shape(1), cluster.vendors)
    assert judge_for_counting(cluster, template.pod, SETTING) is not None
    for field, rule in {
        "nodeSelector": {"kubernetes.io/hostname": "n1"},
        "affinity": {"nodeAffinity": {}},
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        "containers": [{**template.pod["spec"]["containers"][0], "ports": [{"hostPort": 80}]}],
    }.items():
        pod = {**template.pod, "spec": {**template.pod["spec"], field: rule}}
        assert judge_for_counting(cluster, pod, SETTING) is None, field
    rules = [{"labelSelector": {"matchLabels": {}}, "topologyKey": "kubernetes.io/hostname"}]
    other = a_pod("other", node="n0")
    other["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": rules}}
    guarded = build_described(a_gpu_node("n0", 1), a_gpu_node("n1", 1), other)
    assert judge_for_counting(guarded, template.pod, SETTING) is None
