"""H6, M6: whichever system call of the spool fails, once or in a run, what was accepted is handed out afterwards."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from scheduler.publish.spool.spool import Spool, SpoolLimits
from tests.support.builders.spool_entries import Clock, a_verdict
from tests.support.stress import IS_STRESS

SMALL = SpoolLimits(segment_bytes=1000)
CALLS = ("open", "pwritev", "pread", "fdatasync", "fsync", "dup", "truncate", "unlink")
ERRORS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ENOSPC)
ROUNDS = 12


class Faults:
    """Fails the calls from `first` on, `count` of them."""

    def __init__(self, first: int, count: int, error: int) -> None:
        self.first, self.count, self.error, self.seen = first, count, error, 0

    def wrap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def failing(*words: Any, **named: Any) -> Any:
            self.seen += 1
            if self.first <= self.seen < self.first + self.count:
                raise OSError(self.error, os.strerror(self.error))
            return call(*words, **named)

        return failing


@contextmanager
def injected(faults: Faults) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, faults.wrap(getattr(os, name)))
        # Path.open reaches the C function, not `os.open`.
        patch.setattr(Path, "open", faults.wrap(Path.open))
        yield


async def taken(spool: Spool, accepted: list[str], sent: list[str], name: str) -> None:
    spool.append([a_verdict(name)])
    await spool.flush()
    accepted.append(name)
    if len(accepted) % 3 == 0 and (batch := spool.next_batch(300)):
        spool.acknowledge(batch)
        sent += [entry.ce_id.removesuffix("/concluded") for entry in batch.entries]


async def life(folder: Path, faults: Faults, *, restarts: bool) -> tuple[list[str], list[str]]:
    """What was accepted and what was sent, after all faults are over."""
    clock, accepted, sent = Clock(), list[str](), list[str]()
    spool = Spool(folder, SMALL, clock, monotonic=lambda: clock.now.timestamp())
    with injected(faults):
        for number in range(ROUNDS):
            clock.advance(2)
            await taken(spool, accepted, sent, str(number))
    clock.advance(2)
    spool.retry_disk()
    spool.rewind()
    if restarts:
        spool.close()
        spool = Spool(folder, SMALL, clock)
    while batch := spool.next_batch(300):
        spool.acknowledge(batch)
        sent += [entry.ce_id.removesuffix("/concluded") for entry in batch.entries]
    spool.close()
    return accepted, sent


@pytest.mark.stress
@pytest.mark.parametrize("error", ERRORS if IS_STRESS else ERRORS[:1], ids=errno.errorcode.get)
@pytest.mark.parametrize("count", [1, 3, 10_000])
@pytest.mark.parametrize("restarts", [False, True])
async def test_h6_whichever_call_fails_what_was_accepted_is_sent(
    tmp_path: Path, error: int, count: int, *, restarts: bool
) -> None:
    counting = Faults(10**9, 0, error)
    await life(tmp_path / "counted", counting, restarts=restarts)
    assert counting.seen > 50
    for first in range(1, counting.seen + 1):
        accepted, sent = await life(tmp_path / str(first), Faults(first, count, error), restarts=restarts)
        assert len(accepted) == ROUNDS
        # Each is there, in order at its last sending; a second time is allowed.
        assert sorted(set(sent), key=int) == accepted, f"call {first} of {counting.seen}"
        last = [name for place, name in enumerate(sent) if name not in sent[place + 1 :]]
        assert last == accepted, f"call {first} of {counting.seen}"


def test_m6_a_clock_that_is_set_back_does_not_keep_a_mended_disk_from_being_tried(tmp_path: Path) -> None:
    clock, elapsed = Clock(), [0.0]
    spool = Spool(tmp_path, SMALL, clock, monotonic=lambda: elapsed[0])
    with injected(Faults(1, 10**6, errno.EIO)):
        spool.append([a_verdict("during")])
    assert spool.problem
    clock.advance(-3600)
    elapsed[0] += 2
    spool.append([a_verdict("after")])
    assert spool.problem == ""
    spool.close()
