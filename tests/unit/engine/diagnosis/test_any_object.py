"""Diagnoses of objects with junk in any field."""

import copy
import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from api.answers.circumstances import read_circumstances, read_nodes
from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.tree import diagnose
from tests.support.fakes.objects import FakeObjects
from tests.support.stress import count_examples

RECORDED = json.loads((Path(__file__).parent / "cases" / "control_plane.json").read_text())
NAMESPACE = "test-diagnosis"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
JUNK: tuple[Any, ...] = (None, 3, -1, 1e300, True, "", "x", "9" * 400, [], [3], {}, {"a": 1}, "2026-13-01T00:00:00Z")
NOW = datetime(2026, 11, 23, 7, 23, tzinfo=UTC)


def break_value(rng: random.Random, value: Any) -> Any:
    """Replace one value somewhere by junk."""
    root = here = copy.deepcopy(value)
    while True:
        key = rng.choice(list(here) if isinstance(here, dict) else range(len(here)))
        if isinstance(here[key], dict | list) and here[key] and rng.random() < 0.85:
            here = here[key]
            continue
        here[key] = rng.choice(JUNK)
        return root


async def answer(rng: random.Random) -> None:
    name = rng.choice(["gated", "misspelt", "no-claim", "tainted", "cordoned", "affinity", "placed", "train-x"])
    kinds = {"events": f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events", "nodes": "/api/v1/nodes"}
    kinds["quotas"] = f"/api/v1/namespaces/{NAMESPACE}/resourcequotas"
    api = FakeObjects({path: break_value(rng, RECORDED[kind]) for kind, path in kinds.items()})
    if name in RECORDED:
        api.objects[f"{PODS}/{name}"] = break_value(rng, RECORDED[name])
    circumstances = await read_circumstances(api, NAMESPACE, name, NOW)
    nodes, _ = await read_nodes(api, NOW)
    facts = DiagnosisFacts(
        "default",
        NAMESPACE,
        name,
        NOW,
        pod=circumstances.pod,
        claims=circumstances.claims,
        quotas=circumstances.quotas,
        events=circumstances.events,
        nodes=nodes,
        owner_problem=circumstances.owner_problem,
        unknown=circumstances.unknown,
    )
    assert diagnose(facts).sentence.zh


async def test_an_answer_comes_whatever_the_objects_hold() -> None:
    for seed in range(count_examples(50)):
        await answer(random.Random(seed))
