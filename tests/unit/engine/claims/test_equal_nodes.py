"""Nodes with the same free devices are judged once, with the verdicts of a judge that knows one node only."""

import random
from typing import Any

import pytest

from engine.claims.equal_nodes import NodeExplainer
from engine.claims.judge import ClaimsJudge
from tests.support.builders.claims import (
    JudgedClaims,
    a_claim,
    a_class,
    a_device,
    a_request,
    a_slice,
    an_allocation,
    judge_claims,
)
from tests.support.builders.cluster import Object, a_node

CLAIMS: dict[str, Object] = {
    "one": a_claim(a_request("device.attributes['gpu.nvidia.com'].model == 'A'")),
    "two of one board": a_claim(a_request(count=2), constraints=[{"matchAttribute": "gpu.nvidia.com/board"}]),
    "every one": a_claim(a_request("device.attributes['gpu.nvidia.com'].model == 'B'", allocationMode="All")),
    "for monitoring": a_claim(a_request("device.attributes['gpu.nvidia.com'].model == 'A'", adminAccess=True, count=2)),
    "capacity": a_claim(a_request(capacity={"requests": {"memory": "2Gi"}})),
    "any property": a_claim(a_request("size(device.attributes['gpu.nvidia.com']) > 1")),
    "no property": a_claim(a_request(count=3)),
}


def build(claim: Object, seed: int, nodes: int = 12) -> JudgedClaims:
    chance = random.Random(seed)
    objects: list[Object] = [a_class(), claim]
    for number in range(nodes):
        node = f"n{number}"
        devices = [draw_device(str(index), chance) for index in range(chance.randint(0, 3))]
        objects += [a_node(node), a_slice(*devices, node=node)]
        for device in devices:
            if chance.random() < 0.3:
                status = an_allocation(device["name"], node=node)
                objects.append(a_claim(name=f"held-{node}-{device['name']}", status=status))
    return judge_claims(*objects)


def draw_device(name: str, chance: random.Random) -> Object:
    attributes = {"model": chance.choice("AB")} | ({"board": chance.randint(0, 1)} if chance.random() < 0.8 else {})
    return a_device(name, chance.choice(["1Gi", "4Gi"]), attributes)


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
@pytest.mark.parametrize("seed", range(4))
def test_a_node_is_judged_as_if_it_were_the_only_one(claim: Object, seed: int) -> None:
    judged = build(claim, seed)
    for node in judged.snapshot.nodes.values():
        alone = ClaimsJudge(judged.judge.inventory, judged.judge.pod_claims)
        assert judged.judge.judge(node.node) == alone.judge(node.node)
        if not alone.judge(node.node).refusal:
            assert judged.judge.allocate(node.node) == alone.allocate(node.node) != ()


def test_equal_nodes_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = [a_device("a", attributes={"model": "A", "uuid": "GPU-1"})]
    nodes = [item for number in range(20) for item in (a_node(f"n{number}"), a_slice(*devices, node=f"n{number}"))]
    judged = judge_claims(a_class(), CLAIMS["one"], *nodes)
    starts: list[str] = []
    search = judged.judge.start_search

    def count(node: Any, *arguments: Any) -> Any:
        starts.append(node.name)
        return search(node, *arguments)

    monkeypatch.setattr(judged.judge, "start_search", count)
    assert {judged.get_reasons(f"n{number}") for number in range(20)} == {()}
    assert starts == ["n0"]


def test_explanations_end_at_a_limit_that_equal_nodes_share() -> None:
    nodes = [
        part
        for name, model in (("n1", "A"), ("n2", "A"), ("n3", "B"), ("n4", "C"))
        for part in (a_node(name), a_slice(a_device("a", attributes={"model": model}), node=name))
    ]
    judged = judge_claims(a_class(), CLAIMS["one"], *nodes)
    explainer = NodeExplainer(judged.judge, 2)
    explained = {name: explainer.explain(info.node) for name, info in judged.snapshot.nodes.items()}
    assert explained["n1"] is not None
    assert explained["n2"] is not None
    assert explained["n2"].explained is explained["n1"].explained
    assert [pooled.id for pooled in explained["n2"].devices] == [("gpu.nvidia.com", "n2", "a")]
    assert explained["n3"] is not None
    assert explained["n4"] is None
