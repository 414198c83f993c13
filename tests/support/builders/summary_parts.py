"""A summary as so many records, however short it is."""

from typing import Any

from schemas.events import AttemptSummarized
from tests.support.builders.events import a_summary


def name_nodes(parts: int) -> list[str]:
    return [f"node{number}" for number in range(parts)]


def build_parts(parts: int, **fields: Any) -> list[AttemptSummarized]:
    """Build a summary with a node in each part; every part has what the whole attempt has in common."""
    common: dict[str, Any] = {"offered_nodes": parts, "judged_devices": 8 * parts, "parts": parts}
    return [a_summary([node], **common, part=number, **fields) for number, node in enumerate(name_nodes(parts))]
