"""H6: whichever system call of the journal of binds fails, the next life knows each bind that has no recorded end."""

import shutil
from itertools import count as counting_up
from pathlib import Path

import pytest

from scheduler.bind import bind_journal
from scheduler.bind.bind_journal import BindEnd, BindJournal, OpenBind
from scheduler.publish.spool.files import FAILURES as RAISED
from tests.support.builders.binds import LATER, a_bind
from tests.support.harness.failing_calls import FAILURES, TO_THE_END, Faults, without_syncs
from tests.support.stress import IS_STRESS

COUNTS = (1, 3, TO_THE_END)


class Life:
    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder, self._numbers = folder, counting_up()
        self.unended: dict[str, OpenBind] = {}

    async def run(self, faults: Faults) -> None:
        binds = BindJournal(self.folder)
        await self._make_binds(binds)
        binds.close()
        with faults.injected():
            try:
                binds = BindJournal(self.folder)
            except RAISED:
                # It does not start, and says why; the next one does.
                left = None
            else:
                left = binds
                for _ in range(3):
                    await self._make_binds(binds)
        binds = left or BindJournal(self.folder)
        # The next bind is written with all that could not be.
        await self._make_binds(binds)
        # The folder as a kill leaves it.
        killed = shutil.copytree(self.folder, self.folder.with_suffix(".killed"))
        binds.close()
        for folder in (killed, self.folder):
            binds = BindJournal(folder)
            assert binds.unresolved == self.unended
            binds.close()

    async def _make_binds(self, binds: BindJournal) -> None:
        """Make three binds: one is cut off, one before its event is durable, and one ends."""
        for steps in range(3):
            bind, end = a_bind(f"pod{next(self._numbers)}"), BindEnd("refused", LATER)
            await binds.open(bind)
            self.unended[bind.key] = bind
            if steps:
                binds.record_end(bind, end)
                self.unended[bind.key] = OpenBind(bind.attempt, bind.node, bind.started_at, end)
            if steps == 2:
                binds.forget(bind)
                del self.unended[bind.key]


@pytest.mark.stress
@pytest.mark.parametrize("failure", FAILURES)
async def test_h6_whichever_call_fails_the_next_life_knows_the_binds_without_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    without_syncs(monkeypatch)
    monkeypatch.setattr(bind_journal, "_MAX_FILE_BYTES", 1500)
    counted = Faults(failure)
    await Life(tmp_path / "counted").run(counted)
    calls = counted.seen.total()
    assert calls > 40
    assert counted.seen["rename"] > 1
    for number, count in enumerate(COUNTS):
        for first in range(1, calls + 1) if IS_STRESS else range(1 + 3 * number, calls + 1, 3 * len(COUNTS)):
            await Life(tmp_path / f"{first}-{count}").run(Faults(failure, first, count))
