"""Three small files next to a spool's segments: the lock of the folder, the position up to which Kafka has the records,
and the epoch of the last process."""

import errno
import json
import logging
from pathlib import Path
from typing import Final

from scheduler.publish.spool import files

log = logging.getLogger(__name__)

Position = tuple[int, int]
"""(segment number, byte offset in it)"""

_CHECKPOINT: Final = "checkpoint.json"
_EPOCH: Final = "epoch"
_LENGTH: Final = 64
"""Longer than any two positions of 19 digits with their names."""


class SpoolInUseError(Exception):
    """Another scheduler uses the folder; the text names it and the remedy."""


def take_lock(folder: Path) -> int | None:
    """Take the folder's lock; return its descriptor, held until it is closed, which the kernel does however we end.

    None where the disk is too full for the lock's file: scheduling continues without. Raises `SpoolInUseError`, or
    `OSError` where the folder can't be used at all.
    """
    try:
        files.make_folder(folder)
        handle = files.open_file(folder / "lock", files.APPEND)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return None
        raise
    try:
        is_ours = files.try_lock(handle)
    except files.FAILURES:
        files.close(handle)
        raise
    if is_ours:
        return handle
    files.close(handle)
    raise SpoolInUseError(f"the spool {folder} is in use by another scheduler, give another folder")


def read_checkpoint(folder: Path) -> Position:
    """Read the position up to which Kafka has the records; the very start where it is unknown, so that none is left
    out.

    Raises one of `FAILURES` where a checkpoint that can't be read can't be removed either.
    """
    path = folder / _CHECKPOINT
    try:
        position = json.loads(files.read_all(path))
        return max(int(position["segment"]), 0), max(int(position["offset"]), 0)
    except FileNotFoundError:
        return (0, 0)
    except (*files.FAILURES, ValueError, KeyError, TypeError) as error:
        log.warning(
            "spool %s: the checkpoint can't be read (%s); all records in the folder are sent again", folder, error
        )
        # Files are numbered from the start again: if the next start could read it, it would take them for sent.
        files.remove(path)
        return (0, 0)


def write_checkpoint(folder: Path, sent: Position) -> None:
    """Write the checkpoint. Where that fails, a restart sends records again, with the same ids."""
    text = json.dumps({"segment": sent[0], "offset": sent[1]}).ljust(_LENGTH).encode()
    path = folder / _CHECKPOINT
    try:
        # In place: a rename has ext4 write the draft to the disk at once, which cost 1.5 ms of every acknowledgement.
        # Of one length, inside one sector, a killed process or a crash leaves the old text or the new one, and anything
        # else is not JSON: then everything is sent again. Not synced: an older checkpoint sends more records again.
        with files.opened(path, files.WRITE) as file:
            try:
                files.write(file, [text], 0)
                files.truncate(file, _LENGTH)
            except files.FAILURES:
                # A part of it over the old text might be a position that Kafka does not have yet.
                files.discard(path)
                raise
    except files.FAILURES as error:
        log.debug("spool %s: checkpoint not written: %s", folder, error)


def advance_epoch(folder: Path, now: int) -> int:
    """Return the epoch of this process, in microseconds since 1970: ``now``, but greater than that of the last process.

    The clock may have been ahead when that one started. Where the file can't be read or written it is ``now``.
    """
    path = folder / _EPOCH
    try:
        last = int(files.read_all(path))
    except FileNotFoundError:
        last = 0
    except (*files.FAILURES, ValueError) as error:
        log.warning("spool %s: the last epoch can't be read (%s); this one is the present time", folder, error)
        last = 0
    epoch = max(now, last + 1)
    try:
        files.replace(path, [str(epoch).encode()])
    except files.FAILURES as error:
        log.warning("spool %s: the epoch can't be written: %s", folder, error)
    return epoch
