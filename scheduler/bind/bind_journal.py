"""Binds whose end is not told yet, on disk beside the spool, so that a scheduler that is killed leaves none untold.

A line per step in ``binds.jsonl``: ``open`` before the API server is asked, ``told`` with what the record will say
before it goes to the spool, ``done`` when it is durable there. What an earlier life left open is in `unsettled` when
the file is read: `settle_binds` looks at those pods. One that was `told` is told again word for word, with its id.
"""

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import orjson

from scheduler.publish.attempt import AttemptRef
from scheduler.publish.spool.group_commit import GroupCommit
from scheduler.publish.spool.segments import sync_folder
from schemas.events import PodRef
from schemas.ids import microseconds

log = logging.getLogger(__name__)

FILE: Final = "binds.jsonl"
_LONG_BYTES: Final = 4 * 1024 * 1024
"""A longer file is written anew with what is open."""


@dataclass(frozen=True, slots=True)
class BindEnd:
    """How a bind ended. error: empty when the pod is bound."""

    error: str
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class OpenBind:
    """One try to bind a pod. end: where it was about to be told."""

    attempt: AttemptRef
    node: str
    started_at: datetime
    end: BindEnd | None = None

    @property
    def key(self) -> str:
        return f"{self.attempt.id}/{microseconds(self.started_at)}"


class BindJournal:
    """`folder` None: nothing is kept. Where the disk fails, binding goes on, and a kill may leave some untold."""

    def __init__(self, folder: Path | None, *, syncs: bool = True) -> None:
        """syncs: a bind waits until the disk has its line. Never raises for the disk."""
        self._path = folder / FILE if folder else None
        self._syncs, self._file, self._is_failing = syncs, -1, False
        self._sync = GroupCommit(lambda: None if self._file < 0 else os.dup(self._file), self._fail)
        self._open = {bind.key: bind for bind in self._left()}
        self.unresolved: dict[str, OpenBind] = dict(self._open)
        """By key: who tries them next is `settle_binds`."""
        self._write_anew()

    def __len__(self) -> int:
        return len(self._open)

    def _left(self) -> Iterator[OpenBind]:
        try:
            lines = self._path.read_bytes().splitlines() if self._path else []
        except FileNotFoundError:
            return
        except OSError as error:
            self._fail(error)
            return
        found: dict[str, OpenBind] = {}
        for line in filter(None, lines):
            _take(found, line)
        yield from found.values()

    async def open(self, bind: OpenBind) -> None:
        """Return when a next life would know of it."""
        self._open[bind.key] = bind
        self._append(_opened(bind))
        if self._syncs:
            await self._sync.flush()

    def record_end(self, bind: OpenBind, end: BindEnd) -> None:
        """The record goes to the spool next."""
        self._append(_told(bind, end))

    def leave_unresolved(self, bind: OpenBind) -> None:
        """Its end is not known: it has to be looked up."""
        self.unresolved[bind.key] = bind

    def done(self, bind: OpenBind) -> None:
        """The record is durable, or none will ever be told."""
        self._open.pop(bind.key, None)
        self.unresolved.pop(bind.key, None)
        self._append({"done": bind.key})
        if self._file >= 0 and os.fstat(self._file).st_size > _LONG_BYTES:
            self._write_anew()

    def _append(self, said: dict[str, Any]) -> None:
        if self._path is None:
            return
        try:
            if self._file < 0:
                self._open_file(self._path)
            # The line's end stands in front: what a full disk has cut off does not spoil the next one.
            os.write(self._file, b"\n" + orjson.dumps(said))
        except OSError as error:
            self._fail(error)
        else:
            self._is_failing = False
            self._sync.appended()

    def _write_anew(self) -> None:
        if self._path is None:
            return
        draft = self._path.with_suffix(".draft")
        try:
            with draft.open("wb") as file:
                file.writelines(b"\n" + orjson.dumps(said) for bind in self._open.values() for said in _lines(bind))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._path)
            self.close()
            self._open_file(self._path)
        except OSError as error:
            self._fail(error)

    def _open_file(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        sync_folder(path.parent)

    def _fail(self, error: OSError) -> None:
        if not self._is_failing:
            log.error(
                "%s can't be written: %s. Binding goes on; one that is cut off by a kill may stay untold. "
                "Free or mend the disk.",
                self._path,
                error.strerror or error,
            )
        self._is_failing = True

    def close(self) -> None:
        """Let the file go."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


def _lines(bind: OpenBind) -> Iterator[dict[str, Any]]:
    yield _opened(bind)
    if bind.end:
        yield _told(bind, bind.end)


def _told(bind: OpenBind, end: BindEnd) -> dict[str, Any]:
    return {"told": bind.key, "error": end.error, "at": end.ended_at.isoformat()}


def _opened(bind: OpenBind) -> dict[str, Any]:
    attempt = bind.attempt
    return {
        "open": bind.key,
        "attempt": attempt.id,
        "namespace": attempt.pod.namespace,
        "pod": attempt.pod.name,
        "uid": attempt.pod.uid,
        "scheduler": attempt.scheduler,
        "started_at": attempt.started_at.isoformat(),
        "node": bind.node,
        "bind_started_at": bind.started_at.isoformat(),
    }


def _take(found: dict[str, OpenBind], line: bytes) -> None:
    """One line of the file. What can't be read was cut off while it was written: nobody acted on it."""
    try:
        said = orjson.loads(line)
        if "done" in said:
            found.pop(said["done"], None)
        elif "told" in said:
            known = found[said["told"]]
            end = BindEnd(said["error"], datetime.fromisoformat(said["at"]))
            found[known.key] = OpenBind(known.attempt, known.node, known.started_at, end)
        else:
            bind = _read(said)
            found[bind.key] = bind
    except (ValueError, KeyError, TypeError, AttributeError):
        log.warning("a line of %s can't be read: %.80r", FILE, line)


def _read(said: dict[str, Any]) -> OpenBind:
    pod = PodRef(namespace=said["namespace"], name=said["pod"], uid=said["uid"])
    attempt = AttemptRef(said["attempt"], pod, said["scheduler"], datetime.fromisoformat(said["started_at"]))
    return OpenBind(attempt, said["node"], datetime.fromisoformat(said["bind_started_at"]))
