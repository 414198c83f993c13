"""An attempt as schedulerlog's events: states, devices and nodes that were judged, findings, how it ended, its bind."""

from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

import numpy as np

from ingest.readers.kai.attempt import KaiAttempt
from ingest.readers.kai.findings import find_contradictions
from ingest.readers.kai.states import StateMemo
from ingest.readers.kai.verdicts import NodeVerdict, derive_request, judge_nodes
from ingest.readers.node_states import EmittedStates
from schemas.codec.chunking import HEAD_BYTES, divide_refusals, divide_sizes
from schemas.codec.records import MAX_VALUE_BYTES
from schemas.events import (
    PICKED,
    REFUSED,
    AttemptConcluded,
    BindConcluded,
    DevicesJudged,
    Event,
    NodesJudged,
    PickedDevice,
    PodRef,
    Provenance,
    Refusal,
    Request,
)
from schemas.ids import derive_attempt_id

SCHEDULER: Final = "kai-scheduler"
SOURCE: Final = "kai-log"

# Bytes that a row and a node take in JSON, estimated from above: records are cut by them before they are encoded.
_ROW_BYTES: Final = 8
_NODE_BYTES: Final = 64


def build_events(
    attempt: KaiAttempt, cluster: str, states: StateMemo, emitted: EmittedStates, node_count: int = 0
) -> Iterator[Event]:
    """Build the events of an attempt; ``node_count`` is the session's number of nodes, 0 if the log does not say it."""
    head = _head(attempt, cluster)
    request = derive_request(attempt)
    nodes = judge_nodes(attempt, request, states)
    for node in nodes:
        if node.verdicts and emitted.mark_if_due(state := node.shared.state, attempt.started_at):
            yield state.to_event(cluster, SCHEDULER, attempt.started_at)
    devices = list(_build_device_records(head, request, nodes))
    judged = list(_build_node_records(head, nodes))
    yield from devices
    yield from judged
    # Before the conclusion: what concludes an attempt is its last record.
    yield from find_contradictions(head, attempt)
    if attempt.is_concluded:
        records = {"device_records": len(devices), "node_records": len(judged)}
        yield _build_conclusion(head | records, attempt, request, nodes, node_count)
    if attempt.bind_failed_at and attempt.chosen:
        yield BindConcluded(
            **head, node=attempt.chosen, bound=False, error=attempt.bind_error,
            bind_started_at=attempt.bind_failed_at, ended_at=attempt.bind_failed_at,
        )  # fmt: skip


def is_complete(attempt: KaiAttempt) -> bool:
    """Tell whether the log shows the end and the judged nodes; levels below 6 name no nodes."""
    return attempt.is_concluded and bool(attempt.select_nodes() or attempt.has_tags)


def _head(attempt: KaiAttempt, cluster: str) -> dict[str, Any]:
    namespace, _, name = attempt.pod.partition("/")
    # Tagged lines have neither a session nor a time: only their place in the log keeps two attempts of a pod apart.
    key = "/".join((attempt.pod, attempt.session or f"line {attempt.ordinal}"))
    return {
        "cluster": cluster,
        "attempt_id": derive_attempt_id(cluster, SCHEDULER, key, attempt.started_at),
        "pod": PodRef(namespace=namespace, name=name),
        "scheduler": SCHEDULER,
        "reader": SOURCE,
        "started_at": attempt.started_at,
    }


def _build_device_records(head: dict[str, Any], request: Request, nodes: list[NodeVerdict]) -> Iterator[DevicesJudged]:
    listed = [node for node in nodes if node.verdicts]
    sizes = np.array(
        [len(node.verdicts) * _ROW_BYTES + len(node.name) + _NODE_BYTES for node in listed], dtype=np.int64
    )
    for part, run in enumerate(divide_sizes(sizes)):
        yield DevicesJudged(**head, part=part, container=0, request=request, **_build_device_columns(listed[run]))


def _build_device_columns(nodes: list[NodeVerdict]) -> dict[str, Any]:
    """Build a row per device, with ``chain`` and ``map``, because this takes a part of the reader's time."""
    rows = list(chain.from_iterable(node.verdicts for node in nodes))
    verdicts = sorted(set(rows))
    codes = {verdict: code for code, verdict in enumerate(verdicts)}
    return {
        "verdicts": verdicts,
        "nodes": [node.name for node in nodes],
        "revision": [node.shared.state.revision for node in nodes],
        "devices": [node.device_count for node in nodes],
        "rows": [len(node.verdicts) for node in nodes],
        "verdict": list(map(codes.__getitem__, rows)),
    } | (_build_check_columns(nodes) if any(node.checks for node in nodes) else {})


def _build_check_columns(nodes: list[NodeVerdict]) -> dict[str, Any]:
    """Build the distinct results of checks, and each row's index in them; -1 for a device without any."""
    table: dict[tuple[tuple[str, bool], ...], int] = {}
    column = []
    for node in nodes:
        for group in node.shared.groups:
            checked = tuple(sorted(node.checks.get(group, {}).items()))
            column.append(table.setdefault(checked, len(table)) if checked else -1)
    return {"checks": [dict(checked) for checked in table], "check": column}


def _build_node_records(head: dict[str, Any], nodes: list[NodeVerdict]) -> Iterator[NodesJudged]:
    if not nodes:
        return
    table, codes = _build_refusal_table(nodes)
    sizes = np.array([len(node.name.encode()) + _NODE_BYTES for node in nodes], dtype=np.int64)
    refusal = np.array(codes, dtype=np.int64)
    for part, run in enumerate(divide_refusals(sizes, table, refusal, MAX_VALUE_BYTES - HEAD_BYTES)):
        yield NodesJudged(**head, part=part, **_build_node_columns(nodes, table, codes, run))


def _build_refusal_table(nodes: list[NodeVerdict]) -> tuple[list[Refusal], list[int]]:
    """Build the distinct refusals, and each node's index in them; -1 for a node that was not refused."""
    places: dict[tuple[Any, ...], int] = {}
    table: list[Refusal] = []
    codes = []
    for node in nodes:
        if node.refusal is None:
            codes.append(-1)
            continue
        codes.append(places.setdefault(_to_key(node.refusal), len(table)))
        if codes[-1] == len(table):
            table.append(node.refusal)
    return table, codes


def _to_key(refusal: Refusal) -> tuple[Any, ...]:
    # A ``Refusal`` holds a dictionary and can't be a key itself.
    return refusal.bare, refusal.cause, refusal.devices, *refusal.counts.items()


def _build_node_columns(nodes: list[NodeVerdict], table: list[Refusal], codes: list[int], run: slice) -> dict[str, Any]:
    judged = nodes[run]
    used = sorted({code for code in codes[run] if code >= 0})
    places = {code: index for index, code in enumerate(used)} | {-1: -1}
    verdicts = sorted({node.verdict for node in judged})
    return {
        # KAI schedules pods as a whole and names no container.
        "containers": [""],
        "verdicts": verdicts,
        "refusals": [table[code] for code in used],
        "nodes": [node.name for node in judged],
        "verdict": [verdicts.index(node.verdict) for node in judged],
        "score": [node.score for node in judged],
        "refused_by": [0 if node.refusal else -1 for node in judged],
        "refusal": [places[code] for code in codes[run]],
    }


def _build_conclusion(
    head: dict[str, Any], attempt: KaiAttempt, request: Request, nodes: list[NodeVerdict], node_count: int
) -> AttemptConcluded:
    """Build the conclusion; ``head`` also counts the records."""
    # A pod that was placed in the end may have a fit error of an earlier walk in the same session.
    counts = dict(attempt.fit_error.counts) if attempt.fit_error and not attempt.is_placed else {}
    return AttemptConcluded(
        **head,
        ended_at=attempt.last_line_at,
        requests=[request],
        # No line counts them in every level: the largest number that some line proves.
        offered_nodes=max(node_count, len(nodes), *counts.values(), 0),
        judged_nodes=len(nodes),
        judged_devices=sum(len(node.verdicts) for node in nodes),
        picked=_list_picked(request, nodes),
        **(_build_placement(attempt) if attempt.is_placed else _build_failure(attempt, nodes, counts)),
        provenance=Provenance(levels=sorted(attempt.levels), not_reported=_list_gaps(attempt, request, nodes)),
    )


def _list_picked(request: Request, nodes: list[NodeVerdict]) -> list[PickedDevice]:
    return [
        PickedDevice(
            container=0, uuid=group, memory_mib=request.compute_memory(device.total_mib),
            cores_percent=request.cores_percent, memory_total_mib=device.total_mib,
            memory_used_mib=device.allocated_mib,
        )
        for node in nodes
        if node.verdict == PICKED
        for group, device, verdict in zip(node.shared.groups, node.shared.devices, node.verdicts, strict=True)
        if verdict == PICKED
    ]  # fmt: skip


def _build_placement(attempt: KaiAttempt) -> dict[str, Any]:
    """Build the placement. A pipelined pod is only nominated: it waits until others have left."""
    return {"chosen": attempt.chosen, "nominated": attempt.chosen if attempt.is_pipelined else ""}


def _build_failure(attempt: KaiAttempt, nodes: list[NodeVerdict], counts: dict[str, int]) -> dict[str, Any]:
    """Build the reason that no node fits: the refused nodes, else their number by reason, else KAI's words.

    Of a gang KAI's words are kept besides the nodes: these alone don't explain that the whole group waits.
    """
    error = attempt.fit_error
    names_refused = any(node.verdict == REFUSED for node in nodes)
    is_explained = (names_refused or counts) and not (error and error.gang)
    text = error.text if error else ""
    return {
        "error": "" if is_explained else text,
        "refused_nodes": {} if names_refused else counts,
        "scheduler_message": text,
    }


def _list_gaps(attempt: KaiAttempt, request: Request, nodes: list[NodeVerdict]) -> list[str]:
    """List what the logged level, or KAI itself, does not report; in parentheses what would help."""
    devices = [device for node in nodes for device in node.shared.devices]
    is_counted = bool(attempt.fit_error and attempt.fit_error.counts and not attempt.is_placed)
    gaps = {
        "which nodes were looked at (level 6)": not nodes or (is_counted and not attempt.select_nodes()),
        "the memory of the devices (level 8, node list)": any(device.free_mib is None for device in devices),
        "the memory asked for": request.count > 0 and request.memory_mib is None and request.memory_percent is None,
        "the request (level 6)": not request.count and attempt.is_placed,
    }
    return [gap for gap, is_open in gaps.items() if is_open]
