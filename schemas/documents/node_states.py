"""The documents of node states: one per revision, in the index of each day on which the state was written."""

from datetime import datetime
from typing import Any

import orjson

from ..codec.records import Rejected, format_rfc3339, read
from ..events import NodeStateChanged


def build_node_state_document(
    event: NodeStateChanged, written_at: datetime, value: bytes | None = None
) -> dict[str, Any]:
    """Build the document of a state; its id is the event's id. ``written_at`` names the day of its index.

    ``value`` is the record's own JSON, where it is known.
    """
    return {
        "@timestamp": format_rfc3339(written_at),
        "cluster": event.cluster,
        "scheduler": event.scheduler,
        "node": event.node,
        "epoch": event.epoch,
        "revision": event.revision,
        "devices": event.uuid,
        "state": event if value is None else orjson.Fragment(value),
    }


def read_node_state(document: dict[str, Any]) -> NodeStateChanged | Rejected:
    """Read the event of a document of the node states index (its ``_source``)."""
    return read(NodeStateChanged, document.get("state"), "document.state")
