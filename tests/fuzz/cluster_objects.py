"""Kubernetes' objects with values of the wrong type anywhere, for the reader of a cluster's events."""

import copy
import random
from collections.abc import Iterator
from typing import Any, Final

from ingest.readers.kube import KubeEvents
from schemas.json_types import Json
from tests.fuzz.limits import BrokenPromiseError
from tests.fuzz.mutate import NAUGHTY
from tests.fuzz.readable import check
from tests.support.builders.api_server_objects import a_pod, a_pod_group, an_event, an_old_event

_REFUSAL: Final = "0/5 nodes are available: 3 Insufficient cpu."
_A_NODE: Final[Json] = {
    "metadata": {
        "name": "n", "creationTimestamp": "2026-11-21T03:00:00Z", "resourceVersion": "7",
        "annotations": {"hami.io/node-nvidia-register": '[{"id":"GPU-a","devmem":3}]'},
    },
    "status": {"capacity": {"cpu": "1"}},
}  # fmt: skip
_OBJECTS: Final[list[tuple[Any, Json]]] = [
    ("pod", a_pod(condition=_REFUSAL, nominated="n", node="m")),
    ("event", an_event("FailedScheduling", _REFUSAL, last="2026-11-21T04:40:00Z")),
    ("event", an_old_event("FilteringFailed", "3 nodes CardInsufficientMemory(a,b,c)")),
    ("event", an_old_event("FilteringSucceed", "find fit node(n), 2 nodes not fit, 2 nodes fit(m:11.58,n:12.50)")),
    ("event", an_event("Scheduled", "Successfully assigned ml/gpu8 to n")),
    ("node", _A_NODE),
    ("pod group", a_pod_group("no nodes with enough resources were found: 2 node(s) didn't have enough.")),
]
_JUNK: Final[tuple[Any, ...]] = (
    None, 3, -1, 1e300, True, "", "x", "9" * 400, [], [3], {}, {"a": 1}, "2026-13-01T00:00:00Z", _REFUSAL * 200,
    *NAUGHTY,
)  # fmt: skip


def feed_objects(count: int, seed: int) -> Iterator[str]:
    """Feed the reader ``count`` broken objects, and yield what became of each."""
    chance, reader = random.Random(seed), KubeEvents()
    for number in range(count):
        kind, valid = chance.choice(_OBJECTS)
        before = dict(reader.outcomes)
        check(reader.read_object(kind, _break_object(chance, valid), float(number)))
        check(reader.settle(float(number)))
        # Of the reader's names for it the outcome is the last part.
        changed = [name[-1] for name, total in reader.outcomes.items() if total != before.get(name, 0)]
        if len(changed) != 1:
            raise BrokenPromiseError(f"one {kind} counts as {changed}")
        yield str(changed[0])
    check(reader.close())


def _break_object(chance: random.Random, valid: Json) -> Json:
    """Replace one value somewhere by junk."""
    copied: Any = copy.deepcopy(valid)
    here: Any = copied
    while True:
        key = chance.choice(list(here) if isinstance(here, dict) else range(len(here)))
        deeper = here[key]
        if isinstance(deeper, dict | list) and deeper and chance.random() < 0.8:
            here = deeper
            continue
        here[key] = chance.choice(_JUNK)
        return dict(copied)
