"""Binds without a recorded end, on disk next to the spool: a scheduler that is killed leaves no bind unreported.

A line per step in `binds.jsonl`: `open` before the API server is asked, `ended` with the outcome before its event goes
to the spool, `forget` when the event is durable there. What the previous process left open is in `unresolved` when the
file is read, and `bind_recovery` looks those pods up. A bind with an `ended` line gets the same event again, with the
same id.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import orjson

from engine.fit.events.attempt import AttemptRef, Identity
from scheduler.publish.spool import files
from scheduler.publish.spool.group_commit import GroupCommit
from schemas.events import PodRef
from schemas.ids import count_microseconds

log = logging.getLogger(__name__)

FILE: Final = "binds.jsonl"
_MAX_FILE_BYTES: Final = 4 * 1024 * 1024
"""A longer file is replaced by one with the open binds only."""


@dataclass(frozen=True, slots=True)
class BindEnd:
    """The end of a bind. error: empty when the pod is bound. lock: the node's lock where another pod held it."""

    error: str
    ended_at: datetime
    lock: str = ""


@dataclass(frozen=True, slots=True)
class OpenBind:
    """One try to bind a pod. end: its outcome, where the previous process had recorded it."""

    attempt: AttemptRef
    node: str
    started_at: datetime
    end: BindEnd | None = None

    @property
    def key(self) -> str:
        return f"{self.attempt.id}/{count_microseconds(self.started_at)}"


class BindJournal:
    """folder None: nothing is kept. Where the disk fails, binding continues, and a kill may leave binds unreported."""

    def __init__(self, folder: Path | None, *, syncs: bool = True) -> None:
        """Read what the last process left open. Raises one of `FAILURES` where that fails, because it would be
        forgotten.

        syncs: `open` waits until the disk has its line.
        """
        self._path = folder / FILE if folder else None
        self._syncs, self._file, self._is_failing = syncs, -1, False
        # A duplicate: `close` and `_rewrite` may close the file while a thread still syncs it.
        self._commit = GroupCommit(
            lambda: None if self._file < 0 else files.duplicate(self._file), self._sync_here, self._fail
        )
        self._open = {bind.key: bind for bind in self._read_open()}
        self.unresolved: dict[str, OpenBind] = dict(self._open)
        """The binds that `bind_recovery` has to look up, by key."""
        self._rewrite()

    def __len__(self) -> int:
        return len(self._open)

    def _read_open(self) -> Iterator[OpenBind]:
        content = files.read_all(self._path) if self._path and files.is_there(self._path) else b""
        open_binds: dict[str, OpenBind] = {}
        for line in filter(None, content.splitlines()):
            _apply_line(open_binds, line)
        yield from open_binds.values()

    async def open(self, bind: OpenBind) -> None:
        """Record that the bind begins; returns when the line is durable."""
        self._open[bind.key] = bind
        self._append(_to_opened_line(bind))
        if self._syncs:
            # Before the API server is asked: of a bind without a line, a kill would leave no trace.
            await self._commit.flush()

    def record_end(self, bind: OpenBind, end: BindEnd) -> None:
        """Record the outcome; call it before the event goes to the spool."""
        if bind.key in self._open:
            self._open[bind.key] = replace(bind, end=end)
        # Not synced: a kill leaves it in the page cache, and after a crash of the machine the pod itself shows the
        # outcome.
        self._append(_to_ended_line(bind, end))

    def leave_unresolved(self, bind: OpenBind) -> None:
        """Note that the outcome is unknown and has to be looked up."""
        self.unresolved[bind.key] = bind

    def forget(self, bind: OpenBind) -> None:
        """Forget the bind: its event is durable, or its outcome can never be known."""
        self._open.pop(bind.key, None)
        self.unresolved.pop(bind.key, None)
        self._append({"done": bind.key})
        try:
            is_large = self._file >= 0 and files.measure(self._file) > _MAX_FILE_BYTES
        except files.FAILURES as error:
            self._fail(error)
        else:
            if is_large:
                self._rewrite()

    def _append(self, line: dict[str, Any]) -> None:
        """Write the line; behind a failure the whole file, which lacks the lines that could not be written."""
        if self._path is None:
            return
        if self._is_failing:
            self._rewrite()
            return
        try:
            if self._file < 0:
                self._open_file(self._path)
            # The line feed comes first: a line that a full disk cut off does not spoil the next one.
            files.append(self._file, b"\n" + orjson.dumps(line))
        except files.FAILURES as error:
            self._fail(error)
        else:
            self._commit.note_append()

    def _rewrite(self) -> None:
        if self._path is None:
            return
        try:
            files.replace(
                self._path, [b"\n" + orjson.dumps(line) for bind in self._open.values() for line in _to_lines(bind)]
            )
            # The descriptor still belongs to the replaced file, which no restart will read.
            self._close_file()
            self._open_file(self._path)
        except files.FAILURES as error:
            self._fail(error)
        else:
            self._is_failing = False

    def _sync_here(self) -> None:
        if self._file >= 0:
            files.sync(self._file)

    def _open_file(self, path: Path) -> None:
        self._file = files.open_file(path, files.APPEND)
        files.sync_folder(path.parent)

    def _fail(self, error: BaseException) -> None:
        if not self._is_failing:
            log.error(
                "%s can't be written: %s. Binding continues; a bind that a kill cuts off may remain unreported. "
                "Free or repair the disk.",
                self._path,
                files.explain(error),
            )
        self._is_failing = True

    def close(self) -> None:
        """Close the file, with every line that could not be written before, if that is possible now."""
        if self._is_failing:
            self._rewrite()
        self._close_file()

    def _close_file(self) -> None:
        if self._file >= 0:
            files.close(self._file)
        self._file = -1


def _to_lines(bind: OpenBind) -> Iterator[dict[str, Any]]:
    yield _to_opened_line(bind)
    if bind.end:
        yield _to_ended_line(bind, bind.end)


def _to_ended_line(bind: OpenBind, end: BindEnd) -> dict[str, Any]:
    return {"ended": bind.key, "error": end.error, "at": end.ended_at.isoformat(), "lock": end.lock}


def _to_opened_line(bind: OpenBind) -> dict[str, Any]:
    attempt = bind.attempt
    return {
        "open": bind.key,
        "attempt": attempt.id,
        "namespace": attempt.pod.namespace,
        "pod": attempt.pod.name,
        "uid": attempt.pod.uid,
        "cluster": attempt.identity.cluster,
        "scheduler": attempt.identity.scheduler,
        "started_at": attempt.started_at.isoformat(),
        "node": bind.node,
        "bind_started_at": bind.started_at.isoformat(),
    }


def _apply_line(open_binds: dict[str, OpenBind], line: bytes) -> None:
    """Apply one line of the file. A line that can't be read was cut off by a kill, before anything relied on it."""
    try:
        step = orjson.loads(line)
        if "done" in step:
            open_binds.pop(step["done"], None)
        elif "ended" in step:
            bind_before = open_binds[step["ended"]]
            end = BindEnd(step["error"], datetime.fromisoformat(step["at"]), step.get("lock", ""))
            open_binds[bind_before.key] = OpenBind(bind_before.attempt, bind_before.node, bind_before.started_at, end)
        else:
            bind = _parse_open_bind(step)
            open_binds[bind.key] = bind
    except (ValueError, KeyError, TypeError, AttributeError):
        log.warning("a line of %s can't be read: %.80r", FILE, line)


def _parse_open_bind(line: dict[str, Any]) -> OpenBind:
    pod = PodRef(namespace=line["namespace"], name=line["pod"], uid=line["uid"])
    identity = Identity(line["cluster"], line["scheduler"])
    attempt = AttemptRef(line["attempt"], pod, identity, datetime.fromisoformat(line["started_at"]))
    return OpenBind(attempt, line["node"], datetime.fromisoformat(line["bind_started_at"]))
