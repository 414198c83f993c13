"""The documents of node states: one per revision, in the index of each day on which the state was written."""

from datetime import datetime
from typing import Any

from schemas.codec.records import Rejected, read, rfc3339
from schemas.events import NodeStateChanged


def node_state_document(event: NodeStateChanged, written_at: datetime) -> dict[str, Any]:
    """The document of a state; its id is the event's id. ``written_at`` names the day whose index it belongs to."""
    return {
        "@timestamp": rfc3339(written_at),
        "scheduler": event.scheduler,
        "node": event.node,
        "epoch": event.epoch,
        "revision": event.revision,
        "devices": event.uuid,
        "state": event,
    }


def node_state_of(document: dict[str, Any]) -> NodeStateChanged | Rejected:
    """The event that a document of the node states index holds (its ``_source``)."""
    return read(NodeStateChanged, document.get("state"), "document.state")
