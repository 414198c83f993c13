"""Objects with values of the wrong type anywhere are read or counted as unknown, and raise no error."""

import copy
import random
from typing import Any

from ingest.kube import KubeEvents
from schemas.codec.records import Rejected, decode, encode
from tests.support.builders.api_server_objects import Json, a_pod, a_pod_group, an_event, an_old_event

JUNK: tuple[Any, ...] = (None, 3, -1, 1e300, True, "", "x", "9" * 400, [], [3], {}, {"a": 1}, "2026-13-01T00:00:00Z")
REFUSAL = "0/5 nodes are available: 3 Insufficient cpu."
A_NODE: Json = {
    "metadata": {
        "name": "n", "creationTimestamp": "2026-11-21T03:00:00Z", "resourceVersion": "7",
        "annotations": {"hami.io/node-nvidia-register": '[{"id":"GPU-a","devmem":3}]'},
    },
    "status": {"capacity": {"cpu": "1"}},
}  # fmt: skip
KNOWN: list[tuple[Any, Json]] = [
    ("pod", a_pod(condition=REFUSAL, nominated="n", node="m")),
    ("event", an_event("FailedScheduling", REFUSAL, last="2026-11-21T04:40:00Z")),
    ("event", an_old_event("FilteringFailed", "3 nodes CardInsufficientMemory(a,b,c)")),
    ("event", an_old_event("FilteringSucceed", "find fit node(n), 2 nodes not fit, 2 nodes fit(m:11.58,n:12.50)")),
    ("event", an_event("Scheduled", "Successfully assigned ml/gpu8 to n")),
    ("node", A_NODE),
    ("pod group", a_pod_group("no nodes with enough resources were found: 2 node(s) didn't have enough.")),
]


def broken(rng: random.Random, found: Json) -> Json:
    """One value somewhere is junk."""
    whole: Any = copy.deepcopy(found)
    here: Any = whole
    while True:
        key = rng.choice(list(here) if isinstance(here, dict) else range(len(here)))
        deeper = here[key]
        if isinstance(deeper, dict | list) and deeper and rng.random() < 0.8:
            here = deeper
            continue
        here[key] = rng.choice(JUNK)
        return dict(whole)


def test_broken_objects_are_read_or_counted_as_unknown() -> None:
    rng, reader, events = random.Random(11), KubeEvents(), []
    for number in range(10_000):
        kind, found = rng.choice(KNOWN)
        events += reader.changed(kind, broken(rng, found), float(number))
        events += reader.settle(float(number))
    events += reader.close()
    assert sum(reader.outcomes.values()) == 10_000
    for event in events:
        record = encode(event)
        assert not isinstance(decode(record.value, record.headers), Rejected)
