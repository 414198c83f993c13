"""Documents of device verdicts, and of the states of nodes that they refer to."""

from datetime import datetime
from typing import Annotated, Any

import orjson
from pydantic import FailFast

from ..codec.records import Rejected, format_rfc3339, read
from ..events import NOT_REASONS, AttemptEvent, Count, DevicesJudged, Integer, NodeStateChanged, Request, Words
from ..events.node_states import rank_state
from .attempts import build_attempt_fields


class DevicesJudgedHead(AttemptEvent):
    """Fields of ``DevicesJudged`` by which searches find its document, and the states that it refers to."""

    part: Count
    request: Request
    epoch: Count = 0
    verdicts: Words
    nodes: Words
    # A list, because nobody computes with it: as a column it would become an array, and all other fields with it.
    revision: Annotated[list[Integer], FailFast()]

    @property
    def id(self) -> str:
        return f"{self.attempt_id}/devices/{self.part}"


def build_devices_document(event: DevicesJudged | DevicesJudgedHead, value: bytes) -> dict[str, Any]:
    """Build the document of one record of devices judged; its id is the event's id. ``value`` is the record's own
    JSON."""
    return build_attempt_fields(event) | {
        "container": event.request.container,
        "nodes": event.nodes,
        "reasons": sorted(set(event.verdicts) - NOT_REASONS),
        # The record's own bytes, not encoded again.
        "record": orjson.Fragment(value),
    }


def read_devices_judged(document: dict[str, Any]) -> DevicesJudged | Rejected:
    """Read the event of a document of the devices index (its ``_source``)."""
    return read(DevicesJudged, document.get("record"), "document.record")


def build_node_state_document(
    event: NodeStateChanged, recorded_at: datetime, value: bytes | None = None
) -> dict[str, Any]:
    """Build the document of a state; its id is the event's id. ``recorded_at`` is the broker's time of its record.

    Its time and epoch are those of its rank. ``value`` is the record's own JSON, where it is known.
    """
    rank = rank_state(event, recorded_at)
    return {
        "@timestamp": format_rfc3339(rank.written_at),
        "cluster": event.cluster,
        "scheduler": event.scheduler,
        "node": event.node,
        "epoch": rank.epoch,
        "revision": event.revision,
        "devices": event.uuid,
        "state": event if value is None else orjson.Fragment(value),
    }


def read_node_state(document: dict[str, Any]) -> NodeStateChanged | Rejected:
    """Read the event of a document of the node states index (its ``_source``)."""
    return read(NodeStateChanged, document.get("state"), "document.state")
