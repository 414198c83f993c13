"""Devices of a refused claim by reason, with their values in both languages, and the counts next to the scheduler's."""

from datetime import UTC, datetime
from typing import Any

from engine.cases.pod_facts import CaseFacts
from engine.cases.refused_pods import MAX_EXPLAINED
from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.judged_steps import compare_with_scheduler
from engine.diagnosis.tree import diagnose
from engine.snapshot.case_objects import collect_objects
from schemas.answers.diagnosis import Diagnosis, Obstacle
from schemas.events import AttemptSummarized
from tests.support.builders.claims import (
    a_claim,
    a_class,
    a_device,
    a_pod_with,
    a_request,
    a_slice,
    an_allocation,
)
from tests.support.builders.cluster import Object, a_node
from tests.support.harness.index_filling import an_attempt

NOW = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
BIG = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('80Gi')) >= 0"


def judge(*objects: Object, pod: Object | None = None) -> tuple[DiagnosisFacts, Any]:
    asking = pod or a_pod_with("c0")
    asking.setdefault("status", {})["phase"] = "Pending"
    facts = CaseFacts(collect_objects([asking, *objects]), NOW)
    metadata = asking["metadata"]
    return facts.build(metadata["namespace"], metadata["name"]), facts.judge(metadata["namespace"], metadata["name"])


def diagnose_case(*objects: Object, pod: Object | None = None) -> Diagnosis:
    facts, judged = judge(*objects, pod=pod)
    return diagnose(facts, judged=judged)


def get_obstacle(*objects: Object, pod: Object | None = None) -> Obstacle:
    obstacle = diagnose_case(*objects, pod=pod).obstacle
    assert obstacle
    return obstacle


def list_examples(obstacle: Obstacle, language: str = "en") -> dict[str, list[tuple[str, int]]]:
    return {
        reason.reason: [(getattr(example.text, language), example.devices) for example in reason.examples]
        for reason in obstacle.devices
    }


def test_devices_have_their_values_and_the_nearest_to_a_fit_comes_first() -> None:
    held = a_claim(name="held", status=an_allocation("large", pods=["train-0"]))
    devices = [a_device("large", "80Gi"), a_device("small", "40Gi"), a_device("smaller", "40Gi")]
    obstacle = get_obstacle(a_node("n1"), a_class(), a_slice(*devices), held, a_claim(a_request(BIG)))
    assert obstacle.code == "DevicesInUse"
    assert list_examples(obstacle) == {
        "DeviceInUse": [("in use by claim default/held, reserved for pod train-0", 1)],
        "SelectorNotMatched": [("claim default/c0: selector #0: memory 40Gi, asked at least 80Gi", 2)],
    }
    assert list_examples(obstacle, "zh") == {
        "DeviceInUse": [("被声明 default/held 占用，预留给 train-0", 1)],
        "SelectorNotMatched": [("声明 default/c0 的选择器 #0：memory 为 40Gi，要求至少 80Gi", 2)],
    }
    assert [reason.devices for reason in obstacle.devices] == [1, 2]
    assert obstacle.devices[0].examples[0].device == "gpu.nvidia.com/n1/large"
    assert "`kubectl get resourceclaim c0 -n default -o yaml`" in obstacle.devices[1].remedy.en


def test_equal_nodes_have_their_own_holders() -> None:
    nodes = [a_node(f"n{number}") for number in range(3)]
    slices = [a_slice(a_device("gpu"), node=f"n{number}") for number in range(3)]
    holders = [a_claim(name=f"held-{n}", status=an_allocation("gpu", node=f"n{n}")) for n in range(3)]
    obstacle = get_obstacle(*nodes, a_class(), *slices, *holders, a_claim())
    texts = {example.node: example.text.en for example in obstacle.devices[0].examples}
    assert texts == {f"n{n}": f"in use by claim default/held-{n}, reserved for nobody" for n in range(3)}


def test_a_near_device_on_the_last_of_many_equal_nodes_decides() -> None:
    count = MAX_EXPLAINED * 3
    nodes = [a_node(f"n{number:03}") for number in range(count)]
    slices = [a_slice(a_device("gpu", "40Gi"), node=f"n{number:03}") for number in range(count - 1)]
    last = a_slice(a_device("gpu", "80Gi"), node=f"n{count - 1:03}")
    held = a_claim(name="held", status=an_allocation("gpu", node=f"n{count - 1:03}"))
    obstacle = get_obstacle(*nodes, a_class(), *slices, last, held, a_claim(a_request(BIG)))
    assert obstacle.code == "DevicesInUse"
    assert {reason.reason: reason.devices for reason in obstacle.devices} == {
        "DeviceInUse": 1,
        "SelectorNotMatched": count - 1,
    }


def test_a_constraint_is_why_too_few_devices_fit_together() -> None:
    devices = [a_device(f"gpu-{index}", "", {"numa": index % 2}) for index in range(4)]
    constraint = {"requests": [], "matchAttribute": "gpu.nvidia.com/numa"}
    claim = a_claim(a_request(count=3), constraints=[constraint])
    obstacle = get_obstacle(a_node("n1"), a_class(), a_slice(*devices), claim)
    assert obstacle.code == "DevicesTooFew"
    assert "matchAttribute gpu.nvidia.com/numa: 1, the devices taken before it have 0" in obstacle.sentence.en
    assert "先选中的设备为 0" in obstacle.sentence.zh


def test_an_extended_resource_is_named_instead_of_the_claim_that_is_made_up_for_it() -> None:
    pod = a_pod_with()
    amounts = {"nvidia.com/gpu": "4"}
    pod["spec"]["containers"] = [{"name": "main", "resources": {"limits": amounts, "requests": amounts}}]
    served = a_class(extendedResourceName="nvidia.com/gpu")
    devices = [a_device(f"gpu-{index}") for index in range(2)]
    unused = a_claim(name="unused")
    obstacle = get_obstacle(a_node("n1"), served, a_slice(*devices), unused, pod=pod)
    assert "for the pod's resource nvidia.com/gpu, which device class gpu serves: 4 asked" in obstacle.sentence.en


def test_a_selector_that_fails_names_the_devices_and_one_line_of_the_error() -> None:
    objects = [a_node("n1"), a_class(), a_slice(a_device("a"), a_device("b"))]
    missing = get_obstacle(*objects, a_claim(a_request("device.attributes['gpu.nvidia.com'].nvlink == true")))
    assert missing.code == "ClaimError"
    [(text, count)] = list_examples(missing)["SelectorError"]
    assert "nvlink is not set" in text
    assert count == 2
    unfinished = get_obstacle(*objects, a_claim(a_request("device.driver ==")))
    assert "CEL compile error" in unfinished.sentence.en
    assert "\n" not in unfinished.sentence.en


def a_refused_attempt(**counts: int) -> AttemptSummarized:
    return an_attempt("default/p1").model_copy(update={"refused_nodes": counts, "nodes": [], "reconstruction": None})


def compare(*objects: Object, counts: dict[str, int] | None) -> tuple[str, str]:
    judged = judge(*objects)[1]
    attempt = a_refused_attempt(**counts) if counts is not None else None
    comparison = compare_with_scheduler(DiagnosisFacts("c", "default", "p1", NOW, attempt), judged)
    assert comparison
    return comparison.agreement, comparison.text.en


def test_the_schedulers_counts_prove_the_verdicts_or_are_written_next_to_them() -> None:
    objects = [a_node("n1"), a_class(), a_slice(a_device("a", "40Gi")), a_claim(a_request(BIG))]
    equal, text = compare(*objects, counts={"cannot allocate all claims": 1})
    assert equal == "equal"
    assert text.endswith("the scheduler counted the same (1 cannot allocate all claims).")
    different, text = compare(*objects, counts={"Insufficient cpu": 1})
    assert different == "different"
    assert "the scheduler counted 1 Insufficient cpu; the objects give 1 cannot allocate all claims." in text
    assert compare(*objects, counts=None)[0] == "not compared"


def test_nodes_that_an_extender_counts_do_not_contradict_the_filters() -> None:
    objects = [a_node("n1"), a_node("n2"), a_class(), a_slice(a_device("a", "40Gi")), a_claim(a_request(BIG))]
    counts = {"cannot allocate all claims": 2, "CardInsufficientMemory": 1}
    assert compare(*objects, counts=counts)[0] == "equal"


def test_objects_without_slices_leave_the_nodes_open() -> None:
    case = CaseFacts(collect_objects([a_pod_with("c0"), a_node("n1"), a_class(), a_claim()]), NOW)
    assert case.list_nodes("default", "p1") == []
    agreement, text = compare(a_node("n1"), a_class(), a_claim(), counts={"cannot allocate all claims": 1})
    assert agreement == "not compared"
    assert "there is no ResourceSlice.resource.k8s.io among them" in text
