"""Broken cases: simulations, suggestions, and diagnoses of gangs give an answer or a sentence about the pod."""

from itertools import islice

import pytest

from engine.cases.pod_facts import CaseFacts
from engine.snapshot.case_objects import collect_objects
from tests.fuzz.simulations import feed_simulations
from tests.support.builders.claims import a_claim, a_class, a_device, a_pod_with, a_request, a_slice
from tests.support.builders.cluster import a_node, a_pod
from tests.support.builders.simulations import NOW, simulate

MEMORY = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0"


@pytest.mark.parametrize("seed", [1, 2])
def test_broken_cases_are_answered(seed: int) -> None:
    outcomes = {outcome.partition(",")[0] for outcome in islice(feed_simulations(40, seed), 40)}
    assert {"fits", "refused"} <= outcomes


def test_a_node_without_a_name_is_left_out() -> None:
    nameless = a_node()
    nameless["metadata"] = {}
    facts = CaseFacts(collect_objects([nameless, a_node("n1"), a_pod()]), NOW).build("default", "p1")
    assert [node.name for node in facts.nodes or ()] == ["n1"]


def test_a_claim_that_fails_on_some_nodes_is_explained_with_their_names() -> None:
    devices = [a_slice(a_device("a", "80Gi")), a_slice(a_device("b"), node="n2")]
    answer = simulate(a_pod_with("c0"), a_node(), a_node("n2"), *devices, a_class(), a_claim(a_request(MEMORY)))
    assert answer["state"] == "refused"
    assert "no such key: memory" in answer["sentence"]["en"]
    assert "n2" in answer["sentence"]["en"]
