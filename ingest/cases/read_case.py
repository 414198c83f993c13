"""Files, folders and archives of Kubernetes objects and schedulers' logs, read into one case."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import orjson

from engine.snapshot import kinds
from engine.snapshot.case_objects import EVENT_KINDS, CaseObjects, collect_objects
from ingest.cases.case_files import list_files, unpack_objects
from ingest.cases.descriptions import has_descriptions, parse_descriptions
from ingest.cases.event_subjects import attach_claims, build_makers, build_unadmitted, build_waiting_pods
from ingest.cases.foreign_texts import find_cause
from ingest.cases.joined_pods import join_unnamed, leave_counts_out
from ingest.cases.log_pods import LogPods
from ingest.cases.object_texts import HEAD_BYTES, has_objects, parse_objects
from ingest.cases.pasted_texts import MAX_PASTED_BYTES, parse_pasted
from ingest.cases.read_log import (
    NAME_OF_STANDARD_INPUT,
    find_logged_pod,
    has_log,
    read_log,
    read_log_text,
    read_standard_input,
)
from ingest.cases.reported_conditions import build_reported
from ingest.cases.saved_attempts import read_saved_attempts
from ingest.cases.shortened_pods import complete_pods
from ingest.cases.wrapped_lines import unwrap_lines
from ingest.errors import MistakeError, UnknownLogError
from ingest.readers.registry import NO_FACTS, LogFacts
from ingest.reading.protocol import Counts
from ingest.sources.follow import STANDARD_INPUT
from ingest.sources.pieces import UnreadableFileError, is_packed
from runtime.kubernetes.object_fields import get_text
from schemas.json_types import Json

if TYPE_CHECKING:
    from ingest.readers.kube.reader import ObjectKind

UNDATED: Final = datetime.fromtimestamp(0, UTC)
"""Time of a case in which nothing has a time; answers and events begin with 1970."""
SAVED_CASE: Final = "SavedCase.schedulerlog.io"
"""Kind of the object that says when a saved cluster was read (``creationTimestamp``) and what was not (``unread``)."""
MAX_NAMED_FILES: Final = 2
"""Limit of the files about something else that are named one by one."""
MAX_OBJECT_BYTES: Final = 1024**3
"""Largest text of objects that is parsed."""
_READ_IN_ORDER: "Final[tuple[tuple[str, ObjectKind], ...]]" = (
    (kinds.POD, "pod"),
    *((kind, "event") for kind in EVENT_KINDS),
    ("PodGroup.scheduling.run.ai", "pod group"),
)


@dataclass(slots=True)
class ClusterCase:
    """Objects of a cluster, and attempts that its schedulers wrote of in events and logs."""

    objects: CaseObjects = field(default_factory=CaseObjects)
    pods: LogPods = field(default_factory=LogPods)
    """Pods with attempts."""
    counts: Counts | None = None
    """Lines of the log that was read last; None without a log."""
    problems: list[str] = field(default_factory=list)
    """Files that could not be read, each with the cause."""
    read_at: datetime | None = None
    """Time at which a live cluster was read; None for files, whose age nobody knows."""

    @property
    def ended_at(self) -> datetime | None:
        """Time of a live cluster, or the latest time in files; None if nothing in them has a time."""
        if self.read_at:
            return self.read_at
        started = self.pods.ended_at or (self.pods.last_started_at if self.pods.pods else None)
        return max((time for time in (started, self.objects.latest_time) if time), default=None)


def read_case(paths: Sequence[Path], facts: LogFacts = NO_FACTS) -> ClusterCase:
    """Read everything that the paths hold; a folder is read with all below it.

    Raises ``MistakeError`` or ``UnreadableFileError`` if nothing of it can be read; a part that can't be read is one of
    the case's problems.
    """
    with TemporaryDirectory(prefix="schedulerlog-") as folder:
        reading = _CaseReading(facts, Path(folder))
        for path in paths:
            reading.read(path)
        return reading.finish()


def read_case_text(content: str) -> ClusterCase:
    """Read a text of objects, of descriptions or of one log. Raises ``MistakeError``."""
    case, data, now = ClusterCase(), content.encode("utf-8", "replace"), datetime.now(UTC)
    is_log = False
    unread: Collection[str] = ()
    if has_objects(data[:HEAD_BYTES]):
        try:
            objects: list[Any] = parse_objects("the text", data)
        except MistakeError:
            if not (objects := list(parse_pasted(content, now))):
                raise
            unread = _list_unread(objects)
    elif has_descriptions(data[:HEAD_BYTES]):
        objects = _parse_described(content, now)
        unread = _list_unread(objects)
    else:
        is_log = has_log(content)
        objects = parse_pasted(content, now, is_log=is_log, logged_pod=find_logged_pod(content) if is_log else "")
        unread = _list_unread(objects)
        attach_claims(objects)
    case.objects = complete_pods(collect_objects([*objects, *build_reported(objects, now)], unread), now)
    if is_log or not objects:
        try:
            read_log_text(content, case.pods.add, NO_FACTS._replace(note=case.pods.note))
        except UnknownLogError:
            if not objects:
                raise
    _read_events(case.objects, case.pods)
    return case


def build_case(
    objects: Iterable[Any], unread: Iterable[str], read_at: datetime, namespace: str | None = None
) -> ClusterCase:
    """Build the case of a live cluster from its objects; ``unread``: kinds that could not be read in full.

    ``namespace``: the one that the question is about. The attempts of pods that have a node are then read in it only.
    """
    case = ClusterCase(collect_objects(objects, unread), read_at=read_at)
    _read_events(case.objects, case.pods, lambda pod: namespace is None or _is_asked_for(pod, namespace))
    return case


def _is_asked_for(pod: Any, namespace: str) -> bool:
    return not get_text(pod, "spec", "nodeName") or get_text(pod, "metadata", "namespace") == namespace


class _CaseReading:
    def __init__(self, facts: LogFacts, folder: Path) -> None:
        self._case = ClusterCase()
        self._facts, self._folder = facts._replace(note=self._case.pods.note, keeps_latest=True), folder
        self._objects: list[Json] = []
        self._logs: list[Path] = []
        self._input_head = b""
        """First bytes of standard input, which were read to recognise it."""
        self._written_at = UNDATED
        """Last change of the files of objects: the time of objects that have none."""
        self._unread: set[str] = set()
        self._errors: list[MistakeError | UnreadableFileError] = []
        self._pasted: set[str] = set()
        """Texts that hold parts of their own beside the log that is read from them."""

    def read(self, path: Path) -> None:
        """Read the objects of a path, and note its logs: they are read when all nodes are known."""
        for file in list_files(path):
            try:
                self._read_file(file)
            except OSError as error:
                self._errors.append(UnreadableFileError(f"{file}: {error.strerror}"))
            except (MistakeError, UnreadableFileError) as error:
                self._errors.append(error)

    def _read_file(self, file: Path) -> None:
        if str(file) == STANDARD_INPUT:
            # No more than the head of a log: it may be long, and its end far away.
            self._input_head = read_standard_input(HEAD_BYTES)
            now = datetime.now(UTC)
            if not self._parse("standard input", self._input_head, read_standard_input, now) and not (
                len(self._input_head) < HEAD_BYTES and self._parse_pasted(self._input_head, now)
            ):
                self._logs.append(file)
            return
        with file.open("rb") as content:
            head = content.read(HEAD_BYTES)
            written_at = datetime.fromtimestamp(file.stat().st_mtime, UTC)
            if self._parse(str(file), head, content.read, written_at):
                return
            is_short = file.stat().st_size <= MAX_PASTED_BYTES and not is_packed(head)
            if is_short and self._parse_pasted(head + content.read(), written_at, str(file)):
                return
        if is_packed(head) and (members := unpack_objects(file, head, self._folder)):
            for member in members:
                self.read(member)
        else:
            self._logs.append(file)

    def _parse(self, name: str, head: bytes, read_more: Callable[[int], bytes], written_at: datetime) -> bool:
        """Parse a text of objects or descriptions; False if it is none."""
        self._written_at = max(self._written_at, written_at)
        if has_objects(head):
            data = head + read_more(MAX_OBJECT_BYTES)
            try:
                self._objects += parse_objects(name, data)
            except MistakeError:
                # Prose or events behind a manifest.
                if len(data) > MAX_PASTED_BYTES or not self._parse_pasted(data, written_at, name):
                    raise
        elif has_descriptions(head):
            text = (head + read_more(MAX_OBJECT_BYTES)).decode("utf-8", "replace")
            described = _parse_described(text, written_at)
            self._objects += described
            self._unread |= _list_unread(described)
        else:
            return False
        return True

    def _parse_pasted(self, data: bytes, written_at: datetime, name: str = NAME_OF_STANDARD_INPUT) -> bool:
        """Parse what a text holds besides prose; False if a log has to be read from it too, or nothing is in it."""
        text = data.decode("utf-8", "replace")
        is_log = has_log(text)
        logged_pod = find_logged_pod(text) if is_log else ""
        pasted = parse_pasted(text, written_at, is_log=is_log, logged_pod=logged_pod)
        self._objects += pasted
        self._unread |= _list_unread(pasted)
        self._pasted |= {name} if pasted else set()
        if pasted and (cause := find_cause(data)):
            self._errors.append(UnknownLogError(f"{name}: {cause}"))
        return bool(pasted) and not is_log

    def finish(self) -> ClusterCase:
        case = self._case
        attach_claims(self._objects)
        self._objects += build_reported(self._objects, datetime.now(UTC))
        case.objects = self._collect_objects()
        facts = self._add_nodes()
        for log in self._logs:
            pods = len(case.pods.pods)
            try:
                case.counts = read_log(log, case.pods.add, facts, head=self._input_head)
            except MistakeError as error:
                if isinstance(error, UnknownLogError) and str(log) in self._pasted:
                    continue
                # The folder into which an archive was unpacked is nothing to its owner.
                unpacked = re.escape(str(self._folder)) + r"/archive-\d+/"
                self._errors.append(type(error)(re.sub(unpacked, "", str(error))))
            except UnreadableFileError as error:
                # A log that is torn (a truncated gzip) still answers for what was before the tear.
                torn = len(case.pods.pods) > pods
                self._errors.append(
                    UnreadableFileError(f"{error}; the answer is from the part before that") if torn else error
                )
        judging = {name for name, pod in case.pods.pods.items() if pod.names_nodes()}
        self._objects = join_unnamed(self._objects, case.pods.pods) or self._objects
        if judging:
            self._objects = leave_counts_out(self._objects, judging)
        case.objects = self._collect_objects()
        _read_events(case.objects, case.pods)
        for attempts in read_saved_attempts(case.objects):
            attempts.add_to(case.pods)
        has_read = bool(case.pods.pods) or bool(case.objects.tables) or case.counts is not None
        if self._errors and not has_read:
            first, *others = self._errors
            raise MistakeError(f"{first}; nor can {len(others):,} more files be read") if others else first
        case.problems = list(self._list_problems())
        return case

    def _collect_objects(self) -> CaseObjects:
        objects = complete_pods(collect_objects(self._objects, self._unread), self._written_at)
        saved = objects.select(SAVED_CASE)
        unread = {kind for entry in saved for kind in entry.get("unread", ()) if isinstance(kind, str)}
        return replace(objects, unread=objects.unread | unread)

    def _list_problems(self) -> Iterator[str]:
        """List the parts that could not be read; of a folder, files that are about something else are one problem."""
        others = [error for error in self._errors if isinstance(error, UnknownLogError)]
        for error in self._errors:
            if len(others) <= MAX_NAMED_FILES or error not in others:
                yield str(error)
        if len(others) > MAX_NAMED_FILES:
            names = ", ".join(str(error).partition(": ")[0] for error in others[:MAX_NAMED_FILES])
            yield f"{len(others):,} files hold neither objects nor a scheduler's log, such as {names}"

    def _add_nodes(self) -> LogFacts:
        """Add the nodes of the case to the facts about its logs, where no other list of nodes was named."""
        nodes = self._case.objects.select(kinds.NODE)
        if not nodes or self._facts.node_list:
            return self._facts
        return self._facts._replace(node_list=orjson.dumps({"kind": "NodeList", "items": nodes}))


def _list_unread(described: Iterable[Any]) -> set[str]:
    """List the kinds of which a description holds only a part: that of a node names its pods without their devices."""
    return {kinds.POD} if any(entry["kind"] == kinds.NODE for entry in described) else set()


def _parse_described(text: str, written_at: datetime) -> list[Any]:
    """Parse descriptions or a table of events, with what its events are about: pods that wait, and their controllers.

    A controller is built only where it could not create its pods.
    """
    lines = unwrap_lines(text.replace("\r\n", "\n").split("\n"))
    described: list[Any] = parse_descriptions("\n".join(lines), written_at)
    events = [entry for entry in described if entry["kind"] == "Event"]
    if len(events) < len(described):
        return described
    return [*described, *build_waiting_pods(events), *build_makers(events), *build_unadmitted(events)]


def _read_events(objects: CaseObjects, pods: LogPods, is_read: Callable[[Any], bool] = lambda _: True) -> None:
    """Read the attempts that events and conditions tell of; ``is_read``: chooses the pods."""
    if not objects.tables:
        return
    # Imported late: what reads a log alone would wait for it.
    from ingest.readers.kube.reader import KubeEvents
    from ingest.reading.trusted_reporters import TrustedReporters

    # Nobody else can write into a file that a person chose to read.
    reader = KubeEvents(reporters=TrustedReporters(("*",)))
    for kind, object_kind in _READ_IN_ORDER:
        for resource in objects.select(kind):
            if kind == kinds.POD and not is_read(resource):
                continue
            pods.add(reader.read_object(object_kind, resource, 0.0))
    pods.add(reader.close())


def list_pod_names(case: ClusterCase) -> Iterable[str]:
    """List the pods of the case as ``namespace/name``: those of its objects, then those of its logs."""
    named = (f"{namespace}/{name}" for namespace, name in case.objects.tables.get(kinds.POD, {}))
    names = dict.fromkeys([*named, *case.pods.pods])
    # Where nothing else names a pod, its events do: an autoscaler's, a kubelet's.
    return names or dict.fromkeys(f"{namespace}/{name}" for namespace, name in case.objects.list_event_subjects("Pod"))
