"""Comparison of what was accepted with what is visible: nothing missing, nothing more, and the same content.

The ledger has the records that the scheduler's spool accepted; the replies are what kube-scheduler got. Neither was
written by the pipeline that is checked.
"""

import base64
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from schemas.json_types import Json
from tests.chaos.published import Topics

DEVICES = "io.schedulerlog.devices.judged.v1"
CONCLUDED = "io.schedulerlog.attempt.concluded.v1"
BOUND = "io.schedulerlog.bind.concluded.v1"


@dataclass(frozen=True, slots=True)
class Entry:
    """A record that the spool accepted."""

    id: str
    type: str
    key: str
    value: bytes
    number: int
    """Counts the records of the ledger."""

    @property
    def attempt(self) -> str:
        return self.id.split("/", 1)[0]


def read(path: Path) -> list[Entry]:
    """Read everything that was accepted, in order; a line that a crash cut off was never answered."""
    entries = []
    for number, line in enumerate(path.read_bytes().splitlines() if path.exists() else ()):
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        entries.append(Entry(entry["id"], entry["type"], entry["key"], base64.b64decode(entry["value"]), number))
    return entries


def list_decisions(namespace: str, entries: Iterable[Entry]) -> list[Entry]:
    """List the decisions about pods of ``namespace``."""
    return [entry for entry in entries if entry.key.startswith(f"default/{namespace}/")]


@dataclass(frozen=True, slots=True)
class Answer:
    """kube-scheduler's answer about a pod: the node, or the reasons for none; and how a bind ended."""

    pod: str
    chosen: str | None
    failed: Mapping[str, str]
    bound: bool | None = None

    @property
    def status(self) -> str:
        return {True: "succeeded", False: "failed", None: "pending" if self.chosen else "failed"}[self.bound]


@dataclass
class Seen:
    """Everything that is visible of a namespace."""

    decisions: Mapping[str, bytes]
    """Record value by ce_id, from the topic."""
    attempts: Sequence[tuple[str, Json]]
    """Id and document of every attempt."""
    devices: Mapping[str, Json]
    """Document of every record of devices judged, by id."""
    summaries: Sequence[Json]
    """Values of the attempts topic in order."""
    messages: Sequence[tuple[str, Json]]
    """ce_id and value of the messages topic."""
    schedulerlogs: Mapping[str, Json]
    """The API's answer by pod."""
    dead_letters: int = 0
    partitions: int = 0
    """Partitions of the decisions that have records of the namespace."""
    topics: Topics = field(default_factory=Topics)
    indexed_trends: Mapping[str, int] = field(default_factory=dict)
    """Attempts by result, as the rows of the index count them."""
    pod_states: Mapping[str, Json] = field(default_factory=dict)
    """Document of the latest state by pod."""


@dataclass
class Verdict:
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)

    @property
    def is_exact(self) -> bool:
        return not (self.missing or self.extra or self.different)

    def __str__(self) -> str:
        if self.is_exact:
            return "exact"
        return "; ".join(
            f"{len(items)} {name}: {', '.join(items[:3])}" + (", …" if len(items) > 3 else "")
            for name, items in (("missing", self.missing), ("extra", self.extra), ("different", self.different))
            if items
        )


def compare(entries: Sequence[Entry], answers: Iterable[Answer], seen: Seen, garbage: int = 0) -> Verdict:
    """Compare answers and accepted records with what is visible. ``garbage``: records that must be dead letters."""
    verdict = Verdict()
    _compare_decisions(entries, seen, verdict)
    _compare_attempts(entries, seen, verdict)
    _compare_devices(entries, seen, verdict)
    _compare_published(entries, seen, verdict)
    latest = {entry.key.rpartition("/")[2]: entry.attempt for entry in entries}
    for answer in answers:
        _compare_answer(answer, seen, verdict)
        _compare_state(answer, latest.get(answer.pod), seen, verdict)
    if seen.dead_letters != garbage:
        verdict.different.append(f"{seen.dead_letters} dead letters of {garbage}")
    return verdict


def _compare_decisions(entries: Sequence[Entry], seen: Seen, verdict: Verdict) -> None:
    for entry in entries:
        if entry.id not in seen.decisions:
            verdict.missing.append(f"record {entry.id}")
        elif seen.decisions[entry.id] != entry.value:
            verdict.different.append(f"record {entry.id}")
    verdict.extra += [f"record {key}" for key in seen.decisions.keys() - {entry.id for entry in entries}]


def compare_visible(entries: Sequence[Entry], seen: Seen, verdict: Verdict) -> None:
    """Compare records on the topic and attempts in the index: none is missing, but there may be more."""
    verdict.missing += [f"record {entry.id}" for entry in entries if entry.id not in seen.decisions]
    indexed = {attempt for attempt, _ in seen.attempts}
    verdict.missing += [f"attempt {attempt}" for attempt in {entry.attempt for entry in entries} - indexed]


def _compare_attempts(entries: Sequence[Entry], seen: Seen, verdict: Verdict) -> None:
    wanted = {entry.attempt for entry in entries}
    counts = Counter(attempt for attempt, _ in seen.attempts)
    verdict.missing += [f"attempt {attempt}" for attempt in wanted - counts.keys()]
    verdict.extra += [f"attempt {key}" for key in counts.keys() - wanted]
    verdict.extra += [f"attempt {attempt}, {count} times" for attempt, count in counts.items() if count > 1]
    first: dict[str, str] = {}
    for entry in entries:
        first.setdefault(entry.key, entry.attempt)
    pods = {entry.attempt: entry.key for entry in entries}
    verdict.different += [
        f"attempt {attempt} is in the episode {document['episode']}"
        for attempt, document in seen.attempts
        # Whatever is tried again is refused again for the same reasons.
        if attempt in pods and document["episode"] != first[pods[attempt]]
    ]
    verdict.different += [
        f"attempt {attempt} is incomplete: {document['summary']['missing']}"
        for attempt, document in seen.attempts
        if not document["complete"]
    ]


def _compare_devices(entries: Sequence[Entry], seen: Seen, verdict: Verdict) -> None:
    # A repetition has no device records: those of the attempt that it repeats count for it.
    repeated = {attempt for attempt, document in seen.attempts if document.get("repeats")}
    wanted = {entry.id: entry.value for entry in entries if entry.type == DEVICES and entry.attempt not in repeated}
    verdict.missing += [f"document {key}" for key in wanted.keys() - seen.devices.keys()]
    verdict.extra += [f"document {key}" for key in seen.devices.keys() - wanted.keys()]
    verdict.different += [
        f"document {key}"
        for key in wanted.keys() & seen.devices.keys()
        if seen.devices[key]["record"] != json.loads(wanted[key])
    ]


def _compare_published(entries: Sequence[Entry], seen: Seen, verdict: Verdict) -> None:
    """Compare the topics that others read: the summary of every attempt, and its messages, each id with one text."""
    ends = {entry.attempt for entry in entries if entry.type == CONCLUDED}
    published = {summary["attempt_id"] for summary in seen.summaries if summary.get("complete", "repeats" in summary)}
    verdict.missing += [f"summary {end}" for end in ends - published]
    announced = {message["attempt_id"] for _, message in seen.messages}
    verdict.missing += [f"messages of {end}" for end in ends - announced]
    verdict.extra += [f"messages of {attempt}" for attempt in announced - {entry.attempt for entry in entries}]


def _compare_state(answer: Answer, attempt: str | None, seen: Seen, verdict: Verdict) -> None:
    """Compare kube-scheduler's reply with the pod's state, which lists of waiting pods are made of."""
    state = seen.pod_states.get(answer.pod)
    if state is None:
        verdict.missing.append(f"state of {answer.pod}")
        return
    visible_state = state["state"], state["status"], state["attempt_id"]
    wanted = "placed" if answer.status == "succeeded" else "waiting", answer.status, attempt
    if visible_state != wanted:
        verdict.different.append(f"state of {answer.pod}: {visible_state}, not {wanted}")


def _compare_answer(answer: Answer, seen: Seen, verdict: Verdict) -> None:
    """Compare kube-scheduler's reply with the API's answer, node by node."""
    log = seen.schedulerlogs.get(answer.pod)
    if log is None:
        verdict.missing.append(f"schedulerlog of {answer.pod}")
        return
    if log["status"] != answer.status:
        verdict.different.append(f"schedulerlog of {answer.pod}: {log['status']}, not {answer.status}")
    nodes = {node["name"]: node for node in log["filter"]["nodes"]}
    if answer.chosen is not None:
        if nodes.get(answer.chosen, {}).get("status") != "passed" or log["filter"]["status"] == "failed":
            verdict.different.append(f"schedulerlog of {answer.pod}: {answer.chosen} did not pass")
        return
    reasons = {
        name: next(c["reason"] for c in node["containers"] if c["status"] == "failed") for name, node in nodes.items()
    }
    if reasons != dict(answer.failed):
        verdict.different.append(f"schedulerlog of {answer.pod}: other reasons than kube-scheduler got")
