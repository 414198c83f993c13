"""The latest changes of attempts in the order in which this process read them, and their subscribers.

The offsets read of each partition name a position in this order: every replica, and the same process after a restart,
understands it. Subscribers keep no copies, but the numbers of the changes that they still have to read: a subscriber
that is slower than the log loses its position, as one does that comes back too late. No I/O; for one event loop.
"""

import asyncio
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar

from api.memory.latest_attempts import CachedAttempt, Taken

Key = tuple[str, ...]
"""Subject of a subscription: ``(cluster,)``, ``(cluster, namespace)`` or ``(cluster, namespace, name)``."""
Offsets = tuple[int, ...]
"""Next offset of each partition from 0."""

_CHANGES_OF_POD: Final = 5
"""Number of changes in the log for each pod that memory may have."""
_SHARE_OF_MEMORY: Final = 4
"""Divisor of memory's size for the changes' attempts, most of which are in memory anyway."""
CHANGE_BYTES: Final = 500
"""Size of a change without its attempt."""


class OffsetsGoneError(Exception):
    """Failure to find offsets: the log does not reach back to them, or the topic never had them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """Change as the log needs it: its place in the order, its pod, and its size."""

    number: int
    partition: int
    """Lane of the record's partition: the partition itself where the log has one topic."""
    offset: int
    offsets: Offsets
    """Position after this change."""
    pod: Key
    is_latest: bool
    """True if it became the latest state of its pod."""
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(LogEntry):
    """Change of an attempt."""

    attempt: CachedAttempt
    before_id: str
    """Attempt that was the pod's latest before; empty if memory had none."""
    before_status: str


Entry = TypeVar("Entry", bound=LogEntry)


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

    def is_behind(self, change: LogEntry) -> bool:
        """Tell whether the change comes after the position at which the subscription began."""
        return change.partition >= len(self.since) or change.offset >= self.since[change.partition]

    def wants(self, change: LogEntry) -> bool:
        """Tell whether the subscription is about the change."""
        return self.is_behind(change) and (change.is_latest or not self.only_latest)

    def advance(self, offsets: Offsets) -> Offsets:
        """Advance the position at which the subscription began to ``offsets``: no partition goes back.

        The replica that gave that position may have read further in one partition than this one had at the change.
        """
        added = (0,) * (len(offsets) - len(self.since))
        return tuple(map(max, offsets, (*self.since, *added)))

    def offer(self, change: LogEntry, max_waiting: int) -> None:
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


class OrderedLog(Generic[Entry]):
    """Log of at most ``max_count`` entries of ``max_bytes`` in all, read from ``topics`` topics."""

    def __init__(self, max_count: int, max_bytes: int, topics: int = 1) -> None:
        self._max_count, self._max_bytes, self._topics = max_count, max_bytes, topics
        self._changes: dict[int, Entry] = {}
        self._bytes, self._last = 0, 0
        self._next: dict[int, int] = {}
        """Lane (``_find_lane``) to its next offset."""
        self._floor: dict[int, int] = {}
        """Lane to the first offset from which the log has every change."""
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
        # A lane of a partition that the other topic does not have stays 0.
        return tuple(self._next.get(lane, 0) for lane in range(max(self._next, default=-1) + 1))

    def begin(self, offsets: Mapping[int, int], jumped: Collection[int], topic: int = 0) -> None:
        """Begin a session at ``offsets``; in the partitions ``jumped`` it does not continue the previous session."""
        before = {lane for lane in self._next if lane % self._topics == topic}
        lanes = {self._find_lane(partition, topic): offset for partition, offset in offsets.items()}
        jumps = {self._find_lane(partition, topic) for partition in jumped}
        has_gap = bool(before - lanes.keys())
        for lane, offset in lanes.items():
            if lane not in self._next or lane in jumps:
                # A new partition that is read from its beginning has no gap, and neither has a topic's first session.
                has_gap = has_gap or lane in self._next or (offset > 0 and bool(before))
                self._next[lane] = self._floor[lane] = offset
        if has_gap:
            self._next = {lane: offset for lane, offset in self._next.items() if lane in lanes or lane not in before}
            self._forget_everything()

    def _find_lane(self, partition: int, topic: int) -> int:
        """Find the place of a partition in positions, which have the partitions of all topics in turn."""
        return partition * self._topics + topic

    def _advance(self, lane: int, offset: int) -> bool:
        """Move the position behind a record; False for one that a previous session has read already."""
        if offset < self._next.get(lane, 0):
            return False
        self._next[lane] = offset + 1
        return True

    def list_subscriptions(self) -> list[Subscription]:
        return [subscription for subscribers in self._subscriptions.values() for subscription in subscribers]

    def subscribe(self, key: Key, since: Offsets | None, *, only_latest: bool = False) -> Subscription:
        """Subscribe from ``since``, or from now. Raises ``OffsetsGoneError``."""
        subscription = Subscription(key, only_latest, since or self.offsets, is_closed=self.is_closed)
        if since is not None and since != self.offsets:
            self._check(since)
            subscription.waiting.extend(self._list_missed(subscription))
        if subscription.waiting or subscription.is_closed:
            subscription.arrived.set()
        self._subscriptions.setdefault(key, set()).add(subscription)
        return subscription

    def _list_missed(self, subscription: Subscription) -> list[int]:
        """List the numbers of the changes that a subscriber has missed, without those that a seen one replaced.

        Another replica may have read the topics in another order: a change that this one read before a seen change of
        the pod is older than what the subscriber knows.
        """
        missed, seen = [], set()
        for change in reversed(self._changes.values()):
            if not _is_about(change, subscription.key):
                continue
            if not subscription.is_behind(change):
                seen.add(change.pod)
            elif subscription.wants(change) and change.pod not in seen:
                missed.append(change.number)
        return missed[::-1]

    def unsubscribe(self, subscription: Subscription) -> None:
        subscribers = self._subscriptions.get(subscription.key, set())
        subscribers.discard(subscription)
        if not subscribers:
            self._subscriptions.pop(subscription.key, None)

    def has_read(self, offsets: Offsets) -> bool:
        """Tell whether this process has read up to ``offsets``, which may come from a replica that is ahead."""
        return all(offset <= position for offset, position in zip(offsets, self.offsets, strict=False))

    def take(self, subscription: Subscription) -> Iterator[Entry]:
        """Take the waiting changes from the subscription. Ends when the subscription ``is_lost``."""
        while subscription.waiting:
            change = self._changes.get(subscription.waiting.popleft())
            if change is None:
                subscription.lose()
                return
            offsets = subscription.advance(change.offsets)
            yield change if offsets == change.offsets else replace(change, offsets=offsets)

    def close(self) -> None:
        """Wake all subscribers, because the process ends."""
        self.is_closed = True
        for subscription in self.list_subscriptions():
            subscription.is_closed = True
            subscription.arrived.set()

    def _check(self, since: Offsets) -> None:
        # Watches of several topics: an older version gave positions of fewer lanes.
        if len(since) > len(self.offsets) or (self._topics > 1 and len(since) < len(self.offsets)):
            raise OffsetsGoneError
        for partition, floor in self._floor.items():
            # A partition that did not exist at that position was empty.
            if (since[partition] if partition < len(since) else 0) < floor:
                raise OffsetsGoneError

    def _append(self, change: Entry) -> None:
        self._last = change.number
        self._changes[change.number] = change
        self._bytes += change.size_bytes
        while len(self._changes) > self._max_count or self._bytes > self._max_bytes:
            self._evict()
        for key in (change.pod, change.pod[:2], change.pod[:1]):
            for subscription in self._subscriptions.get(key, ()):
                subscription.offer(change, self._max_count)

    def _evict(self) -> None:
        oldest = self._changes.pop(next(iter(self._changes)))
        self._bytes -= oldest.size_bytes
        self._floor[oldest.partition] = max(oldest.offset + 1, self._floor.get(oldest.partition, 0))

    def _forget_everything(self) -> None:
        self._changes.clear()
        self._bytes, self._floor = 0, dict(self._next)
        for subscription in self.list_subscriptions():
            subscription.lose()


class ChangeLog(OrderedLog[Change]):
    """Log of the changes of attempts."""

    def read(self, partition: int, offset: int, taken: Taken | None, pod: str) -> None:
        """Note a record; ``taken`` is its change in memory of ``pod`` (``cluster/namespace/name``)."""
        if self._advance(partition, offset) and taken:
            before = taken.before
            self._append(
                Change(
                    number=self._last + 1,
                    partition=partition,
                    offset=offset,
                    offsets=self.offsets,
                    pod=to_key(pod),
                    attempt=taken.attempt,
                    is_latest=taken.is_latest,
                    before_id=before.attempt_id if before else "",
                    before_status=before.status if before else "",
                    size_bytes=taken.size_bytes + CHANGE_BYTES,
                )
            )


def to_key(pod: str) -> Key:
    """Convert ``cluster/namespace/name`` into the key of its subscriptions."""
    return tuple(pod.split("/", 2))


def bound_log(max_pods: int, max_bytes: int) -> tuple[int, int]:
    """Bound the count and the bytes of a log's changes for a memory with these bounds."""
    return max_pods * _CHANGES_OF_POD, max_bytes // _SHARE_OF_MEMORY


def _is_about(change: LogEntry, key: Key) -> bool:
    return change.pod[: len(key)] == key
