"""Recorded clusters with values of the wrong type anywhere, for the snapshot and the judge of its pods."""

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from engine.filters.cycle import SchedulingCycle, start_cycle
from engine.filters.judge import judge
from engine.filters.judgement import Judgement
from engine.filters.resource_obstacles import find_resource_obstacles
from engine.snapshot.fields import FieldError, RejectedObject
from engine.snapshot.reading import change_snapshot, read_snapshot
from engine.snapshot.snapshot import Snapshot
from tests.conformance.__main__ import KUBE
from tests.conformance.difference import Case
from tests.conformance.kinds import read_lines
from tests.fuzz.limits import BrokenPromiseError
from tests.fuzz.mutate import change_value, choose_value

_CASES: Final = 200
_MAX_SENTENCE: Final = 2_000


def feed_snapshots(count: int, seed: int) -> Iterator[str]:
    """Judge pods on ``count`` broken clusters, and yield the outcome of each."""
    chance = random.Random(seed)
    cases = list(islice(read_lines(KUBE / "filter.jsonl"), _CASES))
    for _ in range(count):
        case = chance.choice(cases)
        objects = _break_objects(chance, [*case["nodes"], *case["pods"], *case["objects"]])
        pod = change_value(case["pod"], chance) if chance.random() < 0.3 else case["pod"]
        snapshot = change_snapshot(read_snapshot(objects), _break_objects(chance, list(case["pods"])))
        _check_sentences(snapshot.rejected.values())
        yield _judge(snapshot, pod, case)


def _break_objects(chance: random.Random, objects: list[Any]) -> list[Any]:
    """Change values of a few objects; now and then, put something in place of one."""
    broken = list(objects)
    for _ in range(chance.randint(1, 3) if broken else 0):
        index = chance.randrange(len(broken))
        broken[index] = choose_value(chance) if chance.random() < 0.1 else change_value(broken[index], chance)
    return broken


def _judge(snapshot: Snapshot, pod: Any, case: Case) -> str:
    judgement = judge(snapshot, pod, alone=True)
    if isinstance(judgement, RejectedObject):
        _check_sentences([judgement])
        return "pod rejected"
    if len(judgement.refused) + len(judgement.fitting) + len(judgement.outside) > len(snapshot.nodes):
        raise BrokenPromiseError(f"{case['id']}: more verdicts than nodes")
    _explain(snapshot, pod, judgement)
    return judgement.outcome.value


def _explain(snapshot: Snapshot, pod: Any, judgement: Judgement) -> None:
    cycle = start_cycle(snapshot, pod)
    if isinstance(cycle, SchedulingCycle):
        for resource in judgement.request:
            try:
                find_resource_obstacles(cycle, resource)
            except FieldError as error:
                raise BrokenPromiseError(f"judged, but not explained: {error}") from error


def _check_sentences(rejections: Any) -> None:
    for rejected in rejections:
        sentence = rejected.to_sentence()
        if len(sentence) > _MAX_SENTENCE or not sentence.isprintable():
            raise BrokenPromiseError(f"not a sentence for a terminal: {sentence[:200]!r}")
