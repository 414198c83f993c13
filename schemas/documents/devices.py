"""The documents of device verdicts, and of the inventories that they name."""

from typing import Any

import orjson

from schemas.codec.records import Rejected, read
from schemas.documents.head import JudgedDevices, attempt_fields
from schemas.events import (
    NOT_REASONS,
    DevicesJudged,
)


def devices_document(event: JudgedDevices, value: bytes, inventory: str | None = None) -> dict[str, Any]:
    """The document of one record of devices judged; its id is the event's id. ``value`` is the record's own JSON,
    without its inventory where that has a document of its own with the id ``inventory``."""
    return attempt_fields(event) | {
        "container": event.request.container,
        "nodes": event.nodes,
        "reasons": sorted(set(event.verdicts) - NOT_REASONS),
        "inventory": inventory,
        # The record's own bytes, not encoded again.
        "record": orjson.Fragment(value),
    }


def inventory_document(value: bytes) -> dict[str, Any]:
    """The document of the devices of a run of nodes. ``value``: what a record says of them, as JSON."""
    return {"record": orjson.Fragment(value)}


def devices_of(document: dict[str, Any], inventory: dict[str, Any] | None = None) -> DevicesJudged | Rejected:
    """The event that a document of the devices index holds (its ``_source``), with that of the inventory it names."""
    verdicts, devices = document.get("record"), (inventory or {}).get("record")
    return read(DevicesJudged, verdicts | devices if verdicts and devices else verdicts, "document.record")
