"""The bytes of the latest events, made once for all watches."""

import asyncio
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cachetools import LRUCache

from api.http.cluster import Cluster
from api.http.watch_query import to_version
from api.memory.change_log import Change
from api.memory.wait_log import WaitChange
from api.watch.views import (
    EventType,
    ViewName,
    choose_event_type,
    choose_pending_type,
    decode_state,
    encode_event,
    encode_object,
    matches,
)

AnyChange = Change | WaitChange

MAX_BYTES: Final = 16 * 1024 * 1024
"""Size of all cached events. All watches read a change within milliseconds of each other."""
_ENTRY_BYTES: Final = 2000


@dataclass(frozen=True, slots=True)
class _SharedEvent:
    """Change as the object of one kind of watch."""

    fields: Mapping[str, Any]
    body: bytes
    version: str
    frames: dict[tuple[EventType, bool], bytes] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        # The object and two frames with it.
        return 3 * len(self.body) + _ENTRY_BYTES

    def to_frame(self, kind: EventType, *, is_sse: bool) -> bytes:
        frame = self.frames.get((kind, is_sse))
        if frame is None:
            frame = self.frames[kind, is_sse] = encode_event(kind, self.body, self.version, is_sse=is_sse)
        return frame


class SharedEvents:
    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._events: LRUCache[Hashable, _SharedEvent] = LRUCache(max_bytes, getsizeof=lambda event: event.size_bytes)
        self._turns = asyncio.Lock()
        self.objects_made = 0
        """Number of objects made."""

    async def turn(self) -> None:
        """Wait until a watch may make an object: watches make them one by one, with answers to others in between.

        To make one takes up to milliseconds, and hundreds of watches may open at once, each with all attempts in
        memory.
        """
        async with self._turns:
            await asyncio.sleep(0)

    async def encode_change(
        self,
        view: ViewName,
        cluster: Cluster,
        change: AnyChange,
        filters: Mapping[str, str],
        *,
        is_sse: bool,
        is_for_all: bool,
    ) -> bytes:
        """Encode the event of a change; empty if the watch has no event for it. ``is_for_all``: see ``Decoded``."""
        key = (change.number, change.offsets, view, cluster, is_for_all)
        shared_event = self._events.get(key)
        if shared_event is None:
            async with self._turns:
                # Another watch may have made it in the meantime.
                shared_event = self._events.get(key)
                if shared_event is None:
                    await asyncio.sleep(0)
                    shared_event = self._make(view, cluster, change, is_for_all)
                    if shared_event.size_bytes <= self._max_bytes:
                        self._events[key] = shared_event
        is_wanted = matches(shared_event.fields, filters)
        if isinstance(change, WaitChange):
            kind = choose_pending_type(change, is_wanted=is_wanted)
        else:
            kind = choose_event_type(view, change, is_wanted=is_wanted)
        return shared_event.to_frame(kind, is_sse=is_sse) if kind else b""

    def _make(self, view: ViewName, cluster: Cluster, change: AnyChange, is_for_all: bool) -> _SharedEvent:
        self.objects_made += 1
        state = change.state if isinstance(change, WaitChange) else change.attempt
        decoded = decode_state(state, is_for_all=is_for_all)
        version = to_version(change.offsets)
        return _SharedEvent(decoded.fields, encode_object(view, cluster, decoded, version), version)
