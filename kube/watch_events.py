"""What a watch says, line by line. Pure: bytes in, values out."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson

from kube.errors import ApiError
from kube.resources import Json

_MAX_LINE: Final = 64 * 1024 * 1024
"""No object in etcd is near this size; a line beyond it is no watch."""


@dataclass(frozen=True, slots=True)
class Changed:
    """ADDED or MODIFIED: the object as it is now."""

    found: Json


@dataclass(frozen=True, slots=True)
class Gone:
    """DELETED: the object as it was last."""

    found: Json


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Nothing of ours changed up to this version."""

    version: str


Notice = Changed | Gone | Bookmark


def read(line: bytes) -> Notice:
    """Raises `ApiError` where the line is the server's ERROR (410: the version is too old), or is no notice at all."""
    try:
        said: Any = orjson.loads(line)
        kind, found = said["type"], said["object"]
        if kind == "ERROR":
            raise ApiError(int(found.get("code") or 500), str(found.get("message") or "the watch ended with an error"))
        version = found["metadata"]["resourceVersion"]
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
        raise ApiError(500, f"the watch said what is no notice: {line[:80]!r}") from None
    if kind == "BOOKMARK":
        return Bookmark(version)
    if kind not in ("ADDED", "MODIFIED", "DELETED"):
        raise ApiError(500, f"the watch said a notice of unknown type {kind!r:.40}")
    return Gone(found) if kind == "DELETED" else Changed(found)


class Lines:
    """Cuts a stream of bytes into lines; what has no line end yet waits for the next bytes."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._size = 0

    def feed(self, part: bytes) -> Iterator[bytes]:
        """Raises `ApiError` for a line without end."""
        *ended, rest = part.split(b"\n")
        for piece in ended:
            line = b"".join((*self._rest, piece)) if self._rest else piece
            self._rest, self._size = [], 0
            if line.strip():
                yield line
        if rest:
            self._rest.append(rest)
            self._size += len(rest)
        if self._size > _MAX_LINE:
            raise ApiError(500, f"a watch line is longer than {_MAX_LINE} bytes")
