"""Waiting pods by workload, as the API's watch reports them, and the obstacle that counts for the workload. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class SubscribedWorkload(NamedTuple):
    namespace: str
    workload: str
    """Kind and name, such as ``Job/train``; ``Pod/name`` for a pod without an owner."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.workload}"


class ObstructedPod(NamedTuple):
    key: SubscribedWorkload
    name: str
    code: str
    """Code of the obstacle; empty where none is known."""
    sentence: Mapping[str, str]
    since: str


class DecisiveWait(NamedTuple):
    """Obstacle of most of a workload's waiting pods, with the first of them."""

    code: str
    pod: str
    pods: int
    """Number of its waiting pods."""
    sentence: Mapping[str, str]
    since: str
    """Beginning of the longest wait."""


@dataclass(slots=True)
class WorkloadObstacles:
    _pods: dict[tuple[str, str], ObstructedPod] = field(default_factory=dict)
    _by_key: dict[SubscribedWorkload, set[tuple[str, str]]] = field(default_factory=dict)

    def list_keys(self) -> list[SubscribedWorkload]:
        return list(self._by_key)

    def take(self, kind: str, item: Mapping[str, Any]) -> SubscribedWorkload | None:
        """Take a change of the watch; returns the workload that it is about, None for a pod that never waited."""
        name = item["metadata"]["namespace"], item["metadata"]["name"]
        previous = self._remove(name)
        if kind == "DELETED":
            return previous.key if previous else None
        obstacle = item.get("obstacle") or {}
        key = SubscribedWorkload(name[0], item.get("workload") or f"Pod/{name[1]}")
        sentence = obstacle.get("sentence") or {}
        pod = ObstructedPod(key, name[1], obstacle.get("code") or "", sentence, item.get("first_judged_at") or "")
        self._pods[name] = pod
        self._by_key.setdefault(key, set()).add(name)
        return key

    def find_wait(self, key: SubscribedWorkload) -> DecisiveWait | None:
        """Find the obstacle of the workload; None if none of its pods waits."""
        pods = [self._pods[name] for name in sorted(self._by_key.get(key, ()))]
        if not pods:
            return None
        counts = Counter(pod.code for pod in pods if pod.code)
        # Of equally many the first by name, so that two obstacles do not take turns.
        code = min(counts, key=lambda code: (-counts[code], code), default="")
        first = next(pod for pod in pods if pod.code == code)
        return DecisiveWait(code, first.name, len(pods), first.sentence, min(pod.since for pod in pods))

    def _remove(self, name: tuple[str, str]) -> ObstructedPod | None:
        pod = self._pods.pop(name, None)
        if pod:
            names = self._by_key[pod.key]
            names.discard(name)
            if not names:
                del self._by_key[pod.key]
        return pod
