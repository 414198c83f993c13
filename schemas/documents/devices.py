"""The documents of device verdicts."""

from typing import Any

import orjson

from schemas.codec.records import Rejected, read
from schemas.documents.head import attempt_fields
from schemas.events import NOT_REASONS, DevicesJudged


def devices_document(event: DevicesJudged, value: bytes) -> dict[str, Any]:
    """The document of one record of devices judged; its id is the event's id. ``value`` is the record's own JSON."""
    return attempt_fields(event) | {
        "container": event.request.container,
        "nodes": event.nodes,
        "reasons": sorted(set(event.verdicts) - NOT_REASONS),
        # The record's own bytes, not encoded again.
        "record": orjson.Fragment(value),
    }


def devices_of(document: dict[str, Any]) -> DevicesJudged | Rejected:
    """The event that a document of the devices index holds (its ``_source``)."""
    return read(DevicesJudged, document.get("record"), "document.record")
