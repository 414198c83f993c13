"""The reader of a cluster's objects: observes pods and nodes at once, emits attempts when their events are complete."""

from collections import Counter, OrderedDict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from ingest.readers.kube import objects
from ingest.readers.kube.claims import PodClaims
from ingest.readers.kube.events import build_events, counts_nodes
from ingest.readers.kube.mismatches import VerdictMismatches
from ingest.readers.kube.node_verdicts import PodFacts, collect_verdicts
from ingest.readers.kube.objects import digest_observation, remember
from ingest.readers.kube.open_attempts import EventGroup, OpenEventGroups
from ingest.readers.kube.problem_events import parse_problem_event
from ingest.readers.kube.replacements import Replacements
from ingest.readers.kube.scheduling_events import (
    REASONS,
    EventKind,
    SchedulingEvent,
    find_reporter,
    is_pod_group,
    list_group_refusals,
    parse_scheduling_events,
)
from ingest.readers.node_states import EmittedStates
from ingest.reading.protocol import Counts
from ingest.reading.trusted_reporters import TrustedReporters
from runtime.bounded_cache import BoundedCache
from runtime.kubernetes.object_fields import get_text, is_own
from schemas.events import DEFAULT_CLUSTER, AttemptConcluded, Event, NodeObserved, NodeRegistered, PodObserved, PodRef

if TYPE_CHECKING:
    # The judge imports every filter: readers of logs, which have no objects, do without it.
    from ingest.readers.kube.judged_records import JudgedRefusal
    from ingest.readers.kube.refusal_judge import RefusalJudge

ObjectKind = Literal["pod", "node", "event", "pod group", "claim", "device"]
Outcome = Literal["event", "noise", "unknown", "untrusted"]
Observation = PodObserved | NodeObserved | NodeRegistered

CONDITION_SECONDS: Final = 10.0
"""Limit of a condition's wait for the event about the same attempt."""

_LATER: Final = timedelta(milliseconds=1)
_REFUSED: Final[frozenset[EventKind]] = frozenset(("refused", "preempted"))
_MAX_SCHEDULERS: Final = 16
_REASONS_OF_CONDITION: Final = ("Unschedulable", "SchedulerError")


@dataclass(slots=True)
class _ConditionRefusal:
    """A refusal from a condition: becomes an attempt if no event comes (Kubernetes keeps events for an hour)."""

    event: SchedulingEvent
    seen_at: float


class KubeEvents:
    """``now`` is in seconds on any clock that never goes back; the times in events come from the objects alone."""

    def __init__(
        self,
        cluster: str = DEFAULT_CLUSTER,
        pod_labels: Collection[str] = (),
        reporters: TrustedReporters | None = None,
        judge: "RefusalJudge | None" = None,
    ) -> None:
        """Start without objects.

        ``pod_labels``: labels of pods that are kept. ``reporters``: believed reporters. ``judge``: of refused pods.
        """
        self._judge, self._mismatches = judge, VerdictMismatches()
        self._emitted: BoundedCache[str, EmittedStates] = BoundedCache(_MAX_SCHEDULERS)
        """By scheduler, the states of devices that verdicts refer to."""
        self._cluster, self._pod_labels = cluster, pod_labels
        self.reporters = reporters or TrustedReporters()
        self.outcomes: Counter[tuple[ObjectKind, Outcome]] = Counter()
        self.counts = Counts()
        """Counts without the kinds, as all readers have them; ``lines`` are objects."""
        self._open = OpenEventGroups()
        self._digests: OrderedDict[str, bytes] = OrderedDict()
        """Digest of each object's latest observation: heartbeats and others' annotations make no new one."""
        self._pods: OrderedDict[str, PodFacts] = OrderedDict()
        self.claims = PodClaims()
        self._replacements = Replacements()
        self._conditions: OrderedDict[str, _ConditionRefusal] = OrderedDict()
        self._explained: OrderedDict[str, None] = OrderedDict()
        """Pods with an attempt that explains why they wait; their conditions add nothing."""
        self._chosen: OrderedDict[str, AttemptConcluded] = OrderedDict()
        """The latest attempt of each pod that chose a node: a later bind belongs to it."""
        self._seconds: OrderedDict[str, datetime] = OrderedDict()
        """By pod and second, the start of the refused attempt that has this second in its id."""

    def _note(self, kind: ObjectKind, outcome: Outcome, resource: Mapping[str, Any]) -> None:
        self.outcomes[kind, outcome] += 1
        if outcome == "unknown":
            self.counts.count_unknown(_sample(kind, resource))
        else:
            self.counts.add(outcome)

    def read_object(self, kind: ObjectKind, resource: Mapping[str, Any], now: float) -> list[Event]:
        """Read an object in its present state; an object of another kind is counted as unknown."""
        read = {
            "pod": self._read_pod,
            "node": self._read_node,
            "event": self._read_event,
            "pod group": self._read_pod_group,
        }
        read |= {"claim": self._read_claim, "device": self._read_device}
        return self._count_events(list(read[kind](resource, now)))

    def forget_pod(self, ref: PodRef, deleted_at: datetime) -> list[Event]:
        """Forget everything about a pod that was deleted; the deletion became known at ``deleted_at``."""
        pod = str(ref)
        facts = self._pods.pop(pod, None) or PodFacts()
        self._conditions.pop(pod, None)
        self.claims.forget(pod)
        self._replacements.forget(ref)
        self._explained.pop(pod, None)
        self._chosen.pop(pod, None)
        # A pod made again under the same name has to be observed even if it looks alike.
        self._digests.pop(f"pod {ref.uid or pod}", None)
        # An observation has whole seconds of Kubernetes with microseconds that only order them: it may seem later.
        if facts.observed_at:
            deleted_at = max(deleted_at, facts.observed_at + _LATER)
        deleted = PodObserved(
            cluster=self._cluster, pod=ref, observed_at=deleted_at, phase=facts.phase, node=facts.node, deleted=True
        )
        return self._count_events([deleted])

    def settle(self, now: float) -> list[Event]:
        """Return the attempts whose events are complete, and those of conditions for which no event came."""
        released = self._observe_pods(self.claims.release_overdue(now))
        return self._count_events(
            [*released, *self._build_attempts(self._open.take_settled(now)), *self._release_conditions(now)]
        )

    def close(self) -> list[Event]:
        """Return the events of everything that waits."""
        return self._count_events(
            [*self._build_attempts(self._open.take_all()), *self._release_conditions(float("inf"))]
        )

    def _count_events(self, events: list[Event]) -> list[Event]:
        ends = [event for event in events if isinstance(event, AttemptConcluded)]
        incomplete = sum(1 for end in ends if end.provenance and end.provenance.not_reported)
        self.counts.events += len(events)
        self.counts.attempts_incomplete += incomplete
        self.counts.attempts_complete += len(ends) - incomplete
        return events

    def _read_pod(self, pod: Mapping[str, Any], now: float) -> Iterator[Event]:
        observed = objects.observe_pod(pod, self._cluster, self._pod_labels)
        if observed is None:
            self._note("pod", "unknown", pod)
            return
        facts = objects.derive_pod_facts(pod, observed)
        remember(self._pods, str(observed.pod), facts)
        self._note_condition(pod, observed, now)
        if complete := self.claims.complete(observed, pod, now):
            yield from self._observe_pods([complete])

    def _observe_pods(self, pods: list[PodObserved]) -> Iterator[Event]:
        for observed in (marked for pod in pods for marked in self._replacements.mark(pod)):
            yield from self._observe_changes("pod", {}, {f"pod {observed.pod.uid or observed.pod}": observed})

    def _read_claim(self, claim: Mapping[str, Any], _now: float) -> Iterator[Event]:
        self._note("claim", "noise", claim)
        yield from self._observe_pods(self.claims.note_claim(claim))

    def _read_node(self, node: Mapping[str, Any], _now: float) -> Iterator[Event]:
        observed = objects.observe_node(node, self._cluster)
        if observed is None:
            self._note("node", "unknown", node)
            return
        observations: dict[str, Observation] = {f"node {observed.node}": observed}
        if registered := objects.observe_registration(node, self._cluster):
            observations[f"devices {observed.node}"] = registered
        yield from self._observe_changes("node", node, observations)

    def _read_device(self, device: Mapping[str, Any], _now: float) -> Iterator[Event]:
        registered = objects.observe_shared_devices(device, self._cluster)
        yield from self._observe_changes(
            "device", device, {f"cards {registered.node}": registered} if registered else {}
        )

    def _observe_changes(
        self, kind: ObjectKind, resource: Mapping[str, Any], observations: Mapping[str, Observation]
    ) -> Iterator[Observation]:
        """Observe changes: yield the observations that differ from the previous ones of the same name."""
        digests = {name: digest_observation(observation) for name, observation in observations.items()}
        new = [name for name in observations if self._digests.get(name) != digests[name]]
        self._note(kind, "event" if new else "noise", resource)
        for name in new:
            remember(self._digests, name, digests[name])
            yield observations[name]

    def _note_condition(self, pod: Mapping[str, Any], observation: PodObserved, now: float) -> None:
        name = str(observation.pod)
        scheduler = get_text(pod, "spec", "schedulerName")
        condition = next((other for other in observation.conditions if other.type == "PodScheduled"), None)
        # SchedulingGated is not a refusal: the pod was not tried.
        if condition is None or condition.status != "False" or condition.reason not in _REASONS_OF_CONDITION:
            self._conditions.pop(name, None)
        elif scheduler and condition.last_transition_at and condition.message and name not in self._explained:
            event = SchedulingEvent(
                "refused", condition.last_transition_at, scheduler, observation.pod, condition.message
            )
            self._wait_for_event(event, now)

    def _wait_for_event(self, event: SchedulingEvent, now: float) -> None:
        previous = self._conditions.get(name := str(event.pod))
        if self._judge and (previous is None or previous.event.time != event.time):
            self._judge.note_refusal(event)
        remember(self._conditions, name, _ConditionRefusal(event, previous.seen_at if previous else now))

    def _read_pod_group(self, group: Mapping[str, Any], now: float) -> Iterator[Event]:
        """Read a pod group; its conditions count as conditions of its pods, if the pods have none."""
        refusals = list(list_group_refusals(group))
        self._note("pod group", "event" if refusals else "noise" if is_pod_group(group) else "unknown", group)
        for event in refusals:
            name = str(event.pod)
            facts = self._pods.get(name, PodFacts())
            if name not in self._explained and name not in self._conditions and not facts.node:
                self._wait_for_event(replace(event, pod=facts.ref or event.pod), now)
        yield from ()

    def _read_event(self, event: Mapping[str, Any], now: float) -> Iterator[Event]:
        if is_own(event):
            self._note("event", "noise", event)
            return
        parts = list(parse_scheduling_events(event))
        reason = get_text(event, "reason")
        problem = parse_problem_event(event, self._cluster, self._find_node)
        if (parts or problem) and not self.reporters.check(find_reporter(event)):
            self._note("event", "untrusted", event)
            return
        self._note("event", "event" if parts or problem else "unknown" if reason in REASONS else "noise", event)
        if problem:
            yield problem
        for part in parts:
            if part.kind in ("refused", "failed"):
                remember(self._explained, str(part.pod), None)
                self._conditions.pop(str(part.pod), None)
            if part.kind == "refused" and self._judge:
                self._judge.note_refusal(part)
            yield from self._build_attempts(self._open.add(part, now))

    def _find_node(self, pod: PodRef) -> str:
        facts = self._pods.get(str(pod), PodFacts())
        return facts.node if facts.ref and facts.ref.uid == pod.uid else ""

    def _release_conditions(self, now: float) -> Iterator[Event]:
        while self._conditions:
            pod, refusal = next(iter(self._conditions.items()))
            # They are in the order in which they were seen, so the rest is younger.
            if now - refusal.seen_at < CONDITION_SECONDS:
                return
            del self._conditions[pod]
            remember(self._explained, pod, None)
            yield from self._build_attempts([EventGroup([refusal.event])])

    def _build_attempts(self, groups: list[EventGroup]) -> Iterator[Event]:
        for group in groups:
            ref = group.events[0].pod
            pod = str(ref)
            facts = self._pods.get(pod, PodFacts())
            # With another UID they are about another pod of the same name, an earlier or a later one.
            is_same_pod = not ref.uid or facts.ref is None or facts.ref.uid == ref.uid
            known_by = self._choose_id_time(group, ref.uid or pod)
            before = self._chosen.get(pod)
            facts = facts if is_same_pod else PodFacts()
            judged = self._judge_group(group, facts)
            yield from self._emit_states(judged, group)
            for event in build_events(self._cluster, group, facts, known_by, before, judged=judged):
                if isinstance(event, AttemptConcluded):
                    yield from self._mismatches.check(event)
                    if event.chosen:
                        remember(self._chosen, pod, event)
                yield event

    def _judge_group(self, group: EventGroup, facts: PodFacts) -> "JudgedRefusal | None":
        """Judge the pod of a refusal whose events only count nodes."""
        refusals = group.select("refused")
        if self._judge is None or not refusals or not group.kinds <= _REFUSED:
            return None
        nodes = collect_verdicts(group, facts)
        if counts_nodes(nodes):
            return self._judge.judge(refusals[-1], nodes.counts, nodes.message)
        # What failed or was named by the scheduler is not to be replaced by what the nodes look like.
        if nodes.error or nodes.verdicts:
            self._judge.settle(refusals[-1])
        return None

    def _emit_states(self, judged: "JudgedRefusal | None", group: EventGroup) -> Iterator[Event]:
        """Emit the states of devices that the verdicts refer to, before these."""
        if judged is None or not judged.states:
            return
        scheduler = group.events[0].scheduler
        emitted = self._emitted.get(scheduler) or EmittedStates()
        self._emitted.put(scheduler, emitted)
        for state in judged.states:
            if emitted.mark_if_due(state, group.started_at):
                yield state.to_event(self._cluster, scheduler, group.started_at)

    def _choose_id_time(self, group: EventGroup, pod: str) -> datetime:
        """Choose the time in the attempt's id: the full second of a refusal, unless another attempt already has it.

        The event has microseconds and the condition about the same attempt has whole seconds. Whichever of them is read
        (events are kept for an hour), the attempt gets the same id.
        """
        started = group.started_at
        if not group.kinds & {"refused", "failed"}:
            return started
        second = started.replace(microsecond=0)
        # Two refused attempts may begin in one second; the second of them keeps its microseconds.
        first = self._seconds.get(key := f"{pod} {second}", second)
        if first not in (second, started):
            return started
        remember(self._seconds, key, started)
        return second


def _sample(kind: ObjectKind, resource: Mapping[str, Any]) -> bytes:
    """Sample an unknown object as a line, for the report of unknown lines."""
    texts = [get_text(resource, name) for name in ("reason", "note")]
    return " ".join((kind, *texts) if any(texts) else (kind, str(resource))).encode("utf-8", "replace")
