"""Values in lines that need more than their key to be read."""

from typing import Any

import orjson


def json_of(text: bytes | None) -> Any:
    """None for a text that is not JSON."""
    try:
        return orjson.loads(text or b"")
    except orjson.JSONDecodeError:
        return None


def finite(score: float) -> float:
    """HAMi divides by totals of zero; events have finite scores of 32 bits only."""
    return score if abs(score) < 3.4e38 else 0.0


def names_of(pod: str) -> tuple[str, str] | None:
    """Namespace and name of ``namespace/name``; None for a text that is not of this form."""
    namespace, _, name = pod.partition("/")
    # Some lines of a version before 2.6 have the namespace twice.
    name = name.removeprefix(f"{namespace}/")
    return (namespace, name) if namespace and name and "/" not in name else None
