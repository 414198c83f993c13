"""The position in a log, on disk: written to a second file and renamed, so that the file is never incomplete.

A checkpoint is the position in the log and the state of the reader there. It is written after Kafka has acknowledged
all events before that position, so after a kill the last of them are published once more, with the same ids.
"""

import base64
import fcntl
import logging
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from ingest.errors import ReadingError
from ingest.lines.blocks import LogPosition
from ingest.sources.follow import Reached
from runtime.files.state_files import open_private, replace_private

VERSION: Final = 1

log = logging.getLogger(__name__)


class _Saved(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    version: int
    reader: str
    log: str
    offset: int
    number: int
    beginning: str
    since: str = ""
    memory: str


@dataclass(frozen=True, slots=True)
class CheckpointState:
    """The content of a checkpoint."""

    reached: Reached = field(default_factory=Reached)
    since: str = ""
    """For a log that is read by time and not by position: the time of its last line, as the API server writes it."""
    memory: bytes = b""


class CheckpointError(ReadingError):
    """The checkpoint can't be used; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """``log`` names the log that is read: the checkpoint of another log is refused."""

    path: Path
    reader: str
    log: str

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock it until the block or the process ends: two processes would overwrite each other's positions.

        Raises ``CheckpointError`` where another process has it, or where no file can be written next to it.
        """
        beside = self.path.with_name(self.path.name + ".lock")
        try:
            # Not emptied: the name is known to everybody, who may have laid another file there.
            file = open_private(beside, "ab")
        except OSError as error:
            raise CheckpointError(f"{beside}: {error.strerror}") from None
        with file:
            try:
                # The kernel releases the lock when the process ends, however it ends.
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise CheckpointError(f"{self.path} is in use by another process: stop it, or name another") from None
            yield

    def load(self) -> CheckpointState:
        """Load the position to continue from: the start if there is no checkpoint yet, or an empty file.

        Raises ``CheckpointError``.
        """
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return CheckpointState()
        except OSError as error:
            raise CheckpointError(f"{self.path}: {error.strerror}") from None
        # What some file systems leave of a renamed file when the machine goes down: a service that ended here would end
        # at every start. From its beginning the log gives the same ids again.
        if not text.strip(b"\0\n "):
            log.warning("%s is empty: %s is read from its beginning", self.path, self.log)
            return CheckpointState()
        try:
            saved = _Saved.model_validate_json(text)
        except ValidationError:
            raise CheckpointError(f"{self.path} is not a checkpoint: delete it to read from the start") from None
        if (saved.version, saved.reader, saved.log) != (VERSION, self.reader, self.log):
            raise CheckpointError(
                f"{self.path} is about {saved.log} read as {saved.reader}: name another file for {self.log}"
            )
        reached = Reached(LogPosition(saved.offset, saved.number), saved.beginning)
        return CheckpointState(reached, saved.since, _unpack(base64.b64decode(saved.memory)))

    def save(self, state: CheckpointState) -> None:
        """Save the position and the state. Raises ``CheckpointError`` if that fails."""
        position = state.reached.position
        saved = _Saved(
            version=VERSION,
            reader=self.reader,
            log=self.log,
            offset=position.offset,
            number=position.number,
            beginning=state.reached.beginning,
            since=state.since,
            # Of 1,000 nodes and 20 pods KAI's reader remembers 90 MB, which say the same of most nodes.
            memory=base64.b64encode(zlib.compress(state.memory, 1)).decode(),
        )
        try:
            replace_private(self.path, saved.model_dump_json().encode())
        except OSError as error:
            raise CheckpointError(f"{self.path}: {error.strerror}") from None


def _unpack(memory: bytes) -> bytes:
    try:
        return zlib.decompress(memory)
    except zlib.error:
        # Earlier versions wrote it as it is.
        return memory
