"""Absurd claims, classes and slices: the answer has the object, the field and the cause, in little time."""

import time
from typing import Any

import pytest

from engine.cases.pod_facts import CaseFacts
from engine.diagnosis.tree import diagnose
from engine.snapshot.case_objects import collect_objects
from schemas.answers.diagnosis import Diagnosis
from tests.support.builders.claims import a_claim, a_class, a_device, a_pod_with, a_request, a_slice
from tests.support.builders.cluster import Object, a_node
from tests.support.builders.simulations import NOW

MAX_CPU_SECONDS = 10
"""Bound for one absurd cluster; each takes less than a second on an idle machine."""
MEMORY = "device.capacity['gpu.nvidia.com'].memory"
NESTED_LOOPS = "".join(f"[1,2,3,4,5,6,7,8,9,10].all({name}, " for name in "abcdefgh") + "true" + ")" * 8


def diagnose_case(*objects: Object) -> Diagnosis:
    facts = CaseFacts(collect_objects([a_pod_with("c0"), a_node("n1"), *objects]), NOW)
    return diagnose(facts.build("default", "p1"), judged=facts.judge("default", "p1"))


def write_answer(*objects: Object) -> str:
    begun = time.process_time()
    diagnosis = diagnose_case(*objects)
    assert time.process_time() - begun < MAX_CPU_SECONDS
    examples = [
        example.text.en
        for obstacle in (diagnosis.obstacle, *diagnosis.other_obstacles)
        if obstacle
        for reason in obstacle.devices
        for example in reason.examples
    ]
    comparison = diagnosis.comparison.text.en if diagnosis.comparison else ""
    text = "\n".join([diagnosis.sentence.en, *examples, comparison])
    assert len(text) < 4_000
    return text


@pytest.mark.parametrize(
    ("request_fields", "positions"),
    [
        ({"count": -5}, ["ResourceClaim", "default/c0", "spec.devices.requests[0].exactly.count is -5"]),
        ({"count": 2**70}, ["default/c0", "spec.devices.requests[0].exactly.count", "not a count of 64 bits"]),
        ({"count": 2**62}, ["claim default/c0", "exceeds the claim limit of 32"]),
        ({"capacity": {"requests": {"memory": "1" + "0" * 5_000}}}, ["exactly.capacity.requests[memory]", "quantity"]),
        ({"capacity": {"requests": {"memory": "1e999999999"}}}, ["exactly.capacity.requests[memory]", "exponent"]),
        ({"selectors": [{"cel": {"expression": "(" * 5_000 + "true" + ")" * 5_000}}]}, ["selector #0", "nested"]),
        ({"selectors": [{"cel": {"expression": "true && " * 50_000 + "true"}}]}, ["selector #0", "10,240"]),
        ({"selectors": [{"cel": {"expression": NESTED_LOOPS}}]}, ["selector #0", "cost limit exceeded"]),
        ({"selectors": [{"cel": {"expression": "device.driver =="}}]}, ["selector #0", "CEL compile error"]),
        ({"selectors": [{"cel": {"expression": f"{MEMORY} == 3"}}]}, ["selector #0", "compile error"]),
    ],
)
def test_an_absurd_request_is_named_with_its_place(request_fields: dict[str, Any], positions: list[str]) -> None:
    text = write_answer(a_class(), a_slice(a_device("gpu", "40Gi")), a_claim(a_request(**request_fields)))
    assert [position for position in positions if position not in text] == [], text


def test_a_class_that_is_left_out_is_not_one_that_does_not_exist() -> None:
    malformed = a_class() | {"spec": {"selectors": "all"}}
    text = write_answer(malformed, a_slice(a_device("gpu")), a_claim())
    assert "DeviceClass.resource.k8s.io gpu: spec.selectors is 'all', not a list" in text
    assert "does not have" not in text


@pytest.mark.parametrize(
    ("devices", "pool", "position"),
    [
        ([a_device("gpu", "9" * 500)], {}, "spec.devices[0].capacity[memory].value"),
        ([a_device("gpu", "1e999999999")], {}, "spec.devices[0].capacity[memory].value"),
        ([a_device("gpu")], {"name": ["n1"]}, "spec.pool.name is a list"),
        ([a_device("gpu")], {"resourceSliceCount": 2**70}, "spec.pool.resourceSliceCount"),
    ],
)
def test_a_slice_that_is_left_out_is_named_where_no_device_is(
    devices: list[Object], pool: dict[str, Any], position: str
) -> None:
    broken = a_slice(*devices)
    broken["spec"]["pool"] |= pool
    request = a_request(f"{MEMORY}.compareTo(quantity('1Gi')) >= 0")
    text = write_answer(a_class(), broken, a_claim(request))
    assert "ResourceSlice.resource.k8s.io n1-slice" in text
    assert position in text


def test_a_search_without_end_is_given_up() -> None:
    devices = [a_device(f"g{index}", "", {"index": index, "side": index % 2}) for index in range(64)]
    constraints = [
        {"requests": [], "matchAttribute": "gpu.nvidia.com/side"},
        {"requests": [], "distinctAttribute": "gpu.nvidia.com/side"},
    ]
    text = write_answer(a_class(), a_slice(*devices), a_claim(a_request(count=32), constraints=constraints))
    assert "distinctAttribute" in text or "matchAttribute" in text
