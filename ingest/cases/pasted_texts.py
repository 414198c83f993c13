"""Texts that people paste into a question: descriptions behind a prompt, rows of events, one sentence of a scheduler.

Such a text has prompts, fences of Markdown, marks of quotation, and sentences of its author around a program's output.
Whatever is recognised becomes the object or the event that it shows. A pod of which only events are there becomes a pod
without containers: it is asked about, and nothing of it is judged.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from engine.cases.workload_words import VOLCANO_JOB
from engine.diagnosis.layers.kubelet import ALLOCATION_FAILED
from engine.diagnosis.layers.pod_makers import REFUSALS
from engine.snapshot import kinds
from ingest.cases.autoscaler_log import ScalerLog
from ingest.cases.descriptions import ASSIGNED, KINDS, build_event, parse_description
from ingest.cases.event_subjects import (
    UNASSIGNED,
    WORKLOAD,
    attach_job,
    build_group,
    build_subject,
    complete_namespaces,
    complete_pod,
    contradicts,
    get_namespace,
    list_only_pod,
)
from ingest.cases.kubectl_tables import parse_table
from ingest.cases.pasted_fragments import UNNAMED_WORKLOAD, join_wrapped, parse_fragment
from ingest.cases.pasted_objects import DESCRIBES, FENCE, PROMPT, clean_lines, take_objects
from ingest.cases.pasted_rows import parse_log_line, parse_row, parse_statement
from ingest.cases.plugin_log import list_served_pods
from ingest.cases.stated_names import QUEUED, list_stated_pods
from ingest.cases.stated_sentences import PastedEvent, drop_cut_copies, name_by_words
from ingest.cases.stopped_queues import list_stopped_queues
from ingest.cases.unnamed_pods import DEFAULT_NAME, UnnamedPods, rename_unnamed
from ingest.cases.wrapped_lines import SEVERAL_CELLS, join_console_lines, join_scalars, join_table_rows, unwrap_lines
from runtime.kubernetes.object_fields import get_text
from schemas.json_types import Json

MAX_PASTED_BYTES: Final = 1024**2
"""Largest text that is searched for pasted parts; longer ones are logs."""
_NAME: Final = re.compile(r"^(?P<indent>\s*)Name:\s+\S")
_FOLLOWS_NAME: Final = re.compile(r"^\s*(?:Namespace|Roles|Labels):")
_MAX_LINES_TO_LABELS: Final = 12
_COMMAND: Final = re.compile(r"\b(?:kubectl|oc|k)\s(?:.*\s)?(?:get|describe|logs)\s")
_LOGS: Final = re.compile(r"\blogs\s")
_IN_NAMESPACE: Final = re.compile(r"^[^|]*?(?:-n|--namespace)[ =]+(?P<namespace>[a-z0-9][\w-]*)")
"""Namespace of a kubectl command: what follows a pipe has options of its own."""
_GROUP: Final = re.compile(r"PodGroup (?P<namespace>[^\s:]+):(?P<name>\S+) unschedule,reason: (?P<note>.*)")
"""Words of Volcano's job controller about a job's pod group."""
_ABOUT_GROUP: Final = re.compile(
    r"tasks in gang unschedulable: (?!.*Origin reason)|resource in cluster is overused|"
    r"queue resource quota insufficient"
)
"""Words that Volcano writes on a pod group, and with another reason on each member."""
_OF_MEMBER: Final = "FailedScheduling"
"""Reason of Volcano's events about pods; that of its events about groups is `Unschedulable`."""
_FILTERED: Final = re.compile(
    r"Successfully (?:filtered to following nodes: .* for|binding node \[[^\]]*\] to) "
    r"(?P<namespace>[a-z0-9][\w-]*)/(?P<name>[a-z0-9][\w.-]*)"
)
"""Words of HAMi about the pod of a table."""
_OF_TABLE: Final = (ASSIGNED, _FILTERED, QUEUED)
"""Words that name the pod of a table, the surest first."""
_SPAWNED: Final = re.compile(r"\bpod/(?P<name>[a-z0-9][\w.-]*) did not start\b")
"""Words of JupyterHub, before the events of the pod."""
_DESCRIBES_MAKER: Final = re.compile(
    r"\b(?:describe|get)\s+(?P<kind>[a-z]+)(?:\.[\w.]+)?[ /]+(?P<name>[a-z0-9][\w.-]*)"
)
_OF_CLUSTER: Final = ("NodeClaim", "Node")
"""Kinds without a namespace."""
_UNFINISHED: Final = (":", ",", " satisfied resources", "} and", " and requirements")
"""Ends of lines behind which the words of an event continue; people break Karpenter's, which are long."""
_COUNTS: Final = re.compile(r"(?i)no nodes with enough resources were found: |pod \(\S+\) failed to fit in any node")
_COUNT: Final = re.compile(r"\d+ node\(s\) |fit failure (?:on node \(|summary on nodes ?:)")
"""Beginning of each line of the nodes that KAI counts, and that kube-scheduler up to 1.6 names or counts."""
_ALLOCATION: Final = re.compile(rf"(?:Pod was rejected: )?{ALLOCATION_FAILED} ")
_ALLOCATION_END: Final = "which is unexpected"
"""Words around those of a device plugin in a kubelet's event."""
_DENIED: Final = re.compile(r"denied the request: \[[\w-]+\]")
_RULE: Final = re.compile(r"\[[\w-]+\] ")
"""Beginning of a rule of Gatekeeper, which writes each broken one into a line of its own."""


def parse_pasted(content: str, written_at: datetime, *, is_log: bool = False, logged_pod: str = "") -> list[Json]:
    """Parse what a text holds besides prose. ``is_log``: a scheduler's log is in it too, whose lines are left out.

    ``logged_pod``: the only pod of that log, whose events those without a name are.
    """
    lines = unwrap_lines(join_table_rows(join_console_lines(clean_lines(content))))
    objects = [*rename_unnamed(take_objects(lines)), *list_served_pods(lines), *list_stopped_queues(lines)]
    reading = _PastedReading(written_at, UnnamedPods(logged_pod), is_log=is_log)
    reading.read(join_scalars(lines))
    return [*objects, *reading.objects, *reading.build_objects(objects)]


class _PastedReading:
    """Reads a text line by line; a command before a row says what the row is about."""

    def __init__(self, written_at: datetime, unnamed: UnnamedPods, *, is_log: bool) -> None:
        self._written_at, self._unnamed, self._is_log = written_at, unnamed, is_log
        self.objects: list[Any] = []
        self._events: list[PastedEvent] = []
        self._scope = ""
        """Namespace of the latest command; empty for that of the context."""
        self._maker: tuple[str, str, str] | None = None
        """Kind, namespace and name of the controller that a command has described."""
        self._open: list[PastedEvent] = []
        """Rows of one table whose pod is not named yet."""
        self._before: list[str] = []
        """Lines between the table before and this one."""
        self._is_sentence = False
        """The table is a sentence without a row: prose ends it."""
        self._longest = 0
        """Length of the longest line."""
        self._scaler = ScalerLog()
        self._stated: set[tuple[str, str]] = set()
        """Pods that prose names, and those that wait in a table."""

    def read(self, lines: Sequence[str]) -> None:
        position = 0
        self._longest = max(map(len, lines), default=0)
        while position < len(lines):
            line = lines[position]
            self._stated |= list_stated_pods([line], self._scope)
            self._scaler.note_line(line)
            if (match := _NAME.match(line)) and (end := _find_end(lines, position)):
                self._close_table()
                part = [text.removeprefix(match["indent"]) for text in lines[position:end]]
                self.objects += parse_description("\n".join(part), self._written_at)
                position = end
                continue
            if _COMMAND.search(line):
                scope = _IN_NAMESPACE.search(line)
                # The log of a program is about other namespaces than that of its pod.
                self._scope = scope["namespace"] if scope and not _LOGS.search(line) else ""
            parsed, count = parse_table(lines, position, self._scope, self._written_at)
            if count:
                self._close_table()
                self.objects += parsed
                position += count
                continue
            parsed, count = parse_fragment(lines, position, self._written_at)
            if parsed:
                self._close_table()
                self.objects += parsed
                position += count
                continue
            if described := DESCRIBES.search(line) or _SPAWNED.search(line):
                self._close_table()
                namespace = _IN_NAMESPACE.search(line)
                self._unnamed.name(namespace["namespace"] if namespace else "", described["name"], is_commanded=True)
                self._maker = None
            elif (maker := _DESCRIBES_MAKER.search(line)) and maker["kind"] in KINDS:
                self._close_table()
                self._maker = KINDS[maker["kind"]], self._scope, maker["name"]
            position += self._read_event(lines, position)
        self._close_table()

    def _read_event(self, lines: Sequence[str], position: int) -> int:
        """Read the event of a line, if it has one; return the number of lines read."""
        line = lines[position]
        row = parse_row(line)
        following = lines[position + 1] if position + 1 < len(lines) else ""
        if row and not PROMPT.match(following) and not SEVERAL_CELLS.search(following):
            line = join_wrapped(line, following, self._longest)
            row = parse_row(line)
        is_joined = line != lines[position]
        event = row or (parse_log_line(line) if self._is_log else parse_statement(line))
        event = event and self._scaler.complete(event)
        if event is None:
            if self._unnamed.note_line(line) or not line.strip() or FENCE.match(line) or self._is_sentence:
                self._close_table()
            return 1
        if not self._open:
            self._before, self._is_sentence = self._unnamed.take_between(), row is None
        count = 2 if is_joined else 1
        while True:
            following = lines[position + count].strip() if position + count < len(lines) else ""
            is_unfinished = event.note.rstrip().endswith(_UNFINISHED) or not event.note
            is_rule = _DENIED.search(event.note) and _RULE.match(following)
            is_tail = _ALLOCATION.match(event.note) and _ALLOCATION_END in following
            if is_tail and _ALLOCATION_END not in event.note:
                # A terminal breaks a line in the middle of a word.
                event, count = replace(event, note=event.note + following), count + 1
                break
            is_count = _COUNTS.match(event.note) and _COUNT.match(following)
            if not (is_unfinished or is_rule or is_count):
                break
            if not following or parse_row(following):
                break
            event, count = replace(event, note=f"{event.note} {following}".strip()), count + 1
        self._open.append(event)
        return count

    def _close_table(self) -> None:
        """End a table: the row that names the pod names it for all."""
        matches = (pattern.search(event.note) for pattern in _OF_TABLE for event in self._open)
        assigned = next(filter(None, matches), None)
        if assigned:
            self._unnamed.name(assigned["namespace"] or self._unnamed.subject[0], assigned["name"])
        self._unnamed.add([event for event in self._open if not event.name], self._before if not assigned else [])
        namespace, name = self._unnamed.subject
        # Rows without a column of namespaces are of one namespace, which the scheduler's words may name.
        scope = self._scope or (assigned["namespace"] if assigned else "") or ""
        for event in map(name_by_words, self._open):
            if event.name and not event.namespace and event.kind not in _OF_CLUSTER:
                event = replace(event, namespace=scope)
            if not event.name:
                is_of_group = event.reason != _OF_MEMBER and _ABOUT_GROUP.search(event.note)
                kind = "PodGroup" if is_of_group else "Pod"
                subject = kind, event.namespace or namespace, name
                if UNASSIGNED.match(event.note):
                    subject = WORKLOAD, event.namespace or namespace, UNNAMED_WORKLOAD
                if self._maker and (event.reason in REFUSALS or (is_of_group and self._maker[0] == kind)):
                    subject = self._maker
                event = replace(event, kind=subject[0], namespace=subject[1], name=subject[2])
            self._events.append(replace(event, kind=KINDS.get(event.kind, event.kind)))
        self._open.clear()
        self._is_sentence = False

    def _name_subjects(self, objects: Sequence[Any]) -> None:
        """Name the subject of unnamed events after the only pod of the text, and a status after the pod in prose."""
        stated = {name: namespace for namespace, name in sorted(self._stated)}
        for pod in list_only_pod(objects):
            metadata = pod.get("metadata", {})
            if len(stated) == 1 and metadata.get("name") == DEFAULT_NAME:
                ((metadata["name"], namespace),) = stated.items()
                metadata["namespace"] = namespace or get_namespace(pod)
        unnamed = [event for event in self._events if (event.kind, event.name) == ("Pod", DEFAULT_NAME)]
        if not unnamed:
            return
        for pod in list_only_pod(objects):
            if contradicts(pod, unnamed):
                break
            metadata = pod.get("metadata", {})
            name = get_text(metadata, "name") or DEFAULT_NAME
            self._events = [
                replace(event, namespace=get_namespace(pod), name=name) if event in unnamed else event
                for event in self._events
            ]
            complete_pod(pod, unnamed)
            return
        others = {(event.namespace, event.name) for event in self._events if event.kind == "Pod"}
        has_others = bool(others - {("", DEFAULT_NAME), ("default", DEFAULT_NAME)} - self._stated)
        if len(stated) == 1 and not has_others:
            ((name, namespace),) = stated.items()
            named = (replace(event, name=name, namespace=event.namespace or namespace) for event in unnamed)
            self._events = [next(named) if event in unnamed else event for event in self._events]
        elif not has_others and all(map(_is_of_gang, unnamed)):
            # Volcano writes the words about a gang on each of its members.
            members = [(namespace, name) for name, namespace in stated.items()]
            self._events = [
                replace(event, name=name, namespace=event.namespace or namespace)
                for event in self._events
                for namespace, name in (members if event in unnamed and members else [(event.namespace, event.name)])
            ]

    def _name_groups(self, objects: Sequence[Any]) -> None:
        """Name the subject of unnamed words about a group after the only group or Volcano job of the text."""
        groups = {(group["namespace"], group["name"]) for event in self._events if (group := _GROUP.search(event.note))}
        groups |= {
            (get_namespace(entry), get_text(entry, "metadata", "name"))
            for entry in objects
            if isinstance(entry, dict) and _is_grouped(entry)
        }
        if len(groups) != 1:
            return
        ((namespace, name),) = groups
        self._events = [
            replace(event, namespace=namespace, name=name)
            if event.kind == "PodGroup" and event.name.startswith(DEFAULT_NAME)
            else event
            for event in self._events
        ]

    def build_objects(self, others: Sequence[Any]) -> Iterator[Json]:
        """Build the events, and what they are about where neither the text nor ``others`` hold it."""
        self._name_subjects([*others, *self.objects])
        self._name_groups([*others, *self.objects])
        self._events = list(self._scaler.name_pods(drop_cut_copies(self._events)))
        complete_namespaces(others, self._events)
        present = {
            (get_text(entry, "kind"), get_namespace(entry), get_text(entry, "metadata", "name"))
            for entry in (*self.objects, *others)
        }
        subjects: dict[tuple[str, str, str], list[PastedEvent]] = {}
        for described in self.objects:
            if described.get("kind") == "Event" and (group := _GROUP.search(described["message"])):
                yield build_group(group["namespace"], group["name"], group["note"])
        # Rows with a time of their own date the text: what has none was written after them.
        times = [datetime.fromisoformat(event.time) for event in self._events if event.time]
        written_at = max(times) + timedelta(seconds=1) if times else self._written_at
        for event in self._events:
            yield _to_object(event, datetime.fromisoformat(event.time) if event.time else written_at)
            if group := _GROUP.search(event.note):
                yield build_group(group["namespace"], group["name"], group["note"])
            subjects.setdefault((event.kind, event.namespace or "default", event.name), []).append(event)
        for pod in (*self.objects, *others):
            subject = kinds.POD, get_namespace(pod), get_text(pod, "metadata", "name")
            if pod.get("kind") == kinds.POD and (reported := subjects.get(subject)):
                complete_pod(pod, reported)
        jobs = [entry for entry in others if isinstance(entry, dict) and _is_volcano_job(entry)]
        for key, events in subjects.items():
            if key not in present and (built := build_subject(*key, events)):
                yield attach_job(built, jobs) if built["kind"] == "PodGroup" else built


def _is_volcano_job(entry: Any) -> bool:
    return kinds.identify(str(entry.get("apiVersion", "")), str(entry.get("kind", ""))) == VOLCANO_JOB


def _is_grouped(entry: Any) -> bool:
    return entry.get("kind") == "PodGroup" or _is_volcano_job(entry)


def _is_of_gang(event: PastedEvent) -> bool:
    return event.reporter == "volcano" and _ABOUT_GROUP.search(event.note) is not None


def _find_end(lines: Sequence[str], start: int) -> int | None:
    """Find where a description ends; None if the line begins none."""
    head = lines[start : start + _MAX_LINES_TO_LABELS]
    if not any(map(_FOLLOWS_NAME.match, head)):
        return None
    for position in range(start + 1, len(lines)):
        name = _NAME.match(lines[position])
        # Names of volumes and of owners stand further in than that of the object.
        is_next = name is not None and name["indent"] == lines[start].partition("N")[0]
        if is_next or FENCE.match(lines[position]) or PROMPT.match(lines[position]):
            return position
    return len(lines)


def _to_object(event: PastedEvent, written_at: datetime) -> Json:
    involved = {"kind": event.kind, "namespace": event.namespace or "default", "name": event.name}
    kind = "Warning" if event.is_warning else "Normal"
    return build_event(kind, event.reason, event.age or "0s", event.reporter, event.note, involved, written_at)
