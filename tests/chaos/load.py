"""Pods for the scheduler, one after the other, during the faults; and its answer about each."""

import random
import threading
import time
from dataclasses import replace
from itertools import count
from types import TracebackType
from typing import Any, Self

import httpx

from tests.chaos.ledger import Answer
from tests.support.builders.kube_objects import a_container, a_pod

RETRIES = 0.2
"""Share of the attempts that are about a pod that was refused before. It is refused again, for the same reasons."""
NODE_NAMES = [f"node{number}" for number in range(1, 7)]


class Load:
    """Offers pods of ``namespace`` in a thread of its own until its context ends."""

    def __init__(self, url: str, namespace: str, seed: int, per_second: float = 25) -> None:
        self.namespace = namespace
        self.answers: list[Answer] = []
        """One for each attempt, in their order."""
        self.unanswered: set[str] = set()
        """Pods for which no answer came: their records may be visible or not."""
        self._url = url
        self._pause = 1 / per_second
        self._chance = random.Random(seed)
        self._end = threading.Event()
        self._numbers = count(1)
        self._refused: list[dict[str, Any]] = []
        self._to_bind: list[tuple[float, Answer, dict[str, Any]]] = []
        self.garbage = 0
        """Records that can't be decoded, sent besides the pods."""
        self._thread = threading.Thread(target=self._run, name="load")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

    def wait_for(self, count: int, timeout_seconds: float = 60) -> None:
        """Return when so many pods were answered, including their binds."""
        deadline = time.monotonic() + timeout_seconds
        while len(self.answers) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(self.answers)} of {count} pods were answered")
            time.sleep(0.01)

    def retry_only_what_comes(self) -> None:
        """Give up the pods that were refused until now."""
        self._refused.clear()

    def _run(self) -> None:
        with httpx.Client(timeout=30) as client:
            while not self._end.wait(self._pause):
                self._offer(client, self._choose_pod())
                self._bind_those_due(client, time.monotonic())
            self._bind_those_due(client, float("inf"))

    def _choose_pod(self) -> dict[str, Any]:
        """Choose a new pod, or a refused one, as kube-scheduler tries it again."""
        if self._refused and self._chance.random() < RETRIES:
            return self._chance.choice(self._refused)
        return self._a_pod(f"pod-{next(self._numbers)}")

    def _offer(self, client: httpx.Client, pod: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        reply = self._ask(client, "filter", {"Pod": pod, "Nodes": None, "NodeNames": NODE_NAMES}, name)
        if reply is None:
            return
        chosen = (reply["NodeNames"] or [None])[0]
        answer = Answer(name, chosen, reply["FailedNodes"] or {})
        if chosen:
            self._to_bind.append((time.monotonic() + self._chance.random(), answer, pod))
        else:
            self.answers.append(answer)
            self._refused.append(pod)

    def _bind_those_due(self, client: httpx.Client, now: float) -> None:
        for bind in [due for due in self._to_bind if due[0] <= now]:
            if bind not in self._to_bind:
                continue  # given up meanwhile
            self._to_bind.remove(bind)
            _, answer, pod = bind
            metadata = pod["metadata"]
            request = {"PodName": metadata["name"], "PodNamespace": metadata["namespace"], "PodUID": metadata["uid"]}
            reply = self._ask(client, "bind", request | {"Node": answer.chosen}, answer.pod)
            if reply is not None:
                self.answers.append(replace(answer, bound=not reply["Error"]))

    def _ask(self, client: httpx.Client, verb: str, body: dict[str, Any], name: str) -> dict[str, Any] | None:
        try:
            reply: dict[str, Any] = client.post(f"{self._url}/{verb}", json=body).json()
        except (httpx.TransportError, ValueError):
            # The scheduler was killed. Its next life knows no pod that is not in the cluster file, and would publish a
            # bind as an attempt of its own, of which nothing else is known: kube-scheduler gives up here.
            self.unanswered |= {name, *(answer.pod for _, answer, _ in self._to_bind)}
            self._to_bind.clear()
            return None
        return reply

    def _a_pod(self, name: str) -> dict[str, Any]:
        """Two pods of three request more than any node has, for different reasons."""
        ways: list[dict[str, Any]] = [
            {"gpus": 9},
            {"gpus": self._chance.randint(1, 8), "gpumem": self._chance.choice([200_000, 10**6])},
            {"gpus": 1, "gpumem": self._chance.randint(1, 16)},
        ]
        container = a_container(**self._chance.choice(ways))
        return a_pod(name, [container], namespace=self.namespace, uid=f"{self.namespace}-{name}")
