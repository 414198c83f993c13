"""Binds that a killed scheduler remembers in its next life, wherever it was killed."""

import asyncio
import errno
import os
from datetime import timedelta
from pathlib import Path

import pytest

from engine.hami.annotations import BIND_TIME
from scheduler.bind.bind_journal import FILE, BindEnd, BindJournal, OpenBind
from scheduler.bind.bind_recovery import IN_FLIGHT, NOT_BOUND, derive_end
from scheduler.bind.binder import format_bind_time
from scheduler.publish.spool import files
from schemas.json_types import Json
from tests.support.builders.binds import BEGAN, LATER, a_bind
from tests.support.builders.kube_objects import STARTED
from tests.support.harness.failing_calls import TO_THE_END, Faults


def a_bound_pod(node: str = "node1", when: str = format_bind_time(BEGAN), **status: object) -> Json:
    metadata = {"name": "pod1", "uid": "uid-pod1", "annotations": {BIND_TIME: when}}
    return {"metadata": metadata, "spec": {"nodeName": node} if node else {}, "status": status}


def read_unresolved(lines: bytes, folder: Path) -> dict[str, OpenBind]:
    (folder / FILE).write_bytes(lines)
    binds = BindJournal(folder)
    binds.close()
    return binds.unresolved


def test_a_life_that_is_cut_anywhere_leaves_the_bind_open_until_its_end_is_durable(tmp_path: Path) -> None:
    bind, end = a_bind(), BindEnd("refused", LATER)
    binds = BindJournal(tmp_path)
    asyncio.run(binds.open(bind))
    opened = (tmp_path / FILE).stat().st_size
    binds.record_end(bind, end)
    written = (tmp_path / FILE).stat().st_size
    binds.forget(bind)
    journal = (tmp_path / FILE).read_bytes()
    binds.close()
    for cut in range(len(journal) + 1):
        if cut < opened:
            expected = {}
        elif cut < written:
            expected = {bind.key: bind}
        elif cut < len(journal):
            expected = {bind.key: OpenBind(bind.attempt, bind.node, bind.started_at, end)}
        else:
            expected = {}
        assert read_unresolved(journal[:cut], tmp_path) == expected, cut


def test_a_line_that_was_cut_off_by_a_full_disk_is_written_again_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binds, write = BindJournal(tmp_path, syncs=False), os.write
    with monkeypatch.context() as context:
        context.setattr(os, "write", lambda file, data: write(file, data[:20]))
        asyncio.run(binds.open(a_bind("cut-off")))
    assert read_unresolved((tmp_path / FILE).read_bytes(), tmp_path) == {}
    asyncio.run(binds.open(a_bind()))
    binds.close()
    assert list(BindJournal(tmp_path).unresolved.values()) == [a_bind("cut-off"), a_bind()]


def test_h6_a_journal_that_can_not_be_read_refuses_the_start_and_forgets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(BindJournal(tmp_path).open(a_bind()))

    def fail(_: Path) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as context:
        context.setattr(files, "read_all", fail)
        with pytest.raises(OSError, match="Too many open files"):
            BindJournal(tmp_path)
    assert list(BindJournal(tmp_path).unresolved.values()) == [a_bind()]


def test_what_is_open_remains_open_over_many_restarts(tmp_path: Path) -> None:
    asyncio.run(BindJournal(tmp_path).open(a_bind()))
    for _ in range(3):
        binds = BindJournal(tmp_path)
        assert list(binds.unresolved.values()) == [a_bind()]
        binds.close()
    binds = BindJournal(tmp_path)
    binds.forget(a_bind())
    assert BindJournal(tmp_path).unresolved == {}


def test_garbage_between_lines_costs_nothing_else(tmp_path: Path) -> None:
    asyncio.run(BindJournal(tmp_path).open(a_bind()))
    line = (tmp_path / FILE).read_bytes()
    for garbage in (b"\x00\xff", b"7", b"[]", b'{"open": 1}', b'{"ended": "nothing"}', b'{"done": []}', b"null"):
        assert list(read_unresolved(garbage + line + b"\n" + garbage, tmp_path).values()) == [a_bind()]


def test_the_file_does_not_grow_with_the_binds_that_are_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.bind.bind_journal._MAX_FILE_BYTES", 10_000)
    binds = BindJournal(tmp_path, syncs=False)
    asyncio.run(binds.open(a_bind("stays")))
    for number in range(200):
        bind = a_bind(f"pod{number}")
        asyncio.run(binds.open(bind))
        binds.record_end(bind, BindEnd("", LATER))
        binds.forget(bind)
    assert (tmp_path / FILE).stat().st_size < 11_000
    binds.close()
    assert list(BindJournal(tmp_path).unresolved.values()) == [a_bind("stays")]


def test_a_disk_that_is_full_is_reported_once_and_binding_continues(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    binds = BindJournal(tmp_path)
    with Faults("ENOSPC", 1, TO_THE_END).injected():
        for name in ("pod1", "pod2"):
            asyncio.run(binds.open(a_bind(name)))
            binds.forget(a_bind(name))
    assert [record.message for record in caplog.records if "No space left" in record.message] != []
    assert len(caplog.records) == 1
    binds.close()


def test_a_bind_that_took_place_ended_when_the_cluster_says_so_but_not_before_it_began() -> None:
    for transition_at, expected in (
        ("2026-11-21T03:00:02Z", STARTED.replace(second=2, microsecond=0)),
        ("2026-11-21T03:00:00Z", BEGAN),
    ):
        pod = a_bound_pod(conditions=[{"type": "PodScheduled", "lastTransitionTime": transition_at}])
        assert derive_end(a_bind(), pod, LATER) == BindEnd("", expected)
    assert derive_end(a_bind(), a_bound_pod(), LATER) == BindEnd("", BEGAN)


def test_a_pod_that_another_bound_was_not_bound_by_us() -> None:
    elsewhere, later = a_bound_pod("node2"), a_bound_pod(when=format_bind_time(BEGAN + timedelta(seconds=3)))
    assert derive_end(a_bind(), elsewhere, LATER) == derive_end(a_bind(), later, LATER) == BindEnd(NOT_BOUND, BEGAN)


def test_a_pod_that_is_not_bound_may_still_be_for_a_minute() -> None:
    assert derive_end(a_bind(), a_bound_pod(node=""), BEGAN + IN_FLIGHT) is None
    assert derive_end(a_bind(), a_bound_pod(node=""), BEGAN + IN_FLIGHT * 1.01) == BindEnd(NOT_BOUND, BEGAN)
