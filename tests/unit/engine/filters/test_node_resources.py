"""NodeResourcesFit and NodePorts: what pods on a node have taken."""

from typing import Any

import pytest

from engine.filters.judgement import JudgedOutcome
from engine.filters.release import parse_release
from engine.snapshot import kinds
from tests.support.builders.cluster import a_node, a_pod
from tests.support.builders.judged import get_codes, get_reasons, judge_pod

TAKEN = ("node(s) didn't have free ports for the requested pod ports",)


def a_device_class(name: str, resource: str | None = None) -> dict[str, Any]:
    spec = {"extendedResourceName": resource} if resource else {}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": spec,
    }


@pytest.mark.parametrize(("cpu", "reason"), [("7", ()), ("7001m", ("Insufficient cpu",))])
def test_a_request_up_to_what_is_left_fits(cpu: str, reason: tuple[str, ...]) -> None:
    assert get_reasons(judge_pod(a_pod(cpu=cpu), a_node(), a_pod("other", node="n1", cpu="1"))) == reason


def test_reasons_come_in_the_order_of_kube_scheduler() -> None:
    pod = a_pod(gpu="1", ephemeral_storage="1Gi", memory="17Gi", cpu="9")
    judgement = judge_pod(pod, a_node(pods="0"))
    assert get_reasons(judgement) == (
        "Too many pods",
        "Insufficient cpu",
        "Insufficient memory",
        "Insufficient ephemeral-storage",
        "Insufficient nvidia.com/gpu",
    )


def test_a_node_with_as_many_pods_as_it_may_have_is_full() -> None:
    full = judge_pod(a_pod(), a_node(pods="1"), a_pod("other", node="n1"))
    assert get_reasons(full) == ("Too many pods",)
    assert get_codes(full) == {"n1": "Unschedulable"}
    assert get_reasons(judge_pod(a_pod(), a_node(pods="2"), a_pod("other", node="n1"))) == ()


def test_a_request_beyond_the_whole_node_is_unresolvable() -> None:
    taken = a_pod("other", node="n1", cpu="8")
    assert get_codes(judge_pod(a_pod(cpu="8"), a_node(), taken)) == {"n1": "Unschedulable"}
    assert get_codes(judge_pod(a_pod(cpu="8001m"), a_node(), taken)) == {"n1": "UnschedulableAndUnresolvable"}
    assert get_codes(judge_pod(a_pod(cpu="9"), a_node(), release=parse_release("1.33"))) == {"n1": "Unschedulable"}


def test_one_oversized_resource_makes_the_refusal_unresolvable() -> None:
    taken = a_pod("other", node="n1", memory="16Gi")
    assert get_codes(judge_pod(a_pod(cpu="9", memory="1Gi"), a_node(), taken)) == {"n1": "UnschedulableAndUnresolvable"}


def test_a_pod_without_a_request_fits_an_overcommitted_node() -> None:
    assert get_reasons(judge_pod(a_pod(), a_node(), a_pod("other", node="n1", cpu="100"))) == ()


def test_a_request_of_zero_is_passed_over() -> None:
    assert get_reasons(judge_pod(a_pod(gpu="0", cpu="1"), a_node())) == ()
    taken = a_pod("other", node="n1", gpu="1")
    assert get_reasons(judge_pod(a_pod(gpu="0", cpu="1"), a_node(), taken)) == ()


def test_a_request_may_take_all_of_an_empty_node() -> None:
    assert get_reasons(judge_pod(a_pod(cpu="8", memory="16Gi", gpu="2"), a_node(gpu="2"))) == ()


def test_pods_are_counted_and_not_requested() -> None:
    assert get_reasons(judge_pod(a_pod(cpu="1", pods="5"), a_node(pods="1"))) == ()


def test_a_node_that_allows_no_pods_is_full() -> None:
    node = a_node()
    del node["status"]["allocatable"]["pods"]
    assert get_reasons(judge_pod(a_pod(), node)) == ("Too many pods",)


def test_a_resource_that_the_node_does_not_have_counts_as_none() -> None:
    judgement = judge_pod(a_pod(gpu="1"), a_node())
    assert get_reasons(judgement) == ("Insufficient nvidia.com/gpu",)
    assert get_codes(judgement) == {"n1": "UnschedulableAndUnresolvable"}


@pytest.mark.parametrize(
    ("resource", "device_class"),
    [
        ("nvidia.com/gpu", a_device_class("gpus", "nvidia.com/gpu")),
        ("deviceclass.resource.kubernetes.io/gpus", a_device_class("gpus")),
    ],
)
def test_a_resource_of_a_device_class_is_left_to_claims_where_the_node_has_none(
    resource: str, device_class: dict[str, Any]
) -> None:
    pod, without, with_none = a_pod(), a_node(), a_node()
    pod["spec"]["containers"][0]["resources"]["requests"] = {resource: "1"}
    with_none["status"]["allocatable"][resource] = "0"
    assert get_reasons(judge_pod(pod, without, device_class)) == ()
    assert get_reasons(judge_pod(pod, with_none, device_class)) == ()
    former = judge_pod(pod, without, device_class, release=parse_release("1.35"))
    assert get_reasons(former) == (f"Insufficient {resource}",)


def test_a_resource_of_the_nodes_own_plugin_counts_although_a_class_has_it() -> None:
    node = a_node(gpu="1")
    taken = a_pod("other", node="n1", gpu="1")
    judgement = judge_pod(a_pod(gpu="1"), node, taken, a_device_class("gpus", "nvidia.com/gpu"))
    assert get_reasons(judgement) == ("Insufficient nvidia.com/gpu",)


def test_sidecars_are_refused_by_1_28() -> None:
    pod = a_pod()
    pod["spec"]["initContainers"] = [{"name": "s", "restartPolicy": "Always"}]
    judgement = judge_pod(pod, a_node(), release=parse_release("1.28"))
    assert judgement.outcome is JudgedOutcome.PREFILTER
    assert judge_pod(pod, a_node(), release=parse_release("1.29")).fitting == ("n1",)


def test_without_the_pods_a_refusal_stands_and_a_pass_is_open() -> None:
    judgement = judge_pod(a_pod(cpu="9"), a_node("n1"), unread=(kinds.POD,))
    assert get_reasons(judgement) == ("Insufficient cpu",)
    judgement = judge_pod(a_pod(cpu="1"), a_node("n1"), unread=(kinds.POD,))
    assert judgement.outcome is JudgedOutcome.OPEN
    assert {unjudged.plugin for unjudged in judgement.undecided["n1"]} == {"NodeResourcesFit"}
    assert all(unjudged.kinds == {kinds.POD} for unjudged in judgement.undecided["n1"])
    assert judgement.message == ""


def test_without_the_device_classes_a_missing_extended_resource_is_open() -> None:
    judgement = judge_pod(a_pod(gpu="1"), a_node("n1"), unread=(kinds.DEVICE_CLASS,))
    assert judgement.outcome is JudgedOutcome.OPEN
    assert judgement.undecided["n1"][0].kinds == {kinds.DEVICE_CLASS}
    provided = judge_pod(a_pod(gpu="2"), a_node("n1", gpu="1"), unread=(kinds.DEVICE_CLASS,))
    assert get_reasons(provided) == ("Insufficient nvidia.com/gpu",)
    native = judge_pod(a_pod(gpu="1", cpu="9"), a_node("n1"), unread=(kinds.DEVICE_CLASS,))
    assert get_reasons(native) == ("Insufficient cpu", "Insufficient nvidia.com/gpu")


def with_port(pod: dict[str, Any], port: int, **fields: Any) -> dict[str, Any]:
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": port, **fields}]
    return pod


@pytest.mark.parametrize(
    ("mine", "theirs", "conflicts"),
    [
        ({}, {}, True),
        ({"protocol": "TCP"}, {"protocol": "UDP"}, False),
        ({"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.2"}, False),
        ({"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.1"}, True),
        ({"hostIP": "10.0.0.1"}, {}, True),
        ({"hostIP": "10.0.0.1"}, {"hostIP": "0.0.0.0"}, True),  # noqa: S104 - an address in an object
        ({}, {"hostIP": "10.0.0.1"}, True),
    ],
)
def test_host_ports_conflict(mine: dict[str, Any], theirs: dict[str, Any], *, conflicts: bool) -> None:
    other = with_port(a_pod("other", node="n1"), 80, **theirs)
    judgement = judge_pod(with_port(a_pod(), 80, **mine), a_node(), other)
    assert get_reasons(judgement) == (TAKEN if conflicts else ())
    assert get_codes(judgement) == ({"n1": "Unschedulable"} if conflicts else {})


def test_another_port_and_a_port_of_the_container_do_not_conflict() -> None:
    assert get_reasons(judge_pod(with_port(a_pod(), 81), a_node(), with_port(a_pod("other", node="n1"), 80))) == ()
    assert "NodePorts" in judge_pod(with_port(a_pod(), 0), a_node()).skipped


def test_ports_of_sidecars_count_and_those_of_other_init_containers_do_not() -> None:
    other = a_pod("other", node="n1")
    init = {"name": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}
    other["spec"]["initContainers"] = [init]
    assert get_reasons(judge_pod(with_port(a_pod(), 80), a_node(), other)) == ()
    init["restartPolicy"] = "Always"
    assert get_reasons(judge_pod(with_port(a_pod(), 80), a_node(), other)) == TAKEN
    assert get_reasons(judge_pod(with_port(a_pod(), 80), a_node(), other, release=parse_release("1.33.5"))) == ()


def test_ports_of_the_pods_own_sidecars_count() -> None:
    pod, other = a_pod(), with_port(a_pod("other", node="n1"), 80)
    ports = [{"containerPort": 80, "hostPort": 80}]
    pod["spec"]["initContainers"] = [{"name": "s", "restartPolicy": "Always", "ports": ports}]
    assert get_reasons(judge_pod(pod, a_node(), other)) == TAKEN
    assert "NodePorts" in judge_pod(pod, a_node(), other, release=parse_release("1.33.5")).skipped


def test_without_the_pods_a_free_port_is_open() -> None:
    judgement = judge_pod(with_port(a_pod(), 80), a_node(), unread=(kinds.POD,))
    assert {unjudged.plugin for unjudged in judgement.undecided["n1"]} == {"NodePorts", "NodeResourcesFit"}
