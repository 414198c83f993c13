"""The two small files beside a spool's segments: the lock of the folder, and how far Kafka has the records."""

import errno
import fcntl
import json
import logging
import os
from pathlib import Path
from typing import IO, Final

from process.private_files import open_private

log = logging.getLogger(__name__)

Position = tuple[int, int]
"""(segment number, byte offset in it)"""

_CHECKPOINT: Final = "checkpoint.json"
_LENGTH: Final = 64
"""Longer than any two positions of 19 digits with their names."""


class SpoolInUseError(Exception):
    """Another scheduler uses the folder; the text names it and the remedy."""


def locked(folder: Path) -> IO[bytes] | None:
    """The folder's lock, held until it is closed; the kernel releases it however the process ends.

    None where the disk is too full for the lock's file: scheduling continues without. Raises `SpoolInUseError`, or
    `OSError` where the folder can't be used at all.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = open_private(folder / "lock", "ab")
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
    """The position up to which Kafka has the records; the very start where it is unknown, so that none is left out."""
    try:
        position = json.loads((folder / _CHECKPOINT).read_text())
        return max(int(position["segment"]), 0), max(int(position["offset"]), 0)
    except FileNotFoundError:
        return (0, 0)
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning(
            "spool %s: the checkpoint can't be read (%s); all records in the folder are sent again", folder, error
        )
        return (0, 0)


def write_checkpoint(folder: Path, sent: Position) -> None:
    """Write the checkpoint. Where that fails, a restart sends records again, with the same ids."""
    text = json.dumps({"segment": sent[0], "offset": sent[1]})
    try:
        # In place: a rename has ext4 write the draft to the disk at once, which cost 1.5 ms of every acknowledgement.
        # Of one length, inside one sector, a killed process or a crash leaves the old text or the new one, and anything
        # else is not JSON: then everything is sent again. Not synced: an older checkpoint sends more records again.
        handle = os.open(folder / _CHECKPOINT, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb", buffering=0) as file:
            file.write(text.ljust(_LENGTH).encode())
            file.truncate(_LENGTH)
    except OSError as error:
        log.debug("spool %s: checkpoint not written: %s", folder, error)
