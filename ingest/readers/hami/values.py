"""Values in lines that need more than their key to be read."""

import json
from typing import Any, Final

import orjson

_DECODER: Final = json.JSONDecoder()
_OPENING: Final = (b"{", b"[")


def parse_json(text: bytes | None) -> Any:
    """Parse the JSON at the beginning of a text; None for any other text."""
    try:
        return orjson.loads(text or b"")
    except orjson.JSONDecodeError:
        return _parse_beginning(text or b"")


def _parse_beginning(text: bytes) -> Any:
    """Parse JSON that another key follows: HAMi v2.5 to v2.9 print two values in the line of a registration."""
    if text[:1] not in _OPENING:
        return None
    try:
        value, _ = _DECODER.raw_decode(text.decode(errors="replace"))
    except (ValueError, RecursionError):
        return None
    return value


def clamp_score(score: float) -> float:
    """Clamp a score to 32 bits: HAMi divides by totals of zero, and events have finite scores only."""
    return score if abs(score) < 3.4e38 else 0.0


def split_pod_name(pod: str) -> tuple[str, str] | None:
    """Split ``namespace/name``; None for a text in any other form."""
    namespace, _, name = pod.partition("/")
    # Some lines of a version before 2.6 have the namespace twice.
    name = name.removeprefix(f"{namespace}/")
    return (namespace, name) if namespace and name and "/" not in name else None
