"""Decoder of the lines of a watch into events. Pure: bytes in, values out."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson

from runtime.kubernetes.errors import KubeApiError
from schemas.json_types import Json

_MAX_LINE: Final = 64 * 1024 * 1024
"""etcd refuses objects far below this size, so a longer line does not come from a watch."""


@dataclass(frozen=True, slots=True)
class Changed:
    """ADDED or MODIFIED: the object in its present state."""

    obj: Json


@dataclass(frozen=True, slots=True)
class Deleted:
    """DELETED: the object in its last state."""

    obj: Json


@dataclass(frozen=True, slots=True)
class Bookmark:
    """BOOKMARK: no object of the selection changed up to this version."""

    version: str


WatchEvent = Changed | Deleted | Bookmark


def decode_event(line: bytes) -> WatchEvent:
    """Decode one line of a watch. Raises `KubeApiError` if the server reports an ERROR (410: the version is too old) or
    the line is no event."""
    try:
        event: Any = orjson.loads(line)
        kind, obj = event["type"], event["object"]
        if kind == "ERROR":
            # A watch that has begun with status 200 can only report its end in a line: 410 arrives here, not as an HTTP
            # status.
            raise KubeApiError(int(obj.get("code") or 500), str(obj.get("message") or "the watch ended with an error"))
        version = obj["metadata"]["resourceVersion"]
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
        raise KubeApiError(500, f"the watch sent a line that is not a watch event: {line[:80]!r}") from None
    if kind == "BOOKMARK":
        return Bookmark(version)
    # An unknown event may carry a change; ignoring it would leave us with a wrong state unnoticed.
    if kind not in ("ADDED", "MODIFIED", "DELETED"):
        raise KubeApiError(500, f"the watch sent an event of unknown type {kind!r:.40}")
    return Deleted(obj) if kind == "DELETED" else Changed(obj)


class LineSplitter:
    """Splitter of a stream of bytes into lines; an incomplete line waits for the next bytes."""

    def __init__(self) -> None:
        self._pending: list[bytes] = []
        self._size = 0

    def split(self, part: bytes) -> Iterator[bytes]:
        """Yield the lines that `part` completes; raises `KubeApiError` for a line that is too long."""
        # Parts are collected and joined once: adding each to a long line would copy the line every time.
        *ended, tail = part.split(b"\n")
        for piece in ended:
            line = b"".join((*self._pending, piece)) if self._pending else piece
            self._pending, self._size = [], 0
            if line.strip():
                yield line
        if tail:
            self._pending.append(tail)
            self._size += len(tail)
        if self._size > _MAX_LINE:
            raise KubeApiError(500, f"a watch line is longer than {_MAX_LINE} bytes")
