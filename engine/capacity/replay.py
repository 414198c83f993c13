"""A recorded range of time decided again, under another policy, split count or with more nodes.

Pods come when they came and hold devices as long as they did. A pod that no node takes is tried again, by priority,
then by the time since which it waits, on each node that another pod leaves: on the other nodes it would be refused as
before, because they only got fuller.
"""

import heapq
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Final, NamedTuple

from engine.capacity.added_nodes import Addition, iterate_names, register_copy, to_no_node_error
from engine.diagnosis.texts import write_phrase
from engine.fit.devices.as_of import register_devices
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.node_entry import MIG_MODE
from engine.fit.devices.pod_usage import DeviceUse, PodUse
from engine.fit.judge.decide import decide_requests, list_constraints
from engine.fit.judge.decision import Decision, SchedulingPolicy
from engine.fit.judge.fitting_nodes import PassingDevices, find_candidates
from engine.fit.judge.request.pod_annotations import WeightsError
from engine.fit.judge.request.pod_request import VendorRequest
from engine.fit.judge.reservation import reserve
from engine.hami.vendors import NVIDIA, Vendors
from engine.suggestions.ask import Ask
from engine.summaries.overcommit import calculate_peak
from schemas.answers.diagnosis import InBothLanguages
from schemas.answers.replays import RecordedPod, Recording
from schemas.codec.records import Rejected, read
from schemas.events import NodeStateChanged, PodRef


@dataclass(frozen=True, slots=True)
class ReplayChange:
    """A change that a range is replayed under. An empty policy, and None, leave it as it was."""

    node_policy: str = ""
    device_policy: str = ""
    split: int | None = None
    """Containers that may share an NVIDIA device that is not in MIG mode."""
    additions: tuple[Addition, ...] = ()

    def describe(self) -> InBothLanguages:
        """Describe the change as a part of a sentence."""
        parts = [
            *([write_phrase("replay_node_policy", policy=self.node_policy)] if self.node_policy else []),
            *([write_phrase("replay_device_policy", policy=self.device_policy)] if self.device_policy else []),
            *([write_phrase("replay_split", split=self.split)] if self.split else []),
            *(write_phrase("replay_nodes", nodes=added.count, like=added.like) for added in self.additions),
        ]
        return InBothLanguages(en=", ".join(part.en for part in parts), zh="、".join(part.zh for part in parts))


NO_CHANGE: Final = ReplayChange()


class PodTimes(NamedTuple):
    """Seconds since 1970: beginning of the wait within the range, start (None: no node took it), end of the wait."""

    since: float
    start: float | None
    until: float

    @property
    def waited(self) -> float:
        return max((self.until if self.start is None else min(self.start, self.until)) - self.since, 0.0)


@dataclass(slots=True)
class ReplayedRange:
    """Result of one replay. pods: by uid."""

    pods: dict[str, PodTimes]
    decisions: int


def replay_range(recording: Recording, change: ReplayChange, vendors: Vendors) -> ReplayedRange:
    """Replay the recording under a change. Raises `AdditionError` for a node that was not recorded."""
    return _Replay(recording, change, vendors).run()


def is_decided(pod: RecordedPod, recording: Recording) -> bool:
    """Tell whether a replay decides about the pod: its request is recorded, and it waited in the range."""
    is_waiting = pod.waits_since < recording.until and (pod.bound_at is None or pod.bound_at >= recording.since)
    return bool(pod.requests) and is_waiting


def read_times(pod: RecordedPod, recording: Recording) -> PodTimes:
    """Read the pod's wait within the range, as it is recorded."""
    since = max(pod.waits_since, recording.since).timestamp()
    is_placed = pod.bound_at is not None and pod.bound_at < recording.until
    until = recording.until if pod.bound_at or not pod.left_at else min(pod.left_at, recording.until)
    return PodTimes(since, pod.bound_at.timestamp() if is_placed and pod.bound_at else None, until.timestamp())


@dataclass(slots=True)
class _EqualPods:
    """Waiting pods that are equal to the scheduler: where the first is refused, all are."""

    requests: tuple[VendorRequest, ...]
    policy: SchedulingPolicy
    names: frozenset[str]
    """Nodes that kube-scheduler offers."""
    waiting: list[tuple[int, float, str]] = field(default_factory=list)
    """Heap of (-priority, beginning of the wait, uid)."""
    open: set[str] = field(default_factory=set)
    """Nodes that have not refused them since another pod left."""


class _Replay:
    """One pass over the recording's times, in order: nodes, ends, then pods that come."""

    def __init__(self, recording: Recording, change: ReplayChange, vendors: Vendors) -> None:
        self.recording, self.change, self.vendors = recording, change, vendors
        self.columns = ClusterColumns(vendors)
        self.pods = {pod.uid: pod for pod in recording.pods}
        self.asks = {pod.uid: self._build_ask(pod) for pod in recording.pods if is_decided(pod, recording)}
        self.result = ReplayedRange({}, 0)
        self.equal: dict[tuple[object, ...], _EqualPods] = {}
        self.deleted: set[str] = set()
        self.offers = [frozenset(names) for names in recording.offers]
        self.added: dict[str, list[str]] = {}
        self.events: list[tuple[float, int, str]] = []
        self.states: dict[str, NodeStateChanged] = {}

    def run(self) -> ReplayedRange:
        end = self.recording.until.timestamp()
        self._fill_events()
        while self.events and self.events[0][0] < end:
            moment = self.events[0][0]
            while self.events and self.events[0][0] == moment:
                _, rank, name = heapq.heappop(self.events)
                (self._register, self._end, self._hold, self._come)[rank](name)
            self._try_waiting(moment)
        return self.result

    def _fill_events(self) -> None:
        since, until = self.recording.since.timestamp(), self.recording.until
        for number, node in enumerate(self.recording.nodes):
            state = read(NodeStateChanged, node.state, "recording.nodes")
            if isinstance(state, Rejected):
                raise ValueError(str(state))
            self.states[str(number)] = state
            self.events.append((max(node.since.timestamp(), since), 0, str(number)))
        for addition in self.change.additions:
            if not any(state.node == addition.like for state in self.states.values()):
                raise to_no_node_error(addition)
        for pod in self.recording.pods:
            if is_decided(pod, self.recording):
                times = read_times(pod, self.recording)
                self.result.pods[pod.uid] = times._replace(start=None)
                self.events.append((times.since, 3, pod.uid))
                if pod.bound_at is None and pod.left_at and pod.left_at < until:
                    # After it was tried at that time, which is its last attempt's.
                    self.events.append((math.nextafter(pod.left_at.timestamp(), math.inf), 1, pod.uid))
            elif pod.bound_at:
                self.events.append((max(pod.bound_at.timestamp(), since), 2, pod.uid))
                if pod.left_at:
                    self.events.append((max(pod.left_at.timestamp(), since), 1, pod.uid))
        heapq.heapify(self.events)

    def _register(self, number: str) -> None:
        state = self.states[number]
        register_devices(self.columns, _split(state, self.change.split))
        self._open(state.node)
        for addition in self.change.additions:
            if addition.like == state.node and addition.like not in self.added and state.uuid:
                names = list(iterate_names(addition, {entry.node for entry in self.states.values()}))
                self.added[addition.like] = names
                for name in names:
                    register_copy(self.columns, addition.like, name)
                    self._open(name)

    def _end(self, uid: str) -> None:
        use = self.columns.get_pod_use(uid)
        if use is None:
            # It waits no more: the heap drops it when it comes to the front.
            self.deleted.add(uid)
            return
        self.columns.delete_pod(uid)
        self._open(use.node)

    def _hold(self, uid: str) -> None:
        """Hold the devices of a pod that is not decided about: it started before, or without a recorded attempt."""
        pod = self.pods[uid]
        self.columns.hold(uid, PodUse(pod.node, pod.namespace, dict(self._list_held(pod)), pod.name))

    def _list_held(self, pod: RecordedPod) -> Iterator[tuple[str, DeviceUse]]:
        registration = self.columns.get_registration(pod.node)
        totals = {device.uuid: device.memory_mib for device in registration.devices} if registration else {}
        # Where the source does not say how much of a device is held, it is all of its memory.
        allocations = [
            part.model_copy(update={"memory_mib": totals.get(part.uuid)}) if part.memory_mib is None else part
            for part in pod.allocations
        ]
        for uuid in dict.fromkeys(part.uuid for part in allocations):
            peak = calculate_peak(allocations, uuid)
            yield uuid, DeviceUse(peak.memory_mib, peak.cores_percent, peak.slots)

    def _come(self, uid: str) -> None:
        pod = self.pods[uid]
        ask, policy = self.asks[uid], self._build_policy(pod)
        annotations = tuple(sorted(ask.annotations.items()))
        key = (ask.requests, annotations, policy, pod.offered)
        equal = self.equal.get(key)
        names = self._list_offered(pod)
        if equal is None:
            equal = self.equal[key] = _EqualPods(ask.requests, policy, names)
        if not equal.waiting:
            equal.open = set(names)
        heapq.heappush(equal.waiting, (-pod.priority, self.result.pods[uid].since, uid))

    def _list_offered(self, pod: RecordedPod) -> frozenset[str]:
        offered = frozenset(self.columns.node_names) if pod.offered is None else self.offers[pod.offered]
        return offered.union(*(names for like, names in self.added.items() if like in offered))

    def _open(self, node: str) -> None:
        for equal in self.equal.values():
            if equal.waiting and node in equal.names:
                equal.open.add(node)

    def _try_waiting(self, moment: float) -> None:
        while equal := self._find_next():
            _, _, uid = equal.waiting[0]
            metadata = self.asks[uid].metadata
            self.result.decisions += 1
            names = self._find_possible(equal, metadata)
            decision = names and decide_requests(self.columns, equal.requests, metadata, names, equal.policy)
            if isinstance(decision, Decision) and decision.chosen:
                heapq.heappop(equal.waiting)
                reserve(self.columns, decision, {"metadata": metadata})
                self._note_start(uid, moment)
            else:
                equal.open.clear()

    def _find_possible(self, equal: _EqualPods, metadata: Mapping[str, Any]) -> list[str]:
        """Find the open nodes that may fit: most of them refuse, and a decision to say so takes eight times as long."""
        names = sorted(equal.open)
        try:
            by_vendor = dict(list_constraints(self.columns, metadata, equal.requests, equal.policy))
        except WeightsError:
            return names
        ids = self.columns.look_up_ids(names)
        return list(compress(names, find_candidates(by_vendor, equal.requests, ids, PassingDevices(self.columns))))

    def _find_next(self) -> _EqualPods | None:
        """Find the equal pods of which the first is to be tried now."""
        best: _EqualPods | None = None
        for equal in self.equal.values():
            while equal.waiting and equal.waiting[0][2] in self.deleted:
                heapq.heappop(equal.waiting)
            if equal.waiting and equal.open and (best is None or equal.waiting[0] < best.waiting[0]):
                best = equal
        return best

    def _note_start(self, uid: str, moment: float) -> None:
        self.result.pods[uid] = self.result.pods[uid]._replace(start=moment)
        pod = self.pods[uid]
        if pod.bound_at and pod.left_at:
            held = max((pod.left_at - pod.bound_at).total_seconds(), 0.0)
            heapq.heappush(self.events, (moment + held, 1, uid))

    def _build_ask(self, pod: RecordedPod) -> Ask:
        ref = PodRef(namespace=pod.namespace, name=pod.name, uid=pod.uid)
        return Ask.from_attempt(ref, pod.requests, pod.constraints, self.vendors)

    def _build_policy(self, pod: RecordedPod) -> SchedulingPolicy:
        flags = SchedulingPolicy()
        return SchedulingPolicy(
            self.change.node_policy or pod.node_policy or flags.node,
            self.change.device_policy or pod.device_policy or flags.device,
        )


def _split(state: NodeStateChanged, split: int | None) -> NodeStateChanged:
    """Change the number of containers that may share each NVIDIA device that is not in MIG mode."""
    if split is None:
        return state
    kinds = [
        kind.model_copy(update={"slots": split}) if kind.vendor == NVIDIA.word and kind.mode != MIG_MODE else kind
        for kind in state.kinds
    ]
    return state.model_copy(update={"kinds": kinds})
