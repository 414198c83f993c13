"""Watches of pending pods over two real topics: on two replicas in turn, and over a restart of one of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import httpx
import orjson

from schemas.events import PodObserved, PodRef, PodWait
from tests.support.harness.api_process import Served, serving
from tests.support.harness.index_filling import NOW, Filling, an_attempt
from tests.support.waiting import eventually

NAMESPACE: Final = "watch-pending"
PATH: Final = f"/api/v1/pending?watch=true&namespace={NAMESPACE}&sendInitialEvents=false&timeoutSeconds=60"
MAX_EVENTS: Final = 100


@dataclass
class Client:
    """Knows what waits by the events of one replica after the other."""

    version: str = ""
    waiting: set[str] = field(default_factory=set)
    states: list[bytes] = field(default_factory=list)
    """Each state that an event gave, without its position."""

    @contextmanager
    def watching(self, api: Served) -> Iterator[Iterator[dict[str, Any]]]:
        path = f"{PATH}&resourceVersion={self.version}" if self.version else PATH
        with api.client.stream("GET", path, timeout=90) as answer:
            assert answer.status_code == httpx.codes.OK, answer.read()
            yield (orjson.loads(line) for line in answer.iter_lines() if line)

    def read(self, events: Iterator[dict[str, Any]], expected: set[str]) -> None:
        """Read until the client knows what is expected, which takes no more than an event for each record."""
        for _ in range(MAX_EVENTS):
            if self.waiting == expected:
                return
            event = next(events)
            name, metadata = event["object"]["name"], event["object"].pop("metadata")
            self.version = metadata["resourceVersion"]
            if event["type"] == "DELETED":
                self.waiting.discard(name)
            else:
                self.waiting.add(name)
                self.states.append(orjson.dumps(event["object"], option=orjson.OPT_SORT_KEYS))
        raise AssertionError(f"{self.waiting} after {MAX_EVENTS} events, not {expected}")


def observe(pod: str, minute: int, **fields: Any) -> PodObserved:
    wait = PodWait(
        code="QueueHeld", layer="queue", sentence_en=f"Held since minute {minute}.", sentence_zh="", devices=1,
        models=[], pools=[], nearest_nodes=[], reasons={},
    )  # fmt: skip
    plain: dict[str, Any] = {
        "cluster": "default", "pod": PodRef(namespace=NAMESPACE, name=pod, uid=f"uid-{pod}"), "phase": "Pending",
        "observed_at": NOW + timedelta(minutes=minute), "wait": None if fields else wait,
    }  # fmt: skip
    return PodObserved(**plain | fields)


def test_replicas_and_a_restart_lose_nothing_and_repeat_nothing(filling: Filling, api: Served) -> None:
    def refuse(pod: str, minute: int) -> None:
        filling.publish(an_attempt(f"{NAMESPACE}/{pod}", started_at=NOW + timedelta(minutes=minute)))

    def bind(pod: str, minute: int) -> None:
        moment = NOW + timedelta(minutes=minute)
        filling.publish(an_attempt(f"{NAMESPACE}/{pod}", started_at=moment, chosen="node1", bound=True))

    client, observed = Client(), filling.publish_observations
    with serving(filling.bootstrap_servers, filling.url) as other:
        eventually(other.is_ready, "the other replica is not ready")
        with client.watching(other) as events:
            refuse("tried-0", 0)
            observed(observe("held-0", 0), observe("held-1", 0))
            refuse("tried-1", 0)
            client.read(events, {"tried-0", "tried-1", "held-0", "held-1"})
        # Nobody watches while these come.
        bind("tried-0", 1)
        observed(observe("held-0", 1, node="node1"), observe("held-2", 1))
        refuse("held-1", 1)
        with client.watching(api) as events:
            client.read(events, {"tried-1", "held-1", "held-2"})
    # The other replica is gone, and comes back with an empty memory.
    refuse("held-2", 2)
    observed(observe("tried-1", 2, deleted=True), observe("held-3", 2))
    with serving(filling.bootstrap_servers, filling.url) as restarted:
        eventually(restarted.is_ready, "the restarted replica is not ready")
        with client.watching(restarted) as events:
            client.read(events, {"held-1", "held-2", "held-3"})
            # The position is behind everything that was read: the next events are those of what comes next.
            refuse("last", 3)
            client.read(events, {"held-1", "held-2", "held-3", "last"})
    assert len(set(client.states)) == len(client.states), "a state was sent twice"
    with client.watching(api) as events:
        bind("last", 4)
        client.read(events, {"held-1", "held-2", "held-3"})
