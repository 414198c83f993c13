"""The documents of findings."""

from typing import Any

from ..codec.records import rfc3339
from ..events import (
    FindingReported,
)
from .head import attempt_fields


def finding_document(event: FindingReported) -> dict[str, Any]:
    """Build the document of a finding; its id is the event's id."""
    return attempt_fields(event) | {
        "finding": event.finding,
        "found_at": rfc3339(event.found_at),
        "node": event.node,
        "device": event.device,
        "numbers": event.numbers,
        "evidence": event.evidence,
        "evidence_pods": event.evidence_pods,
    }
