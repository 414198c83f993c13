"""Changes of pods that wait, from two topics: attempts, and observations of pods that no scheduler tries.

The version of a state is the time of its fact, as in the index (``schemas.documents.pod_states``): an observation that
a pod waits, has a node or is deleted takes the place of an older attempt, and a later attempt takes its place.
"""

from dataclasses import dataclass, replace
from typing import Final

import orjson

from api.memory.change_log import CHANGE_BYTES, LogEntry, OrderedLog, to_key
from api.memory.latest_attempts import CachedAttempt, Taken, list_names
from api.memory.lru import Lru
from schemas.codec.records import encode_value
from schemas.documents.pod_states import WAITING, PodStateDocument, derive_attempt_version
from schemas.json_types import Json

OF_ATTEMPTS: Final = 0
OF_PODS: Final = 1
"""Numbers of the two topics in positions."""
_TOPICS: Final = 2
_NAMES: Final = ("cluster", "namespace", "pod", "pod_uid")
_STATE_BYTES: Final = 300
"""Size of a state without its value."""


@dataclass(frozen=True, slots=True)
class ObservedState:
    """State of a pod, or of a workload without pods, after an observation."""

    cluster: str
    version: int
    waits: bool
    value: bytes
    """JSON of the fields of its document; of one that does not wait only its names."""

    def read_fields(self) -> Json:
        fields: Json = orjson.loads(self.value)
        return fields


State = CachedAttempt | ObservedState


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitChange(LogEntry):
    """Change of a pod that waits or waited."""

    state: State
    did_wait: bool | None
    """True if the pod waited before; None if memory has no earlier state."""


@dataclass(frozen=True, slots=True)
class _LatestState:
    """Latest state of a pod, with the place of its record."""

    state: State
    lane: int
    offset: int
    is_in_log: bool
    """False for a pod that did not wait before and does not wait now: nobody has to know."""


class WaitLog(OrderedLog[WaitChange]):
    """Log of the changes, and the latest state of each pod: at most ``max_count`` of both, of ``max_bytes`` each."""

    def __init__(self, max_count: int, max_bytes: int) -> None:
        super().__init__(max_count, max_bytes, _TOPICS)
        self._states: Lru[str, _LatestState] = Lru(max_count, max_bytes)

    def read_attempt(self, partition: int, offset: int, taken: Taken | None, pod: str) -> None:
        """Note a record of the topic of attempts; ``taken`` is its change of ``pod`` (``cluster/namespace/name``)."""
        lane = self._find_lane(partition, OF_ATTEMPTS)
        if self._advance(lane, offset) and taken and taken.is_latest:
            self._take(lane, offset, pod, taken.attempt, taken.size_bytes)

    def read_observation(self, partition: int, offset: int, state: PodStateDocument | None) -> None:
        """Note a record of the topic of pods; ``state`` is what follows from it, None for nothing."""
        lane = self._find_lane(partition, OF_PODS)
        if self._advance(lane, offset) and state:
            waits = state.fields["state"] == WAITING
            fields = state.fields if waits else {name: state.fields.get(name) for name in _NAMES}
            value = encode_value(fields)
            observed = ObservedState(state.fields["cluster"], state.version, waits, value)
            self._take(lane, offset, state.id, observed, len(value))

    def list_waiting(self, *key: str) -> list[State]:
        """List the latest states of the pods that wait in a cluster, or in one of its namespaces."""
        prefix = "/".join(key) + "/"
        latest = ((pod, entry.state) for pod, entry in self._states.list_items())
        return [state for pod, state in latest if state.waits and pod.startswith(prefix)]

    def list_names(self, cluster: str) -> list[str]:
        """List namespace and name of the pods, and of the workloads without pods, whose latest state is known."""
        return list_names(self._states, cluster)

    def _take(self, lane: int, offset: int, pod: str, state: State, size_bytes: int) -> None:
        before, version = self._states.peek(pod), _find_version(state)
        # More becomes known of an attempt at its own version.
        if before and _find_version(before.state) > version:
            if state.waits and not before.is_in_log:
                # A replica that read the topics in another order has reported this wait, and not its end.
                self._put(pod, replace(before, is_in_log=True), size_bytes, did_wait=None)
            return
        # Most pods are observed with a node, and never waited.
        is_in_log = state.waits or before is None or before.state.waits
        did_wait = before.state.waits if before else None
        self._put(pod, _LatestState(state, lane, offset, is_in_log), size_bytes, did_wait)

    def _put(self, pod: str, latest: _LatestState, size_bytes: int, did_wait: bool | None) -> None:
        """Put the latest state of a pod in the place of the one before, and append it to the log."""
        self._states.put(pod, latest, size_bytes + _STATE_BYTES, _find_version(latest.state) / 4e6)
        if not latest.is_in_log:
            return
        change = WaitChange(
            number=self._last + 1,
            partition=latest.lane,
            offset=latest.offset,
            offsets=self.offsets,
            pod=to_key(pod),
            is_latest=True,
            size_bytes=size_bytes + CHANGE_BYTES,
            state=latest.state,
            did_wait=did_wait,
        )
        self._append(change)


def _find_version(state: State) -> int:
    if isinstance(state, ObservedState):
        return state.version
    return derive_attempt_version(round(state.started_at * 1_000_000), state.status)
