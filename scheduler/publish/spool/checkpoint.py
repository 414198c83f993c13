"""The two small files beside a spool's segments: who holds the folder, and how far Kafka has it."""

import errno
import fcntl
import json
import logging
from pathlib import Path
from typing import IO

log = logging.getLogger(__name__)

Position = tuple[int, int]
"""(segment number, byte offset in it)"""


class SpoolInUseError(Exception):
    """Another process holds the folder; the text says so."""


def locked(folder: Path) -> IO[str] | None:
    """The folder's lock, held until it is closed; the kernel lets go of it when the process ends in any way.

    None where no disk is left for a lock: scheduling goes on without. Raises `SpoolInUseError`, or `OSError` where the
    folder can't be used at all.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = (folder / "lock").open("a")
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return None
        raise
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.close()
        raise SpoolInUseError(f"the spool {folder} is in use by another scheduler, give another folder") from None
    return handle


def read_checkpoint(folder: Path) -> Position:
    """Up to where Kafka has it; the very start where that is not known, so that nothing is left out."""
    try:
        said = json.loads((folder / "checkpoint.json").read_text())
        return max(int(said["segment"]), 0), max(int(said["offset"]), 0)
    except FileNotFoundError:
        return (0, 0)
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("spool %s: checkpoint can't be read (%s); what is there is sent again", folder, error)
        return (0, 0)


def write_checkpoint(folder: Path, sent: Position) -> None:
    """Never half written. Where it can't be written, some records are sent again after a restart, with the same ids."""
    draft = folder / "checkpoint.draft"
    try:
        draft.write_text(json.dumps({"segment": sent[0], "offset": sent[1]}))
        draft.replace(folder / "checkpoint.json")
    except OSError as error:
        log.debug("spool %s: checkpoint not written: %s", folder, error)
