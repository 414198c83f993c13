"""HAMi's own logs, with the truth taken inside HAMi beside them: what is read from the text must agree with it.

A log does not report everything. What the reader takes from it must be right, and nothing may be invented: every node,
score, reason, device and bind in the reader's events is compared, and everything in the text must be in the events.
"""

import json
import struct
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from engine.summaries.fold import summarize
from engine.summaries.messages import FILTERING_FAILED, list_messages
from engine.summaries.text import write_refusal
from ingest.lines.blocks import Lines, Origin
from ingest.readers.hami.reader import HamiLog
from schemas.events import (
    FITS,
    PICKED,
    REFUSED,
    UNREGISTERED,
    AttemptEvent,
    AttemptSummarized,
    BindConcluded,
    DevicesJudged,
    Event,
    NodeStateChanged,
)
from schemas.events.devices import StateOf
from tests.conformance.difference import Case, Difference

Expected = Mapping[str, Any]

NOT_REPORTED: Final = Difference("", "the attempt", "not reported", "reported")
WRITTEN: Final = datetime(2026, 12, 31, tzinfo=UTC)
"""All of the set was written in this year; the files' own times are those of a checkout."""


def read_logs(folder: Path) -> Iterator[Case]:
    """Read a case per attempt of every log, and one per log for events that never happened."""
    for log in sorted(folder.glob("*.log")):
        for name, listed in compare_log(log).items():
            yield {"id": name, "differences": listed}


def get_differences(case: Case) -> list[Difference]:
    return list(case["differences"])


def compare_log(log: Path) -> dict[str, list[Difference]]:
    """Compare the reader's events with each attempt of ``NNN.expected.json``, by its ``log seq kind pod``."""
    truth = json.loads(log.with_suffix(".expected.json").read_bytes())
    events = read(log)
    attempts, state_of = group_by_attempt(events), _index_states(events)
    filters = _group_by_pod(attempts)
    binds = [event for events in attempts.values() for event in events if isinstance(event, BindConcluded)]
    compared: dict[str, list[Difference]] = {}
    for attempt in truth["attempts"]:
        name = f"{log.stem} {attempt['seq']} {attempt['kind']} {attempt['pod']}"
        if attempt["kind"] == "bind":
            compared[name] = list(_compare_binds(attempt, binds))
        elif "per_node" in attempt or attempt.get("error"):
            mine = filters.get(attempt["pod"], [])
            compared[name] = list(_compare_filters(attempt, mine.pop(0), truth, state_of)) if mine else [NOT_REPORTED]
    never = [str(bind.pod) for bind in binds] + [pod for pod, attempts in filters.items() for _ in attempts]
    compared[f"{log.stem} nothing else happened"] = [
        Difference("", "reported and never happened", pod, "") for pod in never
    ]
    return compared


def read(log: Path) -> list[Event]:
    reader = HamiLog()
    origin = Origin(log.name, reference=WRITTEN)
    texts = log.read_bytes().split(b"\n")
    return [*reader.feed(Lines(origin, texts)), *reader.close()]


def group_by_attempt(events: list[Event]) -> dict[str, list[AttemptEvent]]:
    attempts: dict[str, list[AttemptEvent]] = {}
    for event in events:
        if isinstance(event, AttemptEvent):
            attempts.setdefault(event.attempt_id, []).append(event)
    return attempts


def _index_states(events: list[Event]) -> StateOf:
    states = {(event.node, event.revision): event for event in events if isinstance(event, NodeStateChanged)}
    return lambda node, revision: states.get((node, revision))


def _group_by_pod(attempts: Mapping[str, list[AttemptEvent]]) -> dict[str, list[list[AttemptEvent]]]:
    """Group the attempts with a filter by pod, in the order in which they started."""
    filters: dict[str, list[list[AttemptEvent]]] = {}
    for events in sorted(attempts.values(), key=lambda events: events[0].started_at):
        if filtered := [event for event in events if not isinstance(event, BindConcluded)]:
            filters.setdefault(str(events[0].pod), []).append(filtered)
    return filters


def _compare_binds(truth: Expected, binds: list[BindConcluded]) -> Iterator[Difference]:
    mine = next((bind for bind in binds if str(bind.pod) == truth["pod"]), None)
    if mine is None:
        yield NOT_REPORTED
        return
    binds.remove(mine)
    ours = {"node": mine.node, "error": mine.error, "bound": mine.bound}
    true = {"node": truth["node"], "error": truth.get("error", ""), "bound": not truth.get("error")}
    if ours != true:
        yield Difference("", "bind", ours, true)


def _compare_filters(
    truth: Expected, events: list[AttemptEvent], log: Expected, state_of: StateOf
) -> Iterator[Difference]:
    summary = summarize(events)
    ours: dict[str, Any] = {
        "uid": summary.pod.uid,
        "chosen": summary.chosen,
        "error": summary.error,
        "offered": summary.offered_nodes if not truth.get("error") else None,
    }
    true = {
        "uid": truth["uid"],
        "chosen": truth.get("chosen_node"),
        "error": truth.get("error", ""),
        "offered": len(truth["node_names"]) if not truth.get("error") else None,
    }
    yield from (Difference("", key, ours[key], true[key]) for key in true if ours[key] != true[key])
    if summary.node_policy and truth.get("node_policy", summary.node_policy) != summary.node_policy:
        yield Difference("", "node policy", summary.node_policy, truth["node_policy"])
    if any(word in summary.missing for word in ("missing", "count")):
        yield Difference("", "balance", summary.missing, "")
    yield from _compare_nodes(truth, summary)
    yield from _compare_devices(truth, events, log, state_of)
    yield from _compare_events(truth, summary)


def _compare_nodes(truth: Expected, summary: AttemptSummarized) -> Iterator[Difference]:
    mine = {name: _get_verdict(summary, row) for row, name in enumerate(summary.nodes)}
    for name, node in truth.get("per_node", {}).items():
        true = _to_verdict(node)
        # That a node is unregistered can be inferred at best; it must never be reported wrongly.
        ours = mine.pop(name, true if node["verdict"] == "unregistered" else None)
        if ours != true:
            yield Difference(name, "verdict", ours, true)
    judged = "per_node" in truth
    yield from (
        Difference(name, "verdict", mine[name], None) for name in mine if judged or name not in truth["node_names"]
    )


def _to_verdict(node: Expected) -> tuple[str, float | str]:
    if node["verdict"] == "fit":
        return FITS, parse_float32(node["score"])
    return (REFUSED, node["reason"]) if node["verdict"] == "unfit" else (UNREGISTERED, "")


def _get_verdict(summary: AttemptSummarized, row: int) -> tuple[str, float | str]:
    word = summary.verdicts[summary.verdict[row]]
    if word in (PICKED, FITS):
        return FITS, float(summary.score[row])
    refusal = int(summary.refusal[row])
    # HAMi's reasons have no cause: it is what other lines of the log add.
    return word, write_refusal(summary.refusals[refusal].model_copy(update={"cause": ""})) if refusal >= 0 else ""


def parse_float32(text: str) -> float:
    value: float = struct.unpack("f", struct.pack("f", float(text)))[0]
    return value


def _compare_devices(
    truth: Expected, events: list[AttemptEvent], log: Expected, state_of: StateOf
) -> Iterator[Difference]:
    rows = [row for event in events if isinstance(event, DevicesJudged) for row in event.iterate_devices(state_of)]
    for row in rows:
        if row.node not in ("", log["gpu_uuid_to_node"].get(row.uuid)):
            yield Difference(row.node, "its devices", row.uuid, None)
    ours = {row.uuid for row in rows if row.verdict == PICKED}
    written = truth.get("pod_annotations_written", {}).get("hami.io/vgpu-devices-allocated", "")
    true = {device.split(",")[0].split("[")[0] for device in written.replace(";", ":").split(":") if device}
    if ours != true and not truth.get("error"):
        yield Difference("", "picked", ours, true)


def _compare_events(truth: Expected, summary: AttemptSummarized) -> Iterator[Difference]:
    """Compare events: all of HAMi's lines must be among ours, which also name nodes refused without devices."""
    mine = [message for message in list_messages(summary) if not message.reason.startswith("Binding")]
    ours = {f"{message.severity} {message.reason} {message.message}" for message in mine}
    for line in truth["events"]:
        unscored = _drop_scores(line)
        if not any(_drop_scores(text) == unscored for text in ours):
            yield Difference("", "event", sorted(ours), line)
    counted = [message.message for message in mine if message.reason == FILTERING_FAILED and message.code]
    for event in mine:
        is_theirs = f"{event.severity} {event.reason} {event.message}" in truth["events"]
        if (
            event.message in counted
            and not is_theirs
            and event.code not in ("NodeInsufficientDevice", "node unregistered")
        ):
            yield Difference("", "event", event.message, None)


def _drop_scores(line: str) -> str:
    """Drop the scores: nodes of equal scores are listed in any order."""
    head, bracket, nodes = line.partition(" nodes fit(")
    return head + bracket + ",".join(sorted(nodes.rstrip(")").split(",")))
