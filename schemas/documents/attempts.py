"""The documents of attempts: fields to search by, and the event itself, stored whole and not indexed."""

from hashlib import blake2b
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from ..codec.records import Rejected, format_rfc3339, read
from ..events import (
    UNREGISTERED,
    AttemptEvent,
    AttemptRepeated,
    AttemptSummarized,
    FindingReported,
    PodDescription,
    Refusal,
)


def build_attempt_fields(event: AttemptEvent) -> dict[str, Any]:
    """Build the fields of an attempt. ``@timestamp`` is the start of the attempt."""
    return {
        "@timestamp": format_rfc3339(event.started_at),
        "cluster": event.cluster,
        "attempt_id": event.attempt_id,
        "namespace": event.pod.namespace,
        "pod": event.pod.name,
        "pod_uid": event.pod.uid,
        "scheduler": event.scheduler,
    }


def build_description_fields(description: PodDescription | None) -> dict[str, Any]:
    """Build the fields of the pod's origin, for search and groups."""
    if description is None:
        return {}
    return {
        "workload": description.workload or None,
        "pod_group": description.pod_group or None,
        "queue": description.queue or None,
        "priority_class": description.priority_class or None,
        "service_account": description.service_account or None,
        "labels": [f"{name}={value}" for name, value in sorted(description.labels.items())],
    }


_NODE_UNREGISTERED: Final = "node unregistered"
"""The reason of a node with the verdict ``UNREGISTERED`` and no refusal that says more."""


class Digests(NamedTuple):
    verdicts: str
    """``verdict_digest``."""
    detail: str
    """Digest of everything but times; ``retries.derive_digests``."""
    added: str = ""
    """Digest of what other sources add to the report with the verdicts; empty where only one reported the attempt."""


def list_reason_codes(refusals: list[Refusal]) -> list[str]:
    """List every code that some refusal names, sorted."""
    codes = {code for refusal in refusals for code in (*refusal.counts, *refusal.uncounted)}
    return sorted(codes | {refusal.bare for refusal in refusals if refusal.bare})


def list_reasons(summary: AttemptSummarized) -> list[str]:
    """List every code that some node was refused for, and that of a bind that failed, sorted."""
    bind = {summary.bind.reason} - {""} if summary.bind else set()
    return sorted({*list_reason_codes(summary.refusals), *summary.refused_nodes, *bind})


def list_node_reasons(summary: AttemptSummarized) -> list[str]:
    """List ``node|reason`` for every node and each code that it was refused for, in the order of the nodes.

    Then the chosen one and the code of its bind, if that failed.
    """
    # The last entry of each is that of -1: nothing is known.
    codes = [*(_list_codes(refusal) for refusal in summary.refusals), []]
    unexplained = [*([_NODE_UNREGISTERED] if verdict == UNREGISTERED else [] for verdict in summary.verdicts), []]
    columns = zip(summary.nodes, summary.refusal.tolist(), summary.verdict.tolist(), strict=True)
    pairs = [f"{node}|{code}" for node, refusal, verdict in columns for code in codes[refusal] or unexplained[verdict]]
    bind = summary.bind
    return [*pairs, f"{bind.node}|{bind.reason}"] if bind and bind.reason else pairs


def _list_codes(refusal: Refusal) -> list[str]:
    if refusal.bare:
        return [refusal.bare]
    return sorted({*(code for code, count in refusal.counts.items() if count), *refusal.uncounted})


def compute_verdict_digest(summary: AttemptSummarized) -> str:
    """Compute a digest that is equal for two attempts with equal verdicts on every node; scores and times do not count.

    Attempts in a row with one digest are one episode. The order of the tables behind the codes does not matter.
    """
    bind = summary.bind and (summary.bind.node, summary.bind.bound, summary.bind.error)
    # Sorted keys and, below, a fixed byte order: digests are stored and compared with those of other processes.
    outcome = orjson.dumps([summary.error, bind, summary.refused_nodes], option=orjson.OPT_SORT_KEYS)
    return blake2b(outcome + _digest_of_nodes(summary), digest_size=16).hexdigest()


def _digest_of_nodes(summary: AttemptSummarized) -> bytes:
    verdicts, verdict = _sort_table(summary.verdicts, summary.verdict)
    refusals, refusal = _sort_table([_order_refusal(entry) for entry in summary.refusals], summary.refusal)
    tables = orjson.dumps([summary.nodes, verdicts, refusals])
    # Table entries are fewer than 2**31: each takes bytes of its own in a record.
    rows = np.concatenate([verdict, refusal, summary.refused_by], dtype="<i4", casting="unsafe")
    return blake2b(tables + rows.tobytes(), digest_size=16).digest()


def _order_refusal(refusal: Refusal) -> str:
    return orjson.dumps(refusal.__dict__, option=orjson.OPT_SORT_KEYS).decode()


def _sort_table(table: list[str], codes: npt.NDArray[np.int64]) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Sort the words that occur, and re-code the column to them; -1 remains -1."""
    # ``bincount`` takes no negative numbers, hence one up and one down again.
    occurring = np.flatnonzero(np.bincount(codes + 1, minlength=1)) - 1
    used = sorted({table[code] for code in occurring.tolist() if code >= 0})
    places = {word: positions for positions, word in enumerate(used)}
    moved = np.array([places.get(word, -1) for word in table] + [-1], dtype=np.int64)
    return used, moved[codes]


def build_attempt_document(summary: AttemptSummarized, text: str, value: bytes | None = None) -> dict[str, Any]:
    """Build the document of a full summary; its id is the attempt's id. ``text`` is the text of free-text search.

    ``value`` is the summary's own JSON where one record has all of it: it is not encoded again.
    """
    created_at = summary.description.created_at if summary.description else None
    return _build_search_fields(summary, list_reasons(summary), text) | {
        **build_description_fields(summary.description),
        "complete": summary.complete,
        "chosen": summary.chosen,
        "picked_devices": summary.picked_devices,
        "nodes": summary.nodes,
        "node_reasons": list_node_reasons(summary),
        "bound": summary.bind.bound if summary.bind else None,
        "episode": find_episode(summary),
        "episode_started_at": format_rfc3339(summary.episode_started_at or summary.started_at),
        "first_judged_at": format_rfc3339(summary.first_judged_at) if summary.first_judged_at else None,
        "created_at": format_rfc3339(created_at) if created_at else None,
        "changes": summary.changes,
        "summary": summary if value is None else orjson.Fragment(value),
    }


def find_episode(summary: AttemptSummarized) -> str:
    """Return the id of the first attempt of its episode."""
    # The worker names it; a summary from anywhere else is the first of its own.
    return summary.episode or summary.attempt_id


def build_repeated_document(repeated: AttemptRepeated, value: bytes | None = None) -> dict[str, Any]:
    """Build the document of an attempt that repeats another: without the nodes, which the other one has."""
    return _build_search_fields(repeated, repeated.reasons, repeated.text) | {
        **build_description_fields(repeated.description),
        "first_judged_at": format_rfc3339(repeated.first_judged_at) if repeated.first_judged_at else None,
        # An attempt of which records are missing, or that was bound, repeats none.
        "complete": True,
        "episode": repeated.episode,
        "episode_started_at": format_rfc3339(repeated.episode_started_at),
        "repeats": repeated.repeats,
        "repeated": repeated if value is None else orjson.Fragment(value),
    }


def _build_search_fields(event: AttemptSummarized | AttemptRepeated, reasons: list[str], text: str) -> dict[str, Any]:
    return build_attempt_fields(event) | {
        "status": event.status,
        "ended_at": format_rfc3339(event.ended_at) if event.ended_at else None,
        "offered_nodes": event.offered_nodes,
        "fit_nodes": event.fit_nodes,
        "judged_devices": event.judged_devices,
        "obstacle": (event.wait and event.wait.code) or None,
        "sources": [report.source for report in event.reports],
        # So that an attempt is found by the id that any of its sources gave it.
        "report_ids": [report.attempt_id for report in event.reports],
        "reasons": reasons,
        "text": text,
    }


def read_summary(document: dict[str, Any]) -> AttemptSummarized | Rejected:
    """Read the summary of a document of the attempts index (its ``_source``), unless it is a repetition."""
    return read(AttemptSummarized, document.get("summary"), "document.summary")


def read_repetition(document: dict[str, Any]) -> AttemptRepeated | Rejected | None:
    """Read the repetition of a document of the attempts index; None for one that holds a full summary."""
    repeated = document.get("repeated")
    return None if repeated is None else read(AttemptRepeated, repeated, "document.repeated")


def build_finding_document(event: FindingReported) -> dict[str, Any]:
    """Build the document of a finding; its id is the event's id."""
    return build_attempt_fields(event) | {
        "finding": event.finding,
        "found_at": format_rfc3339(event.found_at),
        "node": event.node,
        "device": event.device,
        "numbers": event.numbers,
        "evidence": event.evidence,
        "evidence_pods": event.evidence_pods,
    }
