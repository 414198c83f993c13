"""The latest changes of attempts in the order in which this process read them, and who waits for which of them.

A place in this order is named by the offsets that were read of each partition: every replica, and the same process
after a restart, understands it. Subscribers keep no copies, but the numbers of the changes that they still have to
read: one that is slower than the log loses its place, as one does that comes back too late. No I/O; for one event loop.
"""

import asyncio
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from api.memory.latest_attempts import CachedAttempt, Taken

Key = tuple[str, ...]
"""What a subscription is about: ``(cluster,)``, ``(cluster, namespace)`` or ``(cluster, namespace, name)``."""
Offsets = tuple[int, ...]
"""The offset that is read next, for each partition from 0."""

_CHANGES_OF_POD: Final = 5
"""How many changes are kept, for each pod that memory may have."""
_SHARE_OF_MEMORY: Final = 4
"""Their attempts may have this part of the size of memory; most of them are in memory anyway."""
_CHANGE_BYTES: Final = 500
"""What a change is counted as beside its attempt."""


class OffsetsGoneError(Exception):
    """The log does not reach back to these offsets, or the topic never had them."""


@dataclass(frozen=True, slots=True)
class Change:
    number: int
    partition: int
    offset: int
    version: str
    """The place behind this change, as text."""
    pod: Key
    attempt: CachedAttempt
    is_latest: bool
    """Was it the latest attempt of its pod?"""
    before_id: str
    """The attempt that was the pod's latest before; empty where memory had none."""
    before_status: str
    size_bytes: int


@dataclass(eq=False, slots=True)
class Subscription:
    """The changes of ``key`` that are still to be read."""

    key: Key
    only_latest: bool
    since: Offsets
    """Changes before these offsets are left out."""
    waiting: deque[int] = field(default_factory=deque)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    is_lost: bool = False
    """Has it missed changes?"""
    is_closed: bool = False
    """Does the process end?"""

    def wants(self, change: Change) -> bool:
        """Is it about the change, wherever it stands in the log?"""
        is_behind = change.partition >= len(self.since) or change.offset >= self.since[change.partition]
        return is_behind and (change.is_latest or not self.only_latest)

    def offer(self, change: Change, max_waiting: int) -> None:
        if self.wants(change) and not self.is_lost:
            if len(self.waiting) >= max_waiting:
                self.lose()
            else:
                self.waiting.append(change.number)
                self.arrived.set()

    def lose(self) -> None:
        self.is_lost = True
        self.waiting.clear()
        self.arrived.set()


class ChangeLog:
    """At most ``max_count`` changes, whose attempts have ``max_bytes`` in all."""

    def __init__(self, max_count: int, max_bytes: int) -> None:
        self._max_count, self._max_bytes = max_count, max_bytes
        self._changes: dict[int, Change] = {}
        self._bytes, self._last = 0, 0
        self._next: dict[int, int] = {}
        """Partition to the offset that is read next."""
        self._floor: dict[int, int] = {}
        """Partition to the first offset from which on the log has every change."""
        self._subscriptions: dict[Key, set[Subscription]] = {}
        self.is_closed = False

    def __len__(self) -> int:
        return len(self._changes)

    @property
    def size_bytes(self) -> int:
        return self._bytes

    @property
    def subscribers(self) -> int:
        return sum(map(len, self._subscriptions.values()))

    @property
    def offsets(self) -> Offsets:
        return tuple(offset for _, offset in sorted(self._next.items()))

    @property
    def version(self) -> str:
        """The place behind the last record that was read, as text."""
        return version_of(self.offsets)

    def begin(self, offsets: Mapping[int, int], jumped: Collection[int]) -> None:
        """A session reads from ``offsets``; those of the partitions ``jumped`` are not where the one before stopped."""
        has_gap = bool(self._next.keys() - offsets.keys())
        for partition, offset in offsets.items():
            if partition not in self._next or partition in jumped:
                # A partition that was added, and is read from its beginning, lacks nothing.
                has_gap = has_gap or partition in self._next or offset > 0
                self._next[partition] = self._floor[partition] = offset
        if has_gap:
            self._next = {partition: self._next[partition] for partition in offsets}
            self._forget_everything()

    def read(self, partition: int, offset: int, taken: Taken | None, pod: str) -> None:
        """A record was read; ``taken`` is what it changed in memory about ``pod`` (``cluster/namespace/name``)."""
        # A session may read records again that the one before it has read.
        if offset < self._next.get(partition, 0):
            return
        self._next[partition] = offset + 1
        if taken:
            self._append(partition, offset, taken, tuple(pod.split("/", 2)))

    def subscriptions(self) -> list[Subscription]:
        return [subscription for found in self._subscriptions.values() for subscription in found]

    def subscribe(self, key: Key, since: Offsets | None, *, only_latest: bool = False) -> Subscription:
        """From ``since`` on, or from now. Raises ``OffsetsGoneError``."""
        made = Subscription(key, only_latest, since or self.offsets, is_closed=self.is_closed)
        if since is not None and since != self.offsets:
            self._check(since)
            found = [
                change.number for change in self._changes.values() if _is_about(change, key) and made.wants(change)
            ]
            made.waiting.extend(found)
        if made.waiting or made.is_closed:
            made.arrived.set()
        self._subscriptions.setdefault(key, set()).add(made)
        return made

    def unsubscribe(self, subscription: Subscription) -> None:
        found = self._subscriptions.get(subscription.key, set())
        found.discard(subscription)
        if not found:
            self._subscriptions.pop(subscription.key, None)

    def has_read(self, offsets: Offsets) -> bool:
        """Has this process read so far? A replica may be behind the one that gave the offsets."""
        return all(offset <= own for offset, own in zip(offsets, self.offsets, strict=False))

    def take(self, subscription: Subscription) -> Iterator[Change]:
        """The changes that wait, which are then no longer waiting. Ends where the subscription ``is_lost``."""
        while subscription.waiting:
            change = self._changes.get(subscription.waiting.popleft())
            if change is None:
                subscription.lose()
                return
            yield change

    def close(self) -> None:
        """The process ends: wake everybody who waits."""
        self.is_closed = True
        for subscription in self.subscriptions():
            subscription.is_closed = True
            subscription.arrived.set()

    def _check(self, since: Offsets) -> None:
        if len(since) > len(self._next):
            raise OffsetsGoneError
        for partition, floor in self._floor.items():
            # A partition that did not exist then was empty.
            if (since[partition] if partition < len(since) else 0) < floor:
                raise OffsetsGoneError

    def _append(self, partition: int, offset: int, taken: Taken, pod: Key) -> None:
        self._last += 1
        before = taken.before
        change = Change(
            self._last,
            partition,
            offset,
            self.version,
            pod,
            taken.attempt,
            taken.is_latest,
            before.attempt_id if before else "",
            before.status if before else "",
            taken.size_bytes + _CHANGE_BYTES,
        )
        self._changes[change.number] = change
        self._bytes += change.size_bytes
        while len(self._changes) > self._max_count or self._bytes > self._max_bytes:
            self._evict()
        for key in (pod, pod[:2], pod[:1]):
            for subscription in self._subscriptions.get(key, ()):
                subscription.offer(change, self._max_count)

    def _evict(self) -> None:
        oldest = self._changes.pop(next(iter(self._changes)))
        self._bytes -= oldest.size_bytes
        self._floor[oldest.partition] = oldest.offset + 1

    def _forget_everything(self) -> None:
        self._changes.clear()
        self._bytes, self._floor = 0, dict(self._next)
        for subscription in self.subscriptions():
            subscription.lose()


def log_beside(max_pods: int, max_bytes: int) -> ChangeLog:
    """The log beside a memory of these bounds."""
    return ChangeLog(max_pods * _CHANGES_OF_POD, max_bytes // _SHARE_OF_MEMORY)


def version_of(offsets: Offsets) -> str:
    return ".".join(map(str, offsets))


def _is_about(change: Change, key: Key) -> bool:
    return change.pod[: len(key)] == key
