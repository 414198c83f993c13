"""Pods whose end makes room, with the copies that start after it counted by hand."""

from typing import Any

import pytest

from engine.capacity.per_node import measure_capacity
from engine.capacity.releases import Release, find_release
from engine.capacity.shapes import Shape, build_template
from engine.fit import device_config
from engine.simulation.workloads import PodTemplate
from tests.support.builders.capacity import SETTING, a_holder
from tests.support.builders.cluster import a_node, a_pod
from tests.support.builders.simulations import a_gpu_node, build_described

Object = dict[str, Any]
VENDORS = device_config.read_shipped()


def find(shape: Shape, *objects: Object, wanted: int = 1) -> Release | None:
    cluster = build_described(*objects)
    uses = {use.name: use for use in cluster.columns.list_pod_uses()}
    release = find_release(cluster, measure_capacity(cluster, build_template(shape, VENDORS), SETTING), wanted, SETTING)
    assert {use.name: use for use in cluster.columns.list_pod_uses()} == uses
    return release


LARGE = a_holder("large", "n1", {0: (20_000, 0), 1: (20_000, 0)})
SMALL = a_holder("small", "n2", {0: (20_000, 0)})
NODES = (a_gpu_node("n1", 2), a_gpu_node("n2", 1))


@pytest.mark.parametrize(
    ("wanted", "name", "gain"),
    [
        # Either end lets one copy start; of the two the one that gives less back.
        (1, "small", 1),
        (2, "large", 2),
        (9, "large", 2),
    ],
)
def test_the_end_with_the_largest_gain_is_named_and_of_equal_ones_the_smallest(
    wanted: int, name: str, gain: int
) -> None:
    release = find(Shape(1, 20_000), *NODES, LARGE, SMALL, wanted=wanted)
    assert release is not None
    assert (release.namespace, release.name, release.gain) == ("default", name, gain)
    assert release.node == {"small": "n2", "large": "n1"}[name]


def test_copies_that_start_now_are_no_gain_of_an_end() -> None:
    # n1 has a free device: of two copies after the end one starts now.
    half = a_holder("half", "n1", {0: (20_000, 0)})
    assert find(Shape(1, 20_000), NODES[0], half) == Release("default", "half", "n1", 1)
    assert find(Shape(1, 30_000), NODES[0], half) is None


def test_pods_that_have_ended_or_wait_hold_nothing() -> None:
    ended = {**LARGE, "status": {"phase": "Succeeded"}}
    waiting = a_pod("waiting", cpu="1")
    assert find(Shape(3, 20_000), NODES[0], ended, waiting) is None


def test_a_pod_on_a_node_that_was_not_read_is_passed_over() -> None:
    elsewhere = a_holder("elsewhere", "n9", {0: (20_000, 0)})
    assert find(Shape(1, 20_000), NODES[1], SMALL, elsewhere) == Release("default", "small", "n2", 1)


def test_a_pod_without_devices_gives_back_cpu() -> None:
    cluster = build_described(a_node("n1"), a_pod("a", node="n1", cpu="5"), a_pod("b", node="n1", cpu="2"))
    pod = a_pod("p", cpu="4")
    capacity = measure_capacity(cluster, PodTemplate("Pod", "p", pod, 1, {}), SETTING)
    assert find_release(cluster, capacity, 1, SETTING) == Release("default", "a", "n1", 1)


def test_where_copies_decide_about_other_nodes_no_end_is_named() -> None:
    pod = a_pod("p", cpu="4")
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    cluster = build_described(a_node("n1"), a_pod("a", node="n1", cpu="5"))
    capacity = measure_capacity(cluster, PodTemplate("Pod", "p", pod, 1, {}), SETTING)
    assert find_release(cluster, capacity, 1, SETTING) is None
