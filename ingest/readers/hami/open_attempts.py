"""Attempts and binds that have not ended yet. Bounded in number, rows and log time.

An attempt beyond a bound is finished as far as it is known: its events are emitted without a conclusion.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta, tzinfo
from typing import Final

from engine.diagnosis.logged_facts import LoggedFact, UnfinishedAttempt
from engine.hami.node_lock import is_contention
from ingest.lines import klog
from ingest.lines.blocks import Lines, Origin
from ingest.readers.hami.attempt import Bind, HamiAttempt
from ingest.readers.hami.devices import DeviceInRegistration, RegisteredDevices
from ingest.readers.hami.events import build_bind, build_events, build_shared_fields
from ingest.readers.hami.grammar import Spelling
from ingest.readers.hami.memory import AttemptMemory, LockSet
from ingest.readers.hami.settings_lines import take_settings
from ingest.readers.hami.tables import build_requests
from ingest.readers.hami.values import split_pod_name
from ingest.reading.protocol import Counts, NoteFact
from schemas.events import Event, LockHolder

MAX_SILENCE: Final = timedelta(minutes=10)
"""Log time without a line about an attempt, after which the attempt is finished."""
MAX_OPEN: Final = 1_000
"""Open attempts; beyond it the one that was silent longest is finished."""
MAX_ROWS: Final = 500_000
"""Device and node lines over all open attempts."""
MAX_WAITING: Final = 8
"""Attempts of one pod that wait for their event lines."""
MAX_TEXT: Final = 4_000
MAX_QUOTED: Final = 300
CLAIMED_WITHIN: Final = timedelta(seconds=10)
"""Log time after which requests that no attempt has claimed belong to another pod."""
UNNAMED_NAMESPACE: Final = "-"
"""The namespace of a pod that lines name without one; ``-`` is not a valid name."""


class OpenHamiAttempts:
    """Events of what has ended are appended to ``finished_events`` until ``take`` is called."""

    def __init__(
        self,
        cluster: str,
        scheduler: str,
        devices: RegisteredDevices,
        zone: tzinfo,
        note: NoteFact | None = None,
    ) -> None:
        """Start without attempts; ``zone`` is the log's time zone. ``note`` takes facts, and attempts without a
        verdict."""
        self._note = note
        self.counts = Counts()
        self.memory = AttemptMemory(version=2, devices=dict(devices))
        self.cluster, self.scheduler, self.zone = cluster, scheduler, zone
        self.lines, self.index = Lines(Origin(""), ()), 0
        """The lines that are being read, and which of them it is."""
        self.has_several_requesting = True
        """False while no open attempt has several containers that request devices: lines about tries are skipped."""
        self.finished_events: list[Event] = []
        self._uuids_by_node: dict[str, list[str]] | None = None
        """The registered devices; None after a registration."""

    def restore(self, memory: AttemptMemory) -> None:
        self.memory, self._uuids_by_node = memory, None

    def register(self, devices: Iterable[tuple[str, DeviceInRegistration]]) -> None:
        self.memory.devices.update(devices)
        self._uuids_by_node = None

    def register_nodes(self, node: str, uuids: Iterable[str]) -> None:
        """Register the node of devices that no registration has named."""
        new = [uuid for uuid in uuids if uuid not in self.memory.devices]
        if new:
            self.register((uuid, DeviceInRegistration(node)) for uuid in new)

    def note_fact(self, fact: LoggedFact) -> None:
        if self._note:
            self._note(fact)

    def note_crash(self, text: bytes) -> None:
        """Note a panic, which has no time: it is that of the latest line about an attempt."""
        times = [attempt.last_line_at for attempt in self._collect_unfinished()]
        now = max(times, default=self._get_reference())
        self.note_fact(LoggedFact("scheduler crashed", now, words=text[:MAX_QUOTED].decode(errors="replace")))

    def find_collecting(self) -> str:
        """Find the pod whose requests are being read: the only open attempt without requests; empty if unclear."""
        pods = [attempt.pod for attempt in self.memory.open.values() if attempt.requests is None]
        return pods[0] if len(pods) == 1 else ""

    def set_lock(self, node: str, name: str, now: datetime) -> None:
        """Remember who locked the node; the bind that did it has the namespace."""
        names = [pod for pod, bind in self.memory.binds.items() if bind.node == node and pod.partition("/")[2] == name]
        self.memory.set_lock(node, LockSet(names[0] if len(names) == 1 else name, now))
        self.note_fact(LoggedFact("lock taken", now, node=node, pod=self.memory.locks[node].pod))

    def release_lock(self, node: str) -> None:
        self.memory.locks.pop(node, None)

    def find_holder(self, pod: str, node: str) -> LockHolder:
        """Find who holds the node's lock, for a pod whose bind failed because of it."""
        lock = self.memory.locks.get(node)
        if lock is None or not lock.pod or lock.pod in (pod, pod.partition("/")[2]):
            return LockHolder()
        return LockHolder(pod=lock.pod, locked_at=lock.locked_at)

    def _index_by_node(self) -> dict[str, list[str]]:
        """Index the registered UUIDs by node; kept, because an attempt names few nodes of a cluster's thousands."""
        if self._uuids_by_node is None:
            self._uuids_by_node = {}
            for uuid, device in self.memory.devices.items():
                self._uuids_by_node.setdefault(device.node, []).append(uuid)
        return self._uuids_by_node

    def open(self, namespace: str, name: str, uid: str, now: datetime) -> HamiAttempt:
        """Begin an attempt with the line that starts it."""
        return self._open(HamiAttempt(namespace, name, uid, now, now))

    def find_or_open(self, namespace: str, name: str, now: datetime) -> HamiAttempt:
        """Find the pod's open attempt; if the log lacks its start, open one that begins now."""
        attempt = self.find(namespace, name)
        return self._open(self.without_start(namespace, name, now)) if attempt is None else attempt

    def find_by_line(self, text: bytes, spelling: Spelling) -> HamiAttempt | None:
        """Find the open attempt of the pod that the line names; opens one if there is none.

        None for a line without a valid ``namespace/name`` or without a time.
        """
        pod = klog.read_quoted(text, b"pod")
        attempt = self.memory.open.get(pod) if pod else None
        if attempt is None:
            if not pod or not (names := split_pod_name(pod)) or not (now := self.read_time(text)):
                return None
            attempt = self.find_or_open(*names, now)
        attempt.levels.add(spelling.level)
        return attempt

    def find(self, namespace: str, name: str) -> HamiAttempt | None:
        """Find the pod's open attempt, also one whose namespace no line has named so far."""
        if attempt := self.memory.open.get(f"{namespace}/{name}"):
            return attempt
        if attempt := self.memory.open.pop(f"{UNNAMED_NAMESPACE}/{name}", None):
            attempt.namespace = namespace
            self.memory.open[attempt.pod] = attempt
        return attempt

    def without_start(self, namespace: str, name: str, now: datetime) -> HamiAttempt:
        """Begin an attempt whose start the log lacks, with unclaimed requests if they can't be another's."""
        attempt = HamiAttempt(namespace, name, "", now, now)
        self._note_settings(attempt)
        unclaimed = [line for line in self.memory.unclaimed if now - line.at <= CLAIMED_WITHIN]
        self.memory.unclaimed.clear()
        if len(unclaimed) == 1:
            [line] = unclaimed
            attempt.requests, attempt.started_at = line.requests, min(line.at, now)
            attempt.levels.add(line.level)
        return attempt

    def _note_settings(self, attempt: HamiAttempt) -> None:
        self.observe_settings()
        attempt.settings_digest = self.memory.settings.digest

    def _open(self, attempt: HamiAttempt) -> HamiAttempt:
        self._note_settings(attempt)
        self.memory.open[attempt.pod] = attempt
        self._enforce_bounds(attempt.last_line_at)
        self.has_several_requesting = any(len(other.list_requesting()) > 1 for other in self.memory.open.values())
        return attempt

    def _get_reference(self) -> datetime:
        """Get a time that is close to the line's or later: klog writes no year."""
        times = self.lines.times
        return (times and times[self.index]) or self.lines.origin.reference

    def read_time(self, text: bytes) -> datetime | None:
        return klog.parse_time(text, self._get_reference(), self.zone)

    def find_by_name(self, name: str) -> HamiAttempt | None:
        """Find the only open attempt of a pod with this name, for lines without a namespace."""
        matches = [attempt for attempt in self.memory.open.values() if attempt.name == name]
        return matches[0] if len(matches) == 1 else None

    def wait(self, pod: str, attempt: HamiAttempt) -> None:
        """Keep an attempt whose event line has not come, because the pod's next attempt begins."""
        waiting = self.memory.waiting.setdefault(pod, [])
        waiting.append(attempt)
        if len(waiting) > MAX_WAITING:
            self.finish(waiting.pop(0))

    def _enforce_bounds(self, now: datetime) -> None:
        """Enforce the bounds when an attempt starts, by the log's time: events follow only from the text."""
        memory = self.memory
        unfinished = self._collect_unfinished()
        # A single attempt may be as large as the cluster; only together must they stay within bounds.
        rows = sum(len(attempt.devices) + len(attempt.nodes) for attempt in unfinished) if len(unfinished) > 1 else 0

        def is_within(oldest: datetime) -> bool:
            return len(unfinished) <= MAX_OPEN and rows <= MAX_ROWS and now - oldest <= MAX_SILENCE

        if is_within(min(attempt.last_line_at for attempt in unfinished)):
            return
        for attempt in sorted(unfinished, key=lambda attempt: attempt.last_line_at):
            if attempt.started_at == now or is_within(attempt.last_line_at):
                break
            unfinished.remove(attempt)
            rows -= len(attempt.devices) + len(attempt.nodes)
            self._drop(attempt)
            self.finish(attempt)
        for pod in [pod for pod, bind in memory.binds.items() if now - bind.started_at > MAX_SILENCE]:
            self.finish_bind(pod)

    def _collect_unfinished(self) -> list[HamiAttempt]:
        waiting = (attempt for attempts in self.memory.waiting.values() for attempt in attempts)
        return [*self.memory.open.values(), *waiting]

    def list_attempts(self, pod: str) -> list[HamiAttempt]:
        """List the pod's unfinished attempts in the order in which they started."""
        latest = self.memory.open.get(pod)
        return [*self.memory.waiting.get(pod, ()), *([latest] if latest else [])]

    def _drop(self, attempt: HamiAttempt) -> None:
        memory = self.memory
        if memory.open.get(attempt.pod) is attempt:
            del memory.open[attempt.pod]
            return
        left = [other for other in memory.waiting.pop(attempt.pod, ()) if other is not attempt]
        if left:
            memory.waiting[attempt.pod] = left

    def finish(self, attempt: HamiAttempt) -> None:
        """Emit the attempt's events and remember what a later bind needs. One without any verdict has no events."""
        if not (attempt.nodes or attempt.ended_at or attempt.devices or attempt.shortages):
            self.note_unfinished(attempt)
            return
        memory = self.memory
        events, provenance = build_events(
            attempt, memory.devices, self._index_by_node(), self.cluster, self.scheduler, memory.states
        )
        self.finished_events += events
        if attempt.ended_at and not provenance.not_reported:
            self.counts.attempts_complete += 1
        else:
            self.counts.attempts_incomplete += 1
        memory.remember(attempt)

    def note_unfinished(self, attempt: HamiAttempt) -> None:
        if self._note:
            requests, levels = build_requests(attempt), sorted(attempt.levels)
            self._note(
                UnfinishedAttempt(
                    attempt.namespace, attempt.name, attempt.uid, self.scheduler, attempt.started_at, requests, levels
                )
            )

    def pass_on(self, attempt: HamiAttempt, now: datetime) -> None:
        """Note that HAMi read no request in the pod: it judges no node then, and hands all of them back."""
        self.note_unfinished(attempt)
        self.note_fact(LoggedFact("no request read", now, pod=attempt.pod))

    def find_chosen(self, pod: str) -> str:
        """Find the node that the pod's latest finished attempt chose; empty if there is none."""
        finished = self.memory.finished.get(pod)
        return finished.chosen if finished else ""

    def finish_bind(self, pod: str) -> None:
        """Emit the pod's bind; one whose outcome the log does not give is dropped."""
        bind = self.memory.binds.pop(pod, None)
        if not bind or not bind.ended_at or not (names := split_pod_name(pod)):
            return
        attempt = self._find_bind_attempt(names, pod, bind)
        shared = build_shared_fields(attempt, self.cluster, self.scheduler)
        holder = self.find_holder(pod, bind.node) if is_contention(bind.error) else None
        self.finished_events.append(build_bind(shared, bind, bind.ended_at, holder))

    def _find_bind_attempt(self, names: tuple[str, str], pod: str, bind: Bind) -> HamiAttempt:
        """Find the attempt that chose the node: the latest finished one, or one that still waits for its event line."""
        for attempt in reversed(self.list_attempts(pod)):
            # A bind follows a choice: an attempt that started after the bind is another one.
            if attempt.chosen and attempt.started_at <= bind.started_at:
                return attempt
        finished = self.memory.finished.get(pod)
        uid, started_at = (finished.uid, finished.started_at) if finished else ("", bind.started_at)
        return HamiAttempt(*names, uid, started_at, started_at)

    def observe_settings(self) -> None:
        """Emit the scheduler's settings if lines about them were read; another kind of line is their end."""
        if observed := take_settings(self.memory.settings, self.cluster, self.scheduler):
            self.finished_events.append(observed)

    def take(self) -> list[Event]:
        """Take the events that were finished since the last call."""
        events, self.finished_events = self.finished_events, []
        self.counts.events += len(events)
        return events

    def list_unfinished(self) -> set[str]:
        """List the unfinished attempts and binds by name."""
        attempts = {f"{attempt.pod} {attempt.started_at}" for attempt in self._collect_unfinished()}
        return attempts | {f"bind {pod}" for pod in self.memory.binds}

    def close(self) -> None:
        """Finish everything as far as it is known."""
        self.observe_settings()
        memory = self.memory
        for pod in [*memory.waiting, *memory.open]:
            for attempt in self.list_attempts(pod):
                self.finish(attempt)
            memory.waiting.pop(pod, None)
            memory.open.pop(pod, None)
        for pod in list(memory.binds):
            self.finish_bind(pod)
        memory.codes.clear()
