"""The reader of Volcano's log: lines in, events out.

Volcano decides in sessions. Within one, a line names each node that refused a task with the reason, a line the node
that a task would get, and at the end the tasks whose condition says that they wait: a gang whose tasks do not all find
a node gives back what it took.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from typing import Final

from engine.diagnosis.logged_facts import UnfinishedAttempt
from ingest.lines import klog
from ingest.lines.blocks import Lines
from ingest.readers.kube.line_attempts import LineAttempts, OpenTry, split_pod
from ingest.readers.kube.scheduling_events import EventKind, SchedulingEvent
from ingest.readers.volcano.grammar import FILES, OWN_WORDS
from ingest.reading.protocol import EVENT, NOISE, Counts, NoteFact
from schemas.events import DEFAULT_CLUSTER, Event, PodRef

SOURCE: Final = "volcano-log"
SCHEDULER: Final = "volcano"
VERSION: Final = 1
MAX_LINE: Final = 1_000_000
MAX_JOBS: Final = 20_000
MAX_NODES: Final = 50_000
"""Nodes that one attempt names."""
GANG_NOT_READY: Final = "pod group is not ready"
"""Volcano's words for a gang of which too few tasks found a node."""

_REFUSED: Final = re.compile(
    rb"[Pp]redicates? failed:? (?:for )?task <?([^\s<>/]{1,253}/[^\s<>]{1,253}?)>? on node <?([^\s<>]{1,253}?)>?"
    rb"(?:: task \S{1,507} on node \S{1,253})? fit failed: (.{1,4000})$",
    re.DOTALL,
)
_CONSIDERED: Final = re.compile(
    rb"Considering Task <([^\s<>/]{1,253}/[^\s<>]{1,253})> on node <([^\s<>]{1,253})>: "
    rb"<([^<>]{1,4000})> vs\. <([^<>]{1,4000})>"
)
_AMOUNT: Final = re.compile(r"([\w./-]+) (\d+(?:\.\d+)?)")
_UNNAMED_RESOURCE: Final = re.compile(r"(?:node\(s\) )?resource fit failed", re.IGNORECASE)
"""Reason of versions up to 1.3 for whatever amount a node lacks."""
_OFFERED: Final = re.compile(rb"There are <(\d{1,9})> nodes for Job <([^\s<>/]{1,253}/[^\s<>]{1,507})>")
_BINDING: Final = re.compile(rb"Binding Task <([^\s<>/]{1,253}/[^\s<>]{1,253})> to node <([^\s<>]{1,253})>")
_WAITING: Final = re.compile(rb"Updating pod condition for ([^\s/]{1,253}/[^\s]{1,253}) to \(PodScheduled==False\)")
_COUNTED: Final = re.compile(
    rb"[Tt]ask <?([^\s<>/]{1,253}/[^\s<>]{1,253}?)>? .{0,500}?"
    rb"((?:In hyperNode \S{1,253}: )?\d{1,9}/\d{1,9} nodes are unavailable: .{1,200000})$",
    re.DOTALL,
)
_SESSION: Final = re.compile(rb"(?:Open|Close) Session ")


class VolcanoLog:
    """Reads what Volcano's scheduler prints. See ``ingest.reading.protocol.LogReader``."""

    def __init__(self, zone: tzinfo = UTC, *, cluster: str = DEFAULT_CLUSTER, note: NoteFact | None = None) -> None:
        """Start without lines. ``zone``: the log's time zone; ``note`` takes attempts whose session has no end."""
        self._attempts = LineAttempts(cluster, SOURCE, VERSION)
        self._zone = zone
        self._note = note
        self._now: datetime | None = None
        self._lacking: dict[tuple[str, str], str] = {}
        """By task and node, the resource that the node lacks, from the line that compares them."""

    @property
    def counts(self) -> Counts:
        return self._attempts.counts

    def feed(self, lines: Lines) -> Iterable[Event]:
        counts = self.counts
        for index, text in enumerate(lines.texts):
            start = klog.find_message(text)
            if start < 0 or len(text) > MAX_LINE:
                if text:
                    counts.count_unknown(text)
            elif not any(words in text[:600] for words in OWN_WORDS):
                counts.add(NOISE) if klog.is_of_file(text, FILES) else counts.count_unknown(text)
            else:
                reference = (lines.times and lines.times[index]) or lines.origin.reference
                now = klog.parse_time(text, reference, self._zone)
                is_read = now is not None and self._read(text[start:], now)
                counts.add(EVENT if is_read else NOISE)
        return self._attempts.take()

    def _read(self, message: bytes, now: datetime) -> bool:
        """Read a message; False for one that decides nothing."""
        if refused := _REFUSED.search(message):
            return self._refuse(refused, now)
        if counted := _COUNTED.search(message):
            return self._end_named(counted[1], now, counted[2].decode(errors="replace"))
        if waiting := _WAITING.search(message):
            return self._end_named(waiting[1], now, "")
        if binding := _BINDING.search(message):
            attempt = self._attempts.find_or_open(binding[1].decode(errors="replace"), now)
            attempt.chosen = binding[2].decode(errors="replace")
            return True
        if offered := _OFFERED.search(message):
            return self._note_offered(offered)
        if considered := _CONSIDERED.search(message):
            self._note_considered(considered)
            return False
        if _SESSION.match(message):
            self._lacking.clear()
            self._end_session(now)
            return True
        return False

    def _refuse(self, refused: re.Match[bytes], now: datetime) -> bool:
        task, node, reason = (part.decode(errors="replace") for part in refused.groups())
        attempt = self._attempts.find_or_open(task, now)
        if len(attempt.refused) < MAX_NODES:
            lacking = self._lacking.pop((task, node), "") if _UNNAMED_RESOURCE.match(reason.strip()) else ""
            attempt.refused[node] = f"Insufficient {lacking}" if lacking else reason.strip().rstrip(".")
        return True

    def _note_considered(self, considered: re.Match[bytes]) -> None:
        """Note which resource a node lacks for a task; that of a device plugin first, because it is the scarcest."""
        task, node, request, idle = (part.decode(errors="replace") for part in considered.groups())
        free = dict(_AMOUNT.findall(idle))
        lacking = [name for name, amount in _AMOUNT.findall(request) if float(amount) > float(free.get(name, 0))]
        if lacking and len(self._lacking) < MAX_NODES:
            self._lacking[task, node] = max(lacking, key=lambda name: "/" in name)

    def _note_offered(self, offered: re.Match[bytes]) -> bool:
        jobs = self._attempts.memory.offered
        if len(jobs) >= MAX_JOBS:
            jobs.clear()
        jobs[offered[2].decode(errors="replace")] = int(offered[1])
        return True

    def _end_named(self, name: bytes, now: datetime, words: str) -> bool:
        pod = split_pod(name.decode(errors="replace"))
        return pod is not None and self._end(pod, now, words)

    def _end(self, pod: PodRef, now: datetime, words: str) -> bool:
        """End the pod's attempt of this session; a condition without words repeats an end that had them."""
        name = str(pod)
        attempt = self._attempts.memory.open.get(name)
        if attempt is None and not words:
            return True
        self._attempts.end(name, [_to_event("refused", now, pod, words or _describe_end(attempt))])
        return True

    def _end_session(self, now: datetime) -> None:
        """End what the session left: a task with a node and no condition was placed, others were refused."""
        for name, attempt in list(self._attempts.memory.open.items()):
            pod = split_pod(name)
            if pod is None:
                del self._attempts.memory.open[name]
            elif attempt.chosen:
                attempt.refused.clear()
                self._attempts.end(name, [_to_event("chosen", now, pod, node=attempt.chosen)])
            else:
                self._end(pod, now, "")

    def close(self) -> Iterable[Event]:
        """End what is open, and note the others: a choice whose session has not ended may still be given back."""
        for name, attempt in list(self._attempts.memory.open.items()):
            pod = split_pod(name)
            if pod is None:
                continue
            if attempt.refused and not attempt.chosen:
                self._end(pod, attempt.started_at, "")
            elif self._note:
                self._note(UnfinishedAttempt(pod.namespace, pod.name, "", SCHEDULER, attempt.started_at, reader=SOURCE))
        self._attempts.memory.open.clear()
        return self._attempts.take()

    def list_unfinished(self) -> set[str]:
        return self._attempts.list_unfinished()

    def save(self) -> bytes:
        return self._attempts.save()

    def restore(self, saved: bytes) -> None:
        self._attempts.restore(saved)


def _describe_end(attempt: OpenTry | None) -> str:
    """Describe the end of an attempt without words of its own, as Volcano's event does: by its counts."""
    if attempt is None or attempt.chosen or not attempt.refused:
        return GANG_NOT_READY
    reasons: dict[str, int] = {}
    for reason in attempt.refused.values():
        reasons[reason] = reasons.get(reason, 0) + 1
    listed = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    return f"0/{len(attempt.refused)} nodes are unavailable: {listed}."


def _to_event(kind: EventKind, time: datetime, pod: PodRef, text: str = "", node: str = "") -> SchedulingEvent:
    return SchedulingEvent(kind, time, SCHEDULER, pod, text, node)
