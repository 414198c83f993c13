"""Objects of recorded situations with wrong values anywhere, as texts that people paste, explained and simulated."""

import json
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson
import yaml

from engine.cases.simulating import simulate_on_case
from engine.fit.manifests import ManifestError
from engine.snapshot.case_objects import CaseObjects
from ingest.cases.answers import diagnose_pods, select_pods
from ingest.cases.read_case import read_case_text
from ingest.errors import MistakeError
from schemas.codec.records import encode_value
from tests.fuzz.mutate import change_value

_SITUATIONS: Final = Path("tests/unit/ingest/cases/situations")
_NOW: Final = datetime(2026, 11, 28, tzinfo=UTC)
_HALVES: Final = (b"\\ud800", b"a\\udc00b")
"""Escapes of JSON for half of a surrogate pair, which UTF-8 has no bytes for."""
_PODS: Final = 3


def feed_pasted_objects(count: int, seed: int) -> Iterator[str]:
    """Explain the pods of ``count`` broken texts, simulate one, and yield the outcome of each."""
    chance = random.Random(seed)
    situations = [_read_objects(file) for file in sorted(_SITUATIONS.glob("*.yaml"))]
    for _ in range(count):
        objects = _break_objects(chance, chance.choice(situations))
        yield _explain(_write_text(chance, objects), objects)


def _read_objects(file: Path) -> list[Any]:
    return [document for document in yaml.load_all(file.read_bytes(), yaml.CSafeLoader) if document]


def _break_objects(chance: random.Random, objects: Sequence[Any]) -> list[Any]:
    broken = list(objects)
    for _ in range(chance.randint(1, 4)):
        index = chance.randrange(len(broken))
        broken[index] = change_value(broken[index], chance)
    return broken


def _write_text(chance: random.Random, objects: Sequence[Any]) -> str:
    """Write the objects as YAML, or as JSON with half of a surrogate pair at the end of a text."""
    if chance.random() < 0.5:
        written: str = yaml.dump_all(objects, Dumper=yaml.CSafeDumper, allow_unicode=True)
        return written
    text = "\n".join(map(_write_json, objects)).encode()
    ends = [position for position in range(len(text)) if text.startswith((b'",', b'"}'), position)]
    if ends:
        end = chance.choice(ends)
        text = text[:end] + chance.choice(_HALVES) + text[end:]
    return text.decode()


def _write_json(value: Any) -> str:
    # Not orjson, which writes no number beyond 64 bits.
    return json.dumps(value, default=str)


def _explain(text: str, objects: Sequence[Any]) -> str:
    try:
        case = read_case_text(text)
    except MistakeError as error:
        str(error).encode()
        return "rejected"
    answers = diagnose_pods(case, select_pods(case, "")[:_PODS])
    for answer in answers:
        encode_value(answer.diagnosis)
    pod = next((entry for entry in objects if isinstance(entry, dict) and entry.get("kind") == "Pod"), None)
    simulated = _simulate(case.objects, pod) if pod else "no pod"
    return f"{'explained' if answers else 'nothing explained'}, {simulated}"


def _simulate(objects: CaseObjects, pod: Any) -> str:
    try:
        orjson.dumps(simulate_on_case(objects, _write_json(pod).encode(), "default", None, _NOW))
    except ManifestError as error:
        str(error).encode()
        return "pod rejected"
    return "simulated"
