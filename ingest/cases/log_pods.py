"""Every pod of a log with its latest attempt: without Kafka, pipeline or index."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from engine.diagnosis.logged_facts import EarlierAttempts, LoggedFact, LoggedFacts, UnfinishedAttempt
from engine.summaries.fold import AttemptFold
from engine.summaries.matching import reports_same_try
from engine.summaries.reports import combine
from runtime.bounded_cache import BoundedCache
from schemas.answers.attempts import DeviceLog
from schemas.codec.records import Rejected, decode, encode
from schemas.events import (
    DEFAULT_CLUSTER,
    AttemptConcluded,
    AttemptEvent,
    AttemptSummarized,
    DevicesJudged,
    Event,
    FindingReported,
    NodeStateChanged,
    PodRef,
    Provenance,
)
from schemas.ids import derive_attempt_id

_NEVER: Final = datetime.min.replace(tzinfo=UTC)
MAX_PODS: Final = 20_000
"""Pods that are kept: the first ones that the log names."""
MAX_STATES: Final = 20_000
"""Node states that are remembered: as many as a reader remembers to have emitted."""
_MAX_ATTEMPTS: Final = 2
"""Attempts of a reader kept for a pod: a bind is often reported when the next attempt has begun."""

_WITHOUT_REASON: Final = re.compile(r"no available node, |pod with pgName: \S+ last failed in ")
"""Words that end an attempt and say nothing of its nodes: HAMi's last event, coscheduling's pause after a refusal."""

_StateKey = tuple[str, int]
"""Node and revision."""


class StatesInLog:
    """The node states that records of devices refer to."""

    def __init__(self) -> None:
        self._states: BoundedCache[_StateKey, NodeStateChanged] = BoundedCache(MAX_STATES)

    def add(self, event: NodeStateChanged) -> None:
        self._states.put((event.node, event.revision), event)

    def select(self, devices: DevicesJudged) -> dict[_StateKey, NodeStateChanged]:
        """Select the states that the record refers to."""
        keys = zip(devices.nodes, devices.revision.tolist(), strict=True)
        return {key: state for key in keys if (state := self._states.get(key))}


@dataclass(slots=True)
class AttemptInLog:
    """One attempt, as far as the log reports it."""

    reader: str
    _events: list[AttemptEvent] = field(default_factory=list)
    """Events that the summary is made of. They are folded when somebody asks: a pod may be tried thousands of times."""
    devices: list[DevicesJudged] = field(default_factory=list)
    states: dict[_StateKey, NodeStateChanged] = field(default_factory=dict)
    """The node states that ``devices`` refer to."""
    findings: list[FindingReported] = field(default_factory=list)
    is_unfinished: bool = False
    """The log has no verdict of it; its conclusion holds only the requests."""

    def summarize(self) -> AttemptSummarized:
        fold = AttemptFold()
        for event in self._events:
            decoded = _decode(event)
            if isinstance(decoded, AttemptEvent):
                fold.add(decoded)
        summary = fold.summarize()
        if not self.is_unfinished:
            return summary
        reports = [report.model_copy(update={"ended_at": None}) for report in summary.reports]
        unfinished = {"ended_at": None, "status": "pending", "complete": False, "reports": reports}
        return summary.model_copy(update={**unfinished, "missing": "the log has no verdict of the attempt"})

    def add(self, event: AttemptEvent, states: StatesInLog) -> None:
        if not isinstance(event, DevicesJudged | FindingReported):
            self._events.append(event)
            return
        decoded = _decode(event)
        if isinstance(decoded, AttemptEvent):
            self._events.append(decoded)
        if isinstance(decoded, DevicesJudged):
            self.devices.append(decoded)
            self.states |= states.select(decoded)
        if isinstance(decoded, FindingReported):
            self.findings.append(decoded)

    def list_devices(self) -> Iterator[DeviceLog]:
        """List the devices of all nodes as the API does with ``?detail=full&node=``."""
        for record in self.devices:
            for row in record.iterate_devices(lambda node, revision: self.states.get((node, revision))):
                yield DeviceLog(container=record.request.container, **row._asdict())


def _decode(event: AttemptEvent) -> Event | Rejected:
    """Encode and decode an event, so that the answer is the one that a consumer of the topic would give."""
    record = encode(event)
    return decode(record.value, record.headers)


@dataclass(slots=True)
class PodInLog:
    """One pod. ``name`` is ``namespace/name``."""

    name: str
    attempts: int = 0
    _latest: dict[str, AttemptInLog] = field(default_factory=dict)
    """By attempt id, in the order in which the log names them."""

    def add(self, event: AttemptEvent, states: StatesInLog) -> None:
        if event.attempt_id not in self._latest:
            self._latest[event.attempt_id] = AttemptInLog(event.reader)
            self.attempts += 1
            of_reader = [name for name, attempt in self._latest.items() if attempt.reader == event.reader]
            for name in of_reader[:-_MAX_ATTEMPTS]:
                del self._latest[name]
        self._latest[event.attempt_id].add(event, states)

    def add_unfinished(self, attempt: UnfinishedAttempt) -> None:
        """Add an attempt without a verdict, unless the log has one that began with it."""
        event = _conclude_unfinished(attempt)
        if event.attempt_id in self._latest:
            return
        self.add(event, StatesInLog())
        self._latest[event.attempt_id].is_unfinished = True

    def join(self, other: "PodInLog") -> None:
        """Take over what the other's readers report of the latest attempt here."""
        latest, _ = self.find_latest()
        others = other._latest.items()
        self._latest |= {name: report for name, report in others if reports_same_try(latest, report.summarize())}

    def names_nodes(self) -> bool:
        """Tell whether an attempt names nodes."""
        return any(attempt.summarize().nodes for attempt in self._latest.values())

    def find_latest(self) -> tuple[AttemptSummarized, AttemptInLog]:
        """Find the attempt that began last, and summarize it with what other sources report of the same try; one
        without a reason yields to the other."""
        summaries = [(attempt.summarize(), attempt) for attempt in self._latest.values()]
        summary, latest = max(summaries, key=lambda pair: pair[0].started_at)
        others = [pair for pair in summaries if pair[1] is not latest]
        for other, attempt in others:
            if reports_same_try(summary, other):
                summary, latest = combine(summary, other), latest if latest.devices else attempt
        reasons = [pair for pair in others if _has_reason(pair[0])]
        return reasons[-1] if reasons and _is_without_reason(summary) else (summary, latest)


@dataclass(slots=True)
class LogPods:
    """Collects the attempts of all pods."""

    pods: dict[str, PodInLog] = field(default_factory=dict)
    """By ``namespace/name``, in the order of the log."""
    left_out: int = 0
    """Events of pods beyond ``MAX_PODS``."""
    last_started_at: datetime = _NEVER
    """The start of the last attempt in the log."""
    facts: LoggedFacts = field(default_factory=LoggedFacts)
    """Facts that lines hold without being a verdict."""
    ended_at: datetime | None = None
    """The time of the log's last line; None where no line has one."""
    _states: StatesInLog = field(default_factory=StatesInLog)

    def note(self, fact: LoggedFact | UnfinishedAttempt | EarlierAttempts) -> None:
        """Add a fact of the log, an attempt without a verdict, or the number of attempts that nobody reads."""
        if isinstance(fact, EarlierAttempts):
            if pod := self._find_or_add(fact.pod):
                pod.attempts += fact.count
            return
        if isinstance(fact, UnfinishedAttempt):
            self.last_started_at = max(self.last_started_at, fact.started_at)
            if pod := self._find_or_add(fact.pod):
                pod.add_unfinished(fact)
            return
        if fact.kind == "log ended":
            self.ended_at = max(self.ended_at or fact.time, fact.time)
            return
        self.facts.add(fact)
        # A pod that admission denied has no attempt, and is looked for all the same.
        namespace, _, name = fact.pod.partition("/")
        if fact.kind == "admission denied" and name and fact.pod not in self.pods:
            self.note(UnfinishedAttempt(namespace, name, "", "", fact.time))
            self.pods[fact.pod].attempts = 0

    def add(self, events: Iterable[Event]) -> None:
        """Add the next events of the log."""
        for event in events:
            if isinstance(event, NodeStateChanged):
                self._states.add(event)
            elif isinstance(event, AttemptEvent):
                self._add(event)

    def select(self, pod: str) -> list[PodInLog]:
        """Select the pods named ``pod``: ``namespace/name``, or a name in any namespace; empty selects all pods."""
        if not pod:
            return list(self.pods.values())
        return [candidate for name, candidate in self.pods.items() if pod in (name, name.partition("/")[2])]

    def _add(self, event: AttemptEvent) -> None:
        self.last_started_at = max(self.last_started_at, event.started_at)
        if pod := self._find_or_add(str(event.pod)):
            pod.add(event, self._states)

    def _find_or_add(self, name: str) -> PodInLog | None:
        """Find the pod, or add it; None beyond ``MAX_PODS``."""
        if name not in self.pods and len(self.pods) >= MAX_PODS:
            self.left_out += 1
            return None
        return self.pods.setdefault(name, PodInLog(name))


def _is_without_reason(summary: AttemptSummarized) -> bool:
    words = summary.error or summary.scheduler_message
    return not summary.refused_nodes and not summary.chosen and _WITHOUT_REASON.match(words) is not None


def _has_reason(summary: AttemptSummarized) -> bool:
    """Tell whether an attempt found no node, and says why."""
    has_words = bool(summary.error or summary.refused_nodes)
    return has_words and not summary.chosen and not summary.fit_nodes and not _is_without_reason(summary)


def _conclude_unfinished(attempt: UnfinishedAttempt) -> AttemptConcluded:
    key = attempt.uid or attempt.pod
    return AttemptConcluded(
        cluster=DEFAULT_CLUSTER,
        attempt_id=derive_attempt_id(DEFAULT_CLUSTER, attempt.scheduler, key, attempt.started_at),
        pod=PodRef(namespace=attempt.namespace, name=attempt.name, uid=attempt.uid),
        scheduler=attempt.scheduler,
        reader=attempt.reader,
        started_at=attempt.started_at,
        ended_at=attempt.started_at,
        requests=list(attempt.requests),
        offered_nodes=0,
        judged_nodes=0,
        judged_devices=0,
        device_records=0,
        node_records=0,
        provenance=Provenance(levels=list(attempt.levels)),
    )
