"""Objects of a cluster in, events out: what pods and nodes say at once, attempts when their events have come in."""

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final, Literal

from ingest.kube import objects, pod_groups
from ingest.kube.events import PodFacts, events_of
from ingest.kube.grouping import Gathered, Group
from ingest.kube.scheduling_events import REASONS, Happening, happenings
from ingest.protocol import Counts
from schemas.codec.records import encode_value
from schemas.events import AttemptConcluded, Event, NodeObserved, NodeRegistered, PodObserved, PodRef

Kind = Literal["pod", "node", "event", "pod group"]
Outcome = Literal["event", "noise", "unknown"]

CONDITION_SECONDS: Final = 10.0
"""So long a pod's condition waits for the event that says the same."""
MAX_REMEMBERED: Final = 200_000

_SINCE_ONLY: Final = ("Unschedulable", "SchedulerError")


@dataclass(slots=True)
class _Refusal:
    """A condition that says why a pod is not placed, for when no event does (events are kept for an hour)."""

    happening: Happening
    seen: float


class KubeEvents:
    """``now`` is seconds of any clock that only goes forward; the times in events come from the objects alone."""

    def __init__(self) -> None:
        self.outcomes: Counter[tuple[Kind, Outcome]] = Counter()
        self.counts = Counts()
        """The same without the kinds, as all readers have it; ``lines`` are objects."""
        self._gathered = Gathered()
        self._told: OrderedDict[str, bytes] = OrderedDict()
        """By object, what was told of it last: heartbeats and annotations of others change nothing."""
        self._pods: OrderedDict[str, PodFacts] = OrderedDict()
        self._conditions: OrderedDict[str, _Refusal] = OrderedDict()
        self._explained: OrderedDict[str, None] = OrderedDict()
        """Pods of which some event said why they are not placed."""
        self._chosen: OrderedDict[str, AttemptConcluded] = OrderedDict()
        """The latest attempt of each pod that chose a node: a bind that comes late is about it."""
        self._seconds: OrderedDict[str, datetime] = OrderedDict()
        """By pod and second, the start of the refused attempt that is known by that second."""

    def _note(self, kind: Kind, outcome: Outcome, found: Mapping[str, Any]) -> None:
        self.outcomes[kind, outcome] += 1
        if outcome == "unknown":
            self.counts.unknown(_sample(kind, found))
        else:
            self.counts.lines[outcome] += 1

    def changed(self, kind: Kind, found: Mapping[str, Any], now: float) -> list[Event]:
        """An object as it is now. Anything that is not of its kind is counted as unknown."""
        read = {"pod": self._pod, "node": self._node, "event": self._event, "pod group": self._group}
        return self._counted(list(read[kind](found, now)))

    def gone(self, ref: PodRef, at: datetime) -> list[Event]:
        """The pod was deleted, as was learned at that time. Nothing is kept of it."""
        pod = str(ref)
        facts = self._pods.pop(pod, None) or PodFacts()
        self._conditions.pop(pod, None)
        self._explained.pop(pod, None)
        self._chosen.pop(pod, None)
        self._told.pop(f"pod {ref.uid or pod}", None)
        return self._counted([PodObserved(pod=ref, observed_at=at, phase=facts.phase, node=facts.node, deleted=True)])

    def settle(self, now: float) -> list[Event]:
        """What is ripe: attempts whose events have come in, conditions that no event explains."""
        told = [event for group in self._gathered.settled(now) for event in self._tell(group)]
        told += [event for refusal in self._unexplained(now) for event in self._tell(Group([refusal]))]
        return self._counted(told)

    def close(self) -> list[Event]:
        """Everything that waits, as far as it is known."""
        told = [event for group in self._gathered.all() for event in self._tell(group)]
        told += [event for refusal in self._unexplained(float("inf")) for event in self._tell(Group([refusal]))]
        return self._counted(told)

    def _counted(self, told: list[Event]) -> list[Event]:
        ends = [event for event in told if isinstance(event, AttemptConcluded)]
        incomplete = sum(1 for each in ends if each.provenance and each.provenance.not_reported)
        self.counts.events += len(told)
        self.counts.attempts_incomplete += incomplete
        self.counts.attempts_complete += len(ends) - incomplete
        return told

    def _pod(self, pod: Mapping[str, Any], now: float) -> Iterator[Event]:
        observed = objects.pod_observed(pod)
        if observed is None:
            self._note("pod", "unknown", pod)
            return
        facts = _facts(pod, observed)
        _remember(self._pods, str(observed.pod), facts)
        self._note_condition(pod, observed, now)
        yield from self._news("pod", pod, {f"pod {observed.pod.uid or observed.pod}": observed})

    def _node(self, node: Mapping[str, Any], _now: float) -> Iterator[Event]:
        observed = objects.node_observed(node)
        if observed is None:
            self._note("node", "unknown", node)
            return
        said: dict[str, PodObserved | NodeObserved | NodeRegistered] = {f"node {observed.node}": observed}
        if registered := objects.node_registered(node):
            said[f"devices {observed.node}"] = registered
        yield from self._news("node", node, said)

    def _news(
        self, kind: Kind, found: Mapping[str, Any], said: Mapping[str, PodObserved | NodeObserved | NodeRegistered]
    ) -> Iterator[PodObserved | NodeObserved | NodeRegistered]:
        """What an object says that it did not say before."""
        digests = {what: _digest(event) for what, event in said.items()}
        new = [what for what in said if self._told.get(what) != digests[what]]
        self._note(kind, "event" if new else "noise", found)
        for what in new:
            _remember(self._told, what, digests[what])
            yield said[what]

    def _note_condition(self, pod: Mapping[str, Any], observation: PodObserved, now: float) -> None:
        name = str(observation.pod)
        scheduler = objects.text(pod, "spec", "schedulerName")
        condition = next((each for each in observation.conditions if each.type == "PodScheduled"), None)
        if condition is None or condition.status != "False" or condition.reason not in _SINCE_ONLY:
            self._conditions.pop(name, None)
        elif scheduler and condition.last_transition_at and condition.message and name not in self._explained:
            happening = Happening(
                "refused", condition.last_transition_at, scheduler, observation.pod, condition.message
            )
            self._wait_for_event(happening, now)

    def _wait_for_event(self, happening: Happening, now: float) -> None:
        known = self._conditions.get(name := str(happening.pod))
        _remember(self._conditions, name, _Refusal(happening, known.seen if known else now))

    def _group(self, group: Mapping[str, Any], now: float) -> Iterator[Event]:
        """Its conditions count as those of its pods, where these have none."""
        found = list(pod_groups.refusals(group))
        self._note("pod group", "event" if found else "noise" if pod_groups.is_group(group) else "unknown", group)
        for happening in found:
            name = str(happening.pod)
            facts = self._pods.get(name, PodFacts())
            if name not in self._explained and name not in self._conditions and not facts.node:
                self._wait_for_event(replace(happening, pod=facts.ref or happening.pod), now)
        yield from ()

    def _event(self, event: Mapping[str, Any], now: float) -> Iterator[Event]:
        found = list(happenings(event))
        reason = objects.text(event, "reason")
        self._note("event", "event" if found else "unknown" if reason in REASONS else "noise", event)
        for happening in found:
            if happening.kind in ("refused", "failed"):
                _remember(self._explained, str(happening.pod), None)
                self._conditions.pop(str(happening.pod), None)
            for group in self._gathered.add(happening, now):
                yield from self._tell(group)

    def _unexplained(self, now: float) -> Iterator[Happening]:
        while self._conditions:
            pod, refusal = next(iter(self._conditions.items()))
            if now - refusal.seen < CONDITION_SECONDS:
                return
            del self._conditions[pod]
            _remember(self._explained, pod, None)
            yield refusal.happening

    def _tell(self, group: Group) -> Iterator[Event]:
        facts = self._pods.get(str(group.happenings[0].pod), PodFacts())
        uid = group.happenings[0].pod.uid
        # Another pod of the same name, long gone, or come since.
        same = not uid or facts.ref is None or facts.ref.uid == uid
        pod = str(group.happenings[0].pod)
        known_by = self._known_by(group, uid or pod)
        for event in events_of(group, facts if same else PodFacts(), known_by, self._chosen.get(pod)):
            if isinstance(event, AttemptConcluded) and event.chosen:
                _remember(self._chosen, pod, event)
            yield event

    def _known_by(self, group: Group, pod: str) -> datetime:
        """The time in the attempt's id: of a refusal its second, as far as one attempt has the second for itself.

        An event has microseconds, the condition that says the same whole seconds. Where one is told without the other
        (events are kept for an hour), it is the same attempt nevertheless.
        """
        started = group.started_at
        if not group.kinds & {"refused", "failed"}:
            return started
        second = started.replace(microsecond=0)
        first = self._seconds.get(key := f"{pod} {second}", second)
        if first not in (second, started):
            return started
        _remember(self._seconds, key, started)
        return second


def _sample(kind: Kind, found: Mapping[str, Any]) -> bytes:
    """What an object of no known form says, for whoever looks for what was not read."""
    said = [objects.text(found, name) for name in ("reason", "note")]
    return " ".join((kind, *said) if any(said) else (kind, str(found))).encode("utf-8", "replace")


def _facts(pod: Mapping[str, Any], observation: PodObserved) -> PodFacts:
    scheduled = next((each for each in observation.conditions if each.type == "PodScheduled"), None)
    return PodFacts(
        observation.pod, tuple(objects.requests(pod)), objects.text(pod, "status", "nominatedNodeName"),
        observation.node, scheduled.message if scheduled else "", observation.phase,
    )  # fmt: skip


def _digest(event: PodObserved | NodeObserved | NodeRegistered) -> bytes:
    """Of what the event says, apart from when; of a handshake only which step it is at."""
    said = {name: value for name, value in event.__dict__.items() if name != "observed_at"}
    if isinstance(event, NodeRegistered):
        said["handshake"] = event.handshake.partition("_")[0].partition(" ")[0]
    return blake2b(encode_value(said), digest_size=16).digest()


def _remember(known: OrderedDict[str, Any], key: str, value: Any) -> None:
    """At the end of the line; the oldest goes where there are too many."""
    known.pop(key, None)
    known[key] = value
    if len(known) > MAX_REMEMBERED:
        known.popitem(last=False)
