"""The latest changes of attempts in the order in which this process read them, and their subscribers.

The offsets read of each partition name a position in this order: every replica, and the same process after a restart,
understands it. Subscribers keep no copies, but the numbers of the changes that they still have to read: a subscriber
that is slower than the log loses its position, as one does that comes back too late. No I/O; for one event loop.
"""

import asyncio
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from api.memory.latest_attempts import CachedAttempt, Taken

Key = tuple[str, ...]
"""Subject of a subscription: ``(cluster,)``, ``(cluster, namespace)`` or ``(cluster, namespace, name)``."""
Offsets = tuple[int, ...]
"""Next offset of each partition from 0."""

_CHANGES_OF_POD: Final = 5
"""Number of changes in the log for each pod that memory may have."""
_SHARE_OF_MEMORY: Final = 4
"""Divisor of memory's size for the changes' attempts, most of which are in memory anyway."""
_CHANGE_BYTES: Final = 500
"""Size of a change without its attempt."""


class OffsetsGoneError(Exception):
    """Failure to find offsets: the log does not reach back to them, or the topic never had them."""


@dataclass(frozen=True, slots=True)
class Change:
    number: int
    partition: int
    offset: int
    offsets: Offsets
    """Position after this change."""
    pod: Key
    attempt: CachedAttempt
    is_latest: bool
    """True if it became the latest attempt of its pod."""
    before_id: str
    """Attempt that was the pod's latest before; empty if memory had none."""
    before_status: str
    size_bytes: int


@dataclass(eq=False, slots=True)
class Subscription:
    """Unread changes of ``key``."""

    key: Key
    only_latest: bool
    since: Offsets
    """Offsets before which changes are left out."""
    waiting: deque[int] = field(default_factory=deque)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    is_lost: bool = False
    """True after it missed changes."""
    is_closed: bool = False
    """True when the process ends."""

    def wants(self, change: Change) -> bool:
        """Tell whether the subscription is about the change."""
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
    """Log of at most ``max_count`` changes, whose attempts have ``max_bytes`` in all."""

    def __init__(self, max_count: int, max_bytes: int) -> None:
        self._max_count, self._max_bytes = max_count, max_bytes
        self._changes: dict[int, Change] = {}
        self._bytes, self._last = 0, 0
        self._next: dict[int, int] = {}
        """Partition to its next offset."""
        self._floor: dict[int, int] = {}
        """Partition to the first offset from which the log has every change."""
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

    def begin(self, offsets: Mapping[int, int], jumped: Collection[int]) -> None:
        """Begin a session at ``offsets``; in the partitions ``jumped`` it does not continue the previous session."""
        has_gap = bool(self._next.keys() - offsets.keys())
        for partition, offset in offsets.items():
            if partition not in self._next or partition in jumped:
                # A new partition that is read from its beginning has no gap.
                has_gap = has_gap or partition in self._next or offset > 0
                self._next[partition] = self._floor[partition] = offset
        if has_gap:
            self._next = {partition: self._next[partition] for partition in offsets}
            self._forget_everything()

    def read(self, partition: int, offset: int, taken: Taken | None, pod: str) -> None:
        """Note a record; ``taken`` is its change in memory of ``pod`` (``cluster/namespace/name``)."""
        # A session may read records of the previous session again.
        if offset < self._next.get(partition, 0):
            return
        self._next[partition] = offset + 1
        if taken:
            self._append(partition, offset, taken, tuple(pod.split("/", 2)))

    def list_subscriptions(self) -> list[Subscription]:
        return [subscription for subscribers in self._subscriptions.values() for subscription in subscribers]

    def subscribe(self, key: Key, since: Offsets | None, *, only_latest: bool = False) -> Subscription:
        """Subscribe from ``since``, or from now. Raises ``OffsetsGoneError``."""
        subscription = Subscription(key, only_latest, since or self.offsets, is_closed=self.is_closed)
        if since is not None and since != self.offsets:
            self._check(since)
            missed = [
                change.number
                for change in self._changes.values()
                if _is_about(change, key) and subscription.wants(change)
            ]
            subscription.waiting.extend(missed)
        if subscription.waiting or subscription.is_closed:
            subscription.arrived.set()
        self._subscriptions.setdefault(key, set()).add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        subscribers = self._subscriptions.get(subscription.key, set())
        subscribers.discard(subscription)
        if not subscribers:
            self._subscriptions.pop(subscription.key, None)

    def has_read(self, offsets: Offsets) -> bool:
        """Tell whether this process has read up to ``offsets``, which may come from a replica that is ahead."""
        return all(offset <= position for offset, position in zip(offsets, self.offsets, strict=False))

    def take(self, subscription: Subscription) -> Iterator[Change]:
        """Take the waiting changes from the subscription. Ends when the subscription ``is_lost``."""
        while subscription.waiting:
            change = self._changes.get(subscription.waiting.popleft())
            if change is None:
                subscription.lose()
                return
            yield change

    def close(self) -> None:
        """Wake all subscribers, because the process ends."""
        self.is_closed = True
        for subscription in self.list_subscriptions():
            subscription.is_closed = True
            subscription.arrived.set()

    def _check(self, since: Offsets) -> None:
        if len(since) > len(self._next):
            raise OffsetsGoneError
        for partition, floor in self._floor.items():
            # A partition that did not exist at that position was empty.
            if (since[partition] if partition < len(since) else 0) < floor:
                raise OffsetsGoneError

    def _append(self, partition: int, offset: int, taken: Taken, pod: Key) -> None:
        self._last += 1
        before = taken.before
        change = Change(
            self._last,
            partition,
            offset,
            self.offsets,
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
        for subscription in self.list_subscriptions():
            subscription.lose()


def create_change_log(max_pods: int, max_bytes: int) -> ChangeLog:
    """Create the log for a memory with these bounds."""
    return ChangeLog(max_pods * _CHANGES_OF_POD, max_bytes // _SHARE_OF_MEMORY)


def _is_about(change: Change, key: Key) -> bool:
    return change.pod[: len(key)] == key
