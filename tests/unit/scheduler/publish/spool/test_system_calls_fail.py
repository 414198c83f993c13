"""H6, M6: whichever system call of the spool fails, once or in a run, what was accepted is handed out afterwards.

As SQLite tests itself: the calls of a run are counted, then call k fails, for each k; once, three times, and to the end
of the run.
"""

import shutil
from itertools import product
from pathlib import Path

import pytest

from scheduler.publish.spool.files import FAILURES as RAISED
from scheduler.publish.spool.spool import Spool, SpoolLimits
from tests.support.builders.spool_entries import Clock, a_verdict, build_detail
from tests.support.harness.failing_calls import FAILURES, TO_THE_END, Faults, without_syncs
from tests.support.stress import IS_STRESS

SMALL = SpoolLimits(segment_bytes=1000, max_bytes=20_000)
BEFORE, DURING = 4, 12


class Life:
    """Accepted and sent entries, over the lives of several schedulers on one folder."""

    def __init__(self, folder: Path, *, sends_all: bool) -> None:
        """Begin a life; sends_all: Kafka has everything when faults begin, and no file is left but the checkpoint."""
        self.folder, self.clock = folder, Clock()
        self.accepted, self.sent = list[str](), list[str]()
        self._sends_all = sends_all

    def open(self) -> Spool:
        return Spool(self.folder, SMALL, self.clock, monotonic=lambda: self.clock.now.timestamp())

    async def run(self, faults: Faults, *, is_killed: bool) -> None:
        spool = self.open()
        for _ in range(BEFORE):
            await self._accept(spool)
        self._send(spool, 10**6 if self._sends_all else 300)
        spool.close()
        with faults.injected():
            try:
                spool = self.open()
            except RAISED:
                # It does not start, and says why; the next one does.
                left = None
            else:
                for number in range(DURING):
                    await self._accept(spool)
                    if number % 4 == 3:
                        self._send(spool, 300)
                spool.measure_oldest_age()
                left = spool
        spool = left or self.open()
        self.clock.advance(2)
        spool.retry_disk()
        assert spool.problem == ""
        spool.rewind()
        if is_killed:
            # The folder as a kill leaves it.
            self.folder = shutil.copytree(self.folder, self.folder.with_suffix(".killed"))
        spool.close()
        spool = self.open()
        while self._send(spool, 300):
            pass
        assert spool.reading.text == ""
        assert spool.dropped_verdicts == 0
        spool.close()

    async def _accept(self, spool: Spool) -> None:
        self.clock.advance(2)
        name = str(len(self.accepted))
        spool.append([a_verdict(name), build_detail(f"pod{name}"), build_detail(f"pod{name}", part=1)])
        await spool.flush()
        self.accepted.append(name)

    def _send(self, spool: Spool, max_bytes: int) -> bool:
        batch = spool.take_batch(max_bytes)
        if batch:
            spool.acknowledge(batch)
            self.sent += [e.ce_id.removesuffix("/concluded") for e in batch.entries if e.ce_id.endswith("/concluded")]
        return batch is not None


COUNTS = {"once": 1, "three times": 3, "to the end": TO_THE_END}
WAYS = list(product([False, True], [False, True], COUNTS))
"""Ways to fail: all was sent before, the scheduler is killed, and how often the call fails."""


@pytest.mark.stress
@pytest.mark.parametrize("failure", FAILURES)
async def test_h6_whichever_call_fails_what_was_accepted_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    without_syncs(monkeypatch)
    counted = Faults(failure)
    await Life(tmp_path / "counted", sends_all=False).run(counted, is_killed=False)
    calls = counted.seen.total()
    assert calls > 200
    for number, (sends_all, is_killed, count) in enumerate(WAYS):
        # In the suite each way has calls of its own, far from each other.
        for first in range(1, calls + 1) if IS_STRESS else range(1 + 31 * number, calls + 1, 31 * len(WAYS)):
            life = Life(tmp_path / f"{number}-{first}", sends_all=sends_all)
            await life.run(Faults(failure, first, COUNTS[count]), is_killed=is_killed)
            # Each is there, in order at its last sending; a second time is allowed.
            last = [name for index, name in enumerate(life.sent) if name not in life.sent[index + 1 :]]
            where = f"call {first} of {calls} fails {count}, killed: {is_killed}, all sent: {sends_all}"
            assert last == life.accepted, where
            assert len(life.accepted) in (BEFORE, BEFORE + DURING), where


def test_m6_a_clock_that_is_set_back_does_not_keep_a_mended_disk_from_being_tried(tmp_path: Path) -> None:
    clock, elapsed = Clock(), [0.0]
    spool = Spool(tmp_path, SMALL, clock, monotonic=lambda: elapsed[0])
    with Faults("EIO", 1, TO_THE_END).injected():
        spool.append([a_verdict("during")])
    assert spool.problem
    clock.advance(-3600)
    elapsed[0] += 2
    spool.append([a_verdict("after")])
    assert spool.problem == ""
    spool.close()
