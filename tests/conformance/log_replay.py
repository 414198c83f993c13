"""HAMi's own logs, with the truth taken inside HAMi beside them: what is read from the text must agree with it.

A log does not say everything. What it does say has to be right, and nothing else may be said: every node, score,
reason, card and bind that the reader tells is compared, and everything that the text carries has to be told.
"""

import json
import struct
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ingest.hami.reader import HamiLog
from ingest.lines.blocks import Lines, Origin
from schemas.events import (
    FITS,
    PICKED,
    REFUSED,
    UNREGISTERED,
    AttemptEvent,
    AttemptSummarized,
    BindConcluded,
    DevicesJudged,
)
from summaries.fold import summarize
from summaries.messages import FILTERING_FAILED, messages
from summaries.text import refusal_text
from tests.conformance.difference import Case, Difference

Expected = Mapping[str, Any]

NOT_TOLD: Final = Difference("", "the attempt", "not told", "told")
WRITTEN: Final = datetime(2026, 12, 31, tzinfo=UTC)
"""All of the set was written in this year; the files' own times are those of a checkout."""


def read_logs(folder: Path) -> Iterator[Case]:
    """A case per attempt of every log, and one per log for what was told and never happened."""
    for log in sorted(folder.glob("*.log")):
        for name, found in differences(log).items():
            yield {"id": name, "differences": found}


def log_differences(case: Case) -> list[Difference]:
    return list(case["differences"])


def differences(log: Path) -> dict[str, list[Difference]]:
    """By ``log seq kind pod`` of each attempt in ``NNN.expected.json``: what the reader says otherwise."""
    truth = json.loads(log.with_suffix(".expected.json").read_bytes())
    told = by_attempt(read(log))
    filters = _by_pod(told)
    binds = [event for events in told.values() for event in events if isinstance(event, BindConcluded)]
    found: dict[str, list[Difference]] = {}
    for attempt in truth["attempts"]:
        name = f"{log.stem} {attempt['seq']} {attempt['kind']} {attempt['pod']}"
        if attempt["kind"] == "bind":
            found[name] = list(_bind_differences(attempt, binds))
        elif "per_node" in attempt or attempt.get("error"):
            mine = filters.get(attempt["pod"], [])
            found[name] = list(_filter_differences(attempt, mine.pop(0), truth)) if mine else [NOT_TOLD]
    never = [str(bind.pod) for bind in binds] + [pod for pod, attempts in filters.items() for _ in attempts]
    found[f"{log.stem} nothing else happened"] = [Difference("", "told and never happened", pod, "") for pod in never]
    return found


def read(log: Path) -> list[AttemptEvent]:
    reader = HamiLog()
    origin = Origin(log.name, reference=WRITTEN)
    texts = log.read_bytes().split(b"\n")
    return [*reader.feed(Lines(origin, texts)), *reader.close()]


def by_attempt(events: list[AttemptEvent]) -> dict[str, list[AttemptEvent]]:
    attempts: dict[str, list[AttemptEvent]] = {}
    for event in events:
        attempts.setdefault(event.attempt_id, []).append(event)
    return attempts


def _by_pod(told: Mapping[str, list[AttemptEvent]]) -> dict[str, list[list[AttemptEvent]]]:
    """The attempts with a filter, in the order in which they started."""
    filters: dict[str, list[list[AttemptEvent]]] = {}
    for events in sorted(told.values(), key=lambda each: each[0].started_at):
        if filtered := [event for event in events if not isinstance(event, BindConcluded)]:
            filters.setdefault(str(events[0].pod), []).append(filtered)
    return filters


def _bind_differences(truth: Expected, binds: list[BindConcluded]) -> Iterator[Difference]:
    mine = next((bind for bind in binds if str(bind.pod) == truth["pod"]), None)
    if mine is None:
        yield NOT_TOLD
        return
    binds.remove(mine)
    said = {"node": mine.node, "error": mine.error, "bound": mine.bound}
    true = {"node": truth["node"], "error": truth.get("error", ""), "bound": not truth.get("error")}
    if said != true:
        yield Difference("", "bind", said, true)


def _filter_differences(truth: Expected, events: list[AttemptEvent], log: Expected) -> Iterator[Difference]:
    summary = summarize(events)
    said: dict[str, Any] = {
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
    yield from (Difference("", key, said[key], true[key]) for key in true if said[key] != true[key])
    if summary.node_policy and truth.get("node_policy", summary.node_policy) != summary.node_policy:
        yield Difference("", "node policy", summary.node_policy, truth["node_policy"])
    if any(word in summary.missing for word in ("missing", "count")):
        yield Difference("", "balance", summary.missing, "")
    yield from _node_differences(truth, summary)
    yield from _device_differences(truth, events, log)
    yield from _event_differences(truth, summary)


def _node_differences(truth: Expected, summary: AttemptSummarized) -> Iterator[Difference]:
    mine = {name: _node_of(summary, row) for row, name in enumerate(summary.nodes)}
    for name, node in truth.get("per_node", {}).items():
        true = _true_node(node)
        # That a node is unregistered can be inferred at best; said wrongly it must never be.
        said = mine.pop(name, true if node["verdict"] == "unregistered" else None)
        if said != true:
            yield Difference(name, "verdict", said, true)
    judged = "per_node" in truth
    yield from (
        Difference(name, "verdict", mine[name], None) for name in mine if judged or name not in truth["node_names"]
    )


def _true_node(node: Expected) -> tuple[str, float | str]:
    if node["verdict"] == "fit":
        return FITS, float32(node["score"])
    return (REFUSED, node["reason"]) if node["verdict"] == "unfit" else (UNREGISTERED, "")


def _node_of(summary: AttemptSummarized, row: int) -> tuple[str, float | str]:
    word = summary.verdicts[summary.verdict[row]]
    if word in (PICKED, FITS):
        return FITS, float(summary.score[row])
    refusal = int(summary.refusal[row])
    return word, refusal_text(summary.refusals[refusal]) if refusal >= 0 else ""


def float32(text: str) -> float:
    value: float = struct.unpack("f", struct.pack("f", float(text)))[0]
    return value


def _device_differences(truth: Expected, events: list[AttemptEvent], log: Expected) -> Iterator[Difference]:
    rows = [row for event in events if isinstance(event, DevicesJudged) for row in event.each_device()]
    for row in rows:
        if row.node not in ("", log["gpu_uuid_to_node"].get(row.uuid)):
            yield Difference(row.node, "its cards", row.uuid, None)
    said = {row.uuid for row in rows if row.verdict == PICKED}
    written = truth.get("pod_annotations_written", {}).get("hami.io/vgpu-devices-allocated", "")
    true = {device.split(",")[0].split("[")[0] for device in written.replace(";", ":").split(":") if device}
    if said != true and not truth.get("error"):
        yield Difference("", "picked", said, true)


def _event_differences(truth: Expected, summary: AttemptSummarized) -> Iterator[Difference]:
    """HAMi's lines are all there. Ours may say more: nodes refused for a reason that counts no device, too."""
    mine = [message for message in messages(summary) if not message.reason.startswith("Binding")]
    said = {f"{each.severity} {each.reason} {each.message}" for each in mine}
    for line in truth["events"]:
        kept = _without_scores(line)
        if not any(_without_scores(each) == kept for each in said):
            yield Difference("", "event", sorted(said), line)
    counted = [each.message for each in mine if each.reason == FILTERING_FAILED and each.code]
    for each in mine:
        is_theirs = f"{each.severity} {each.reason} {each.message}" in truth["events"]
        if (
            each.message in counted
            and not is_theirs
            and each.code not in ("NodeInsufficientDevice", "node unregistered")
        ):
            yield Difference("", "event", each.message, None)


def _without_scores(line: str) -> str:
    """Nodes of equal scores stand in any order in the list of the successful ones."""
    head, bracket, nodes = line.partition(" nodes fit(")
    return head + bracket + ",".join(sorted(nodes.rstrip(")").split(",")))
