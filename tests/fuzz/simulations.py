"""Recorded clusters broken anywhere, for simulations with their suggestions and for the diagnosis of gangs."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

import orjson

from engine.cases.pod_facts import CaseFacts
from engine.cases.simulating import simulate_on_case
from engine.diagnosis.tree import diagnose
from engine.fit.manifests import ManifestError
from engine.snapshot.case_objects import CaseObjects, collect_objects
from tests.conformance.__main__ import KUBE
from tests.conformance.difference import Case
from tests.conformance.kinds import read_lines
from tests.fuzz.limits import BrokenPromiseError
from tests.fuzz.mutate import change_value, choose_value

_CASES: Final = 100
_MAX_SENTENCE: Final = 8_000
_NOW: Final = datetime(2026, 11, 25, 12, tzinfo=UTC)
_GANG: Final = {"scheduling.x-k8s.io/pod-group": "ring"}


def feed_simulations(count: int, seed: int) -> Iterator[str]:
    """Simulate and diagnose the pods of ``count`` broken clusters, and yield the outcome of each."""
    chance = random.Random(seed)
    cases = [case for name in ("filter", "dra") for case in islice(read_lines(KUBE / f"{name}.jsonl"), _CASES)]
    for _ in range(count):
        case = chance.choice(cases)
        members = _build_gang(case["pod"], chance.randint(2, 4)) if chance.random() < 0.3 else [case["pod"]]
        objects = _break_objects(chance, [*case["nodes"], *case["pods"], *case["objects"], *members])
        pod = change_value(members[0], chance) if chance.random() < 0.3 else members[0]
        collected = collect_objects(objects)
        yield f"{_simulate(collected, pod)}, {_diagnose(collected, case)}"


def _build_gang(pod: Any, size: int) -> list[Any]:
    """Return pods like this one that start together, and their group."""
    metadata = pod["metadata"] | {"labels": pod["metadata"].get("labels", {}) | _GANG}
    more = [
        pod | {"metadata": metadata | {"name": f"{metadata['name']}-{index}", "uid": f"gang-{index}"}}
        for index in range(1, size)
    ]
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": "ring", "namespace": metadata.get("namespace")}, "spec": {"minMember": size},
    }  # fmt: skip
    return [pod | {"metadata": metadata}, *more, group]


def _break_objects(chance: random.Random, objects: list[Any]) -> list[Any]:
    broken = list(objects)
    for _ in range(chance.randint(0, 3)):
        index = chance.randrange(len(broken))
        broken[index] = choose_value(chance) if chance.random() < 0.1 else change_value(broken[index], chance)
    return broken


def _simulate(objects: CaseObjects, pod: Any) -> str:
    if not isinstance(pod, dict):
        return "no pod"
    try:
        text = orjson.dumps({"apiVersion": "v1", "kind": "Pod"} | pod)
    except TypeError:
        return "no JSON"
    try:
        answer = simulate_on_case(objects, text, "default", None, _NOW)
    except ManifestError as error:
        _check_sentence(str(error))
        return "pod rejected"
    _check_sentence(answer["sentence"]["en"])
    suggestions = answer["suggestions"]["items"] if answer["suggestions"] else []
    for item in suggestions:
        _check_sentence(item["sentence"]["en"])
    return f"{answer['state']}{' with suggestions' if suggestions else ''}"


def _diagnose(objects: CaseObjects, case: Case) -> str:
    metadata = case["pod"]["metadata"]
    facts = CaseFacts(objects, _NOW)
    key = metadata.get("namespace", "default"), metadata["name"]
    built = facts.build(*key)
    diagnosis = diagnose(built, judged=facts.judge(*key))
    for obstacle in (diagnosis.obstacle, *diagnosis.other_obstacles):
        if obstacle:
            _check_sentence(obstacle.sentence.en)
            for text in (example.text for reason in obstacle.devices for example in reason.examples):
                _check_sentence(text.en)
                _check_sentence(text.zh)
    if diagnosis.comparison:
        _check_sentence(diagnosis.comparison.text.en)
    return "gang counted" if built.gang else diagnosis.state


def _check_sentence(sentence: str) -> None:
    # The terminal escapes what it can't show; JSON keeps the names of objects as they are.
    if not 0 < len(sentence) <= _MAX_SENTENCE:
        raise BrokenPromiseError(f"a sentence of {len(sentence)} characters: {sentence[:200]!r}")
