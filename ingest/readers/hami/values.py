"""Values in lines that need more than their key to be read."""

from typing import Any

import orjson


def parse_json(text: bytes | None) -> Any:
    """Parse JSON; None for any other text."""
    try:
        return orjson.loads(text or b"")
    except orjson.JSONDecodeError:
        return None


def clamp_score(score: float) -> float:
    """Clamp a score to 32 bits: HAMi divides by totals of zero, and events have finite scores only."""
    return score if abs(score) < 3.4e38 else 0.0


def split_pod_name(pod: str) -> tuple[str, str] | None:
    """Split ``namespace/name``; None for a text in any other form."""
    namespace, _, name = pod.partition("/")
    # Some lines of a version before 2.6 have the namespace twice.
    name = name.removeprefix(f"{namespace}/")
    return (namespace, name) if namespace and name and "/" not in name else None
