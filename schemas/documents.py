"""What OpenSearch holds, made from events and read back into them.

A document has two halves: fields to search by, and the event itself, stored whole and not indexed.
"""

from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from schemas.events import NOT_REASONS, AttemptSummarized, DevicesJudged, Refusal
from schemas.records import Rejected, read, rfc3339


def reason_codes(refusals: list[Refusal]) -> list[str]:
    """Every code that some refusal names, sorted."""
    codes = {code for refusal in refusals for code in (*refusal.counts, *refusal.uncounted)}
    return sorted(codes | {refusal.bare for refusal in refusals if refusal.bare})


def verdict_digest(summary: AttemptSummarized) -> str:
    """Equal for two attempts with equal verdicts on every node; scores and times do not count.

    Attempts in a row with one digest are one episode. The order of the tables behind the codes does not matter.
    """
    verdicts, verdict = _in_order(summary.verdicts, summary.verdict)
    refusals, refusal = _in_order([_canonical(each) for each in summary.refusals], summary.refusal)
    bind = summary.bind and (summary.bind.node, summary.bind.bound, summary.bind.error)
    said = orjson.dumps([summary.nodes, verdicts, refusals, summary.error, bind])
    if summary.refused_nodes:
        said += orjson.dumps(summary.refused_nodes, option=orjson.OPT_SORT_KEYS)
    rows = np.concatenate([verdict, refusal, summary.refused_by]).astype("<i8")
    return blake2b(said + rows.tobytes(), digest_size=16).hexdigest()


def _canonical(refusal: Refusal) -> str:
    return orjson.dumps(refusal.__dict__, option=orjson.OPT_SORT_KEYS).decode()


def _in_order(table: list[str], codes: npt.NDArray[np.int64]) -> tuple[list[str], npt.NDArray[np.int64]]:
    """The words that occur, sorted, and the codes that point at them there; -1 stays."""
    used = sorted({table[code] for code in np.unique(codes).tolist() if code >= 0})
    places = {word: place for place, word in enumerate(used)}
    moved = np.array([places.get(word, -1) for word in table] + [-1], dtype=np.int64)
    return used, moved[codes]


def _about(event: AttemptSummarized | DevicesJudged) -> dict[str, Any]:
    return {
        "@timestamp": rfc3339(event.started),
        "attempt_id": event.attempt_id,
        "namespace": event.pod.namespace,
        "pod": event.pod.name,
        "pod_uid": event.pod.uid,
        "scheduler": event.scheduler,
    }


def attempt_document(summary: AttemptSummarized, text: str) -> dict[str, Any]:
    """The document of a whole summary; its id is the attempt's id. ``text`` is what free-text search looks at."""
    return _about(summary) | {
        "status": summary.status,
        "complete": summary.complete,
        "ended": rfc3339(summary.ended) if summary.ended else None,
        "chosen": summary.chosen,
        "picked_devices": summary.picked_devices,
        "offered_nodes": summary.offered_nodes,
        "fit_nodes": summary.fit_nodes,
        "judged_devices": summary.judged_devices,
        "nodes": summary.nodes,
        "reasons": sorted({*reason_codes(summary.refusals), *summary.refused_nodes}),
        "verdict_digest": verdict_digest(summary),
        "bound": summary.bind.bound if summary.bind else None,
        "text": text,
        "summary": summary,
    }


def summary_of(document: dict[str, Any]) -> AttemptSummarized | Rejected:
    """The summary that a document of the attempts index holds (its ``_source``)."""
    return read(AttemptSummarized, document.get("summary"), "document.summary")


def devices_document(event: DevicesJudged, value: bytes) -> dict[str, Any]:
    """The document of one record of devices judged; its id is the event's id. ``value`` is the record's own JSON."""
    return _about(event) | {
        "container": event.request.container,
        "nodes": event.nodes,
        "reasons": sorted(set(event.verdicts) - NOT_REASONS),
        "record": orjson.Fragment(value),
    }


def devices_of(document: dict[str, Any]) -> DevicesJudged | Rejected:
    """The event that a document of the devices index holds (its ``_source``)."""
    return read(DevicesJudged, document.get("record"), "document.record")
