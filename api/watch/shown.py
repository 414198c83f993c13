"""The bytes of the latest changes, made once for all who watch."""

import asyncio
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cachetools import LRUCache

from api.http.cluster import Cluster
from api.memory.change_log import Change
from api.watch.framing import EventType, framed
from api.watch.views import Decoded, ViewName, event_type, matches, object_of

MAX_BYTES: Final = 16 * 1024 * 1024
"""Size of all cached objects. All watches read a change within milliseconds of each other."""
_ENTRY_BYTES: Final = 2000


@dataclass(frozen=True, slots=True)
class _Shown:
    """A change as one kind of watch shows it."""

    fields: Mapping[str, Any]
    body: bytes
    version: str
    frames: dict[tuple[EventType, bool], bytes] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        # The object, and two frames that hold it.
        return 3 * len(self.body) + _ENTRY_BYTES

    def frame(self, kind: EventType, *, is_sse: bool) -> bytes:
        frame = self.frames.get((kind, is_sse))
        if frame is None:
            frame = self.frames[kind, is_sse] = framed(kind, self.body, self.version, is_sse=is_sse)
        return frame


class ShownChanges:
    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._shown: LRUCache[Hashable, _Shown] = LRUCache(max_bytes, getsizeof=lambda shown: shown.size_bytes)
        self._turns = asyncio.Lock()
        self.made = 0
        """How many objects were made."""

    async def turn(self) -> None:
        """Waits until a watch may make an object: all watches make them one by one, and others are answered between.

        It takes up to milliseconds, and hundreds of watches may open at once, each with all attempts in memory.
        """
        async with self._turns:
            await asyncio.sleep(0)

    async def event(
        self,
        view: ViewName,
        cluster: Cluster,
        change: Change,
        wanted: Mapping[str, str],
        *,
        is_sse: bool,
        is_for_all: bool,
    ) -> bytes:
        """The event of a change; empty where the watch shows nothing of it. ``is_for_all``: as of ``Decoded``."""
        key = (change.number, view, cluster, is_for_all)
        shown = self._shown.get(key)
        if shown is None:
            async with self._turns:
                # Another watch may have made it meanwhile.
                shown = self._shown.get(key)
                if shown is None:
                    await asyncio.sleep(0)
                    shown = self._make(view, cluster, change, is_for_all)
                    if shown.size_bytes <= self._max_bytes:
                        self._shown[key] = shown
        kind = event_type(view, change, is_wanted=matches(shown.fields, wanted))
        return shown.frame(kind, is_sse=is_sse) if kind else b""

    def _make(self, view: ViewName, cluster: Cluster, change: Change, is_for_all: bool) -> _Shown:
        self.made += 1
        decoded = Decoded(change.attempt, is_for_all)
        return _Shown(decoded.fields, object_of(view, cluster, decoded, change.version), change.version)
