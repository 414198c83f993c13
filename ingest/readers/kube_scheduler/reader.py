"""The reader of kube-scheduler's log: lines in, events out.

At its default level kube-scheduler writes one line for a try that found no node, with the text of its event uncut, and
one for a bind. The level 3 adds when a try began.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from typing import Final

from engine.diagnosis.logged_facts import EarlierAttempts, UnfinishedAttempt
from engine.hami.node_lock import find_locked_node
from ingest.lines import klog
from ingest.lines.blocks import Lines
from ingest.readers.kube.line_attempts import LineAttempts, split_pod
from ingest.readers.kube.scheduling_events import BIND_REJECTED, EventKind, SchedulingEvent
from ingest.readers.kube_scheduler.grammar import LineKind, find_line_pattern, is_from_its_files
from ingest.reading.protocol import EVENT, NOISE, Counts, NoteFact
from schemas.events import DEFAULT_CLUSTER, Event, PodRef

SOURCE: Final = "kube-scheduler-log"
SCHEDULER: Final = "kube-scheduler"
VERSION: Final = 1
MAX_LINE: Final = 1_000_000
"""A longer line is counted as unknown: an event's text is shorter, even for thousands of nodes."""
NO_NODES: Final = "no nodes available to schedule pods"
"""kube-scheduler's words for an empty cluster, which its log says in another way."""

_PHASES: Final = ("Reserve", "Permit", "PreBind", "Bind")


class KubeSchedulerLog:
    """Reads what kube-scheduler prints. See ``ingest.reading.protocol.LogReader``."""

    def __init__(
        self,
        zone: tzinfo = UTC,
        *,
        cluster: str = DEFAULT_CLUSTER,
        note: NoteFact | None = None,
        keeps_latest: bool = False,
    ) -> None:
        """Start without lines. ``zone``: the log's time zone. ``note``: takes attempts without a verdict.

        ``keeps_latest``: reports the latest attempts of each pod at the end, and notes the number of the others.
        """
        self._attempts = LineAttempts(cluster, SOURCE, VERSION, keeps_latest=keeps_latest and note is not None)
        self._zone, self._note = zone, note

    @property
    def counts(self) -> Counts:
        return self._attempts.counts

    def feed(self, lines: Lines) -> Iterable[Event]:
        counts = self.counts
        for index, text in enumerate(lines.texts):
            start = klog.find_message(text)
            # Most lines are none of a decision, and are not looked at any closer.
            match = find_line_pattern(text[start:]) if start > 0 and len(text) <= MAX_LINE else None
            if match is None:
                if start > 0 and is_from_its_files(text):
                    counts.add(NOISE)
                elif text:
                    counts.count_unknown(text)
                continue
            reference = (lines.times and lines.times[index]) or lines.origin.reference
            now = klog.parse_time(text, reference, self._zone)
            groups = {name: part.decode(errors="replace") for name, part in match[1].groupdict().items() if part}
            pod = split_pod(groups["pod"])
            if now is None or pod is None:
                counts.count_unknown(text)
                continue
            counts.add(EVENT)
            self._apply(match[0].kind, pod, now, groups, text)
        return self._attempts.take()

    def _apply(self, kind: LineKind, pod: PodRef, now: datetime, groups: dict[str, str], text: bytes) -> None:
        name = str(pod)
        if kind == "begun":
            self._end_failed(name)
            self._attempts.open(name, now)
            return
        if kind == "plugin failed":
            self._note_failure(name, now, groups.get("phase", ""), text)
            return
        words = groups.get("text") or klog.read_quoted(text, b"err") or ""
        if kind == "bound":
            self._attempts.end(name, [_to_event("bound", now, pod, node=groups["node"])])
        elif kind == "refused":
            self._attempts.end(name, [_to_event("refused", now, pod, text=words or NO_NODES)])
        elif kind == "failed":
            self._attempts.end(name, [_to_failure(now, pod, words)])
        elif victim := split_pod(groups["victim"]):
            preempted = _to_event("preempted", now, victim, node=groups["node"], text=f"Preempted by {name}")
            self._attempts.end(str(victim), [preempted])

    def _note_failure(self, name: str, now: datetime, phase: str, line: bytes) -> None:
        """Remember why a plugin failed after the choice: the line that ends the attempt may be missing."""
        self._end_failed(name)
        attempt = self._attempts.find_or_open(name, now)
        plugin, words = klog.read_quoted(line, b"plugin"), klog.read_quoted(line, b"err")
        attempt.failed_at = now
        attempt.failure = f'running {phase or _derive_phase(line)} plugin "{plugin or "?"}": {words or "unknown error"}'

    def _end_failed(self, name: str) -> None:
        """End the pod's attempt if a plugin of it failed, and no line has reported its end."""
        attempt, pod = self._attempts.memory.open.get(name), split_pod(name)
        if attempt and attempt.failed_at and pod:
            self._attempts.end(name, [_to_failure(attempt.failed_at, pod, attempt.failure)])

    def close(self) -> Iterable[Event]:
        """Note the attempts that have not ended: no event can be made of them."""
        for name in list(self._attempts.memory.open):
            self._end_failed(name)
        earlier = self._attempts.build_latest()
        if self._note:
            for name, count in earlier.items():
                self._note(EarlierAttempts(name, count))
            for name, attempt in self._attempts.memory.open.items():
                namespace, _, pod = name.partition("/")
                self._note(UnfinishedAttempt(namespace, pod, "", SCHEDULER, attempt.started_at))
        self._attempts.memory.open.clear()
        return self._attempts.take()

    def list_unfinished(self) -> set[str]:
        return self._attempts.list_unfinished()

    def save(self) -> bytes:
        return self._attempts.save()

    def restore(self, saved: bytes) -> None:
        self._attempts.restore(saved)


def _derive_phase(line: bytes) -> str:
    """Derive the step of a plugin that failed: since 1.27 its line names it only at level 4 and above.

    The steps before the bind name no node there, those of the bind do.
    """
    phase = (klog.read_quoted(line, b"logger") or "").partition(".")[0]
    if phase in _PHASES:
        return phase
    if b' node="' not in line:
        return "Reserve/Permit"
    return "Bind" if b'"Plugin Failed"' in line else "PreBind"


def _to_event(kind: EventKind, time: datetime, pod: PodRef, text: str = "", node: str = "") -> SchedulingEvent:
    return SchedulingEvent(kind, time, SCHEDULER, pod, text, node)


def _to_failure(time: datetime, pod: PodRef, words: str) -> SchedulingEvent:
    """Convert an error: of a bind that an extender or a plugin rejected, or of a try that judged no node."""
    if words.startswith(BIND_REJECTED) and (node := find_locked_node(words)):
        return _to_event("not bound", time, pod, text=words.removeprefix(BIND_REJECTED), node=node)
    return _to_event("refused", time, pod, text=words or "unknown error")
