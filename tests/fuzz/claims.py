"""Recorded clusters with claims, broken anywhere: objects of the wrong type, selectors with parts cut and repeated."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

from engine.claims.explanation import explain_node
from engine.claims.gates import Gates
from engine.claims.inventory import read_inventory
from engine.claims.judge import ClaimsJudge
from engine.claims.pod_claims import ClaimRejectedError, collect_claims
from engine.snapshot.fields import FieldError
from engine.snapshot.pods import read_pod
from engine.snapshot.reading import read_snapshot
from engine.snapshot.requests import request_to_place
from tests.conformance.__main__ import KUBE
from tests.conformance.kinds import read_lines
from tests.fuzz.limits import BrokenPromiseError
from tests.fuzz.mutate import change_bytes, change_value, choose_value

_CASES: Final = 100
_MAX_SENTENCE: Final = 4_000
_NOW: Final = datetime(2026, 11, 25, 12, tzinfo=UTC)
_GATES: Final = (Gates(), Gates(list_attributes=True), Gates(device_taint_rules=True, partitionable_devices=False))


def feed_claims(count: int, seed: int) -> Iterator[str]:
    """Judge and explain ``count`` broken clusters, and yield the outcome of each."""
    chance = random.Random(seed)
    cases = list(islice(read_lines(KUBE / "dra.jsonl"), _CASES))
    for _ in range(count):
        case = chance.choice(cases)
        objects = [_break_expressions(value, chance) for value in case["objects"]]
        for _ in range(chance.randint(0, 3)):
            index = chance.randrange(len(objects))
            objects[index] = choose_value(chance) if chance.random() < 0.1 else change_value(objects[index], chance)
        pod = change_value(case["pod"], chance) if chance.random() < 0.2 else case["pod"]
        yield _judge([*case["nodes"], *case["pods"], *objects], pod, chance.choice(_GATES))


def _break_expressions(value: Any, chance: random.Random) -> Any:
    """Break a few of the selectors in an object."""
    if isinstance(value, dict):
        expression = value.get("expression")
        if isinstance(expression, str) and chance.random() < 0.3:
            broken = change_bytes(expression.encode(), chance).decode(errors="replace")
            return value | {"expression": broken * chance.choice([1, 1, 1, 2, 300])}
        return {key: _break_expressions(member, chance) for key, member in value.items()}
    return [_break_expressions(member, chance) for member in value] if isinstance(value, list) else value


def _judge(objects: list[Any], pod: Any, gates: Gates) -> str:
    snapshot = read_snapshot(objects)
    inventory = read_inventory(snapshot, gates)
    for rejected in inventory.rejected:
        _check_sentence(rejected.to_sentence())
    if not isinstance(pod, dict):
        return "no pod"
    try:
        pod_claims = collect_claims(inventory, read_pod(pod), request_to_place(pod))
    except FieldError:
        return "pod rejected"
    except ClaimRejectedError as error:
        _check_sentence(str(error))
        return "claim rejected"
    if pod_claims.pre_filter:
        return "refused before the nodes"
    claims_judge = ClaimsJudge(inventory, pod_claims, now=_NOW)
    outcomes = set()
    for node in islice(snapshot.nodes.values(), 3):
        explained = explain_node(claims_judge, node.node)
        verdict = explained.verdict
        for device in [device for request in explained.requests for device in request.devices]:
            for finding in device.findings:
                _check_sentence(finding.text)
        _check_sentence(verdict.unjudged)
        if explained.allocations and verdict.refusal:
            raise BrokenPromiseError("devices are given on a node that is refused")
        outcomes.add("open" if verdict.unjudged else verdict.refusal.code.value if verdict.refusal else "fits")
    return ", ".join(sorted(outcomes)) or "no node"


def _check_sentence(sentence: str) -> None:
    if len(sentence) > _MAX_SENTENCE or not sentence.isprintable():
        raise BrokenPromiseError(f"not a sentence for a terminal: {sentence[:200]!r}")
