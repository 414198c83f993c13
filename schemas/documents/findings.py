"""The documents of findings."""

from typing import Any

from ..codec.records import format_rfc3339
from ..events import (
    FindingReported,
)
from .head import build_attempt_fields


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
