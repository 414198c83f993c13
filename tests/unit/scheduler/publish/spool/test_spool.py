"""Way of answered attempts to Kafka: across restarts, damage, a full spool and a failing disk."""

import asyncio
import errno
import logging
import os
import shutil
from datetime import timedelta
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from scheduler.publish.spool import files
from scheduler.publish.spool.frames import Entry, EntryKind
from scheduler.publish.spool.spool import Spool, SpoolBatch, SpoolInUseError, SpoolLimits
from schemas.codec.records import decode
from schemas.events import DetailDropped
from schemas.ids import count_microseconds
from tests.support.builders.spool_entries import NOW, Clock, a_verdict, build_detail
from tests.support.stress import count_examples

SMALL = SpoolLimits(segment_bytes=1000)


def list_ids(entries: list[Entry]) -> list[str]:
    return [entry.ce_id.removesuffix("/concluded") for entry in entries]


def take_all(spool: Spool) -> list[Entry]:
    """Take everything that the spool still hands out, acknowledged as it comes."""
    entries: list[Entry] = []
    while batch := spool.take_batch(300):
        entries += batch.entries
        spool.acknowledge(batch)
    return entries


def test_entries_come_out_in_the_order_they_went_in(tmp_path: Path) -> None:
    spool = Spool(tmp_path, SMALL)
    for number in range(100):
        spool.append([a_verdict(f"{number}a"), a_verdict(f"{number}b")])
    assert list_ids(take_all(spool)) == [f"{number}{letter}" for number in range(100) for letter in "ab"]
    assert spool.unsent_bytes == 0
    spool.close()


def test_files_that_are_sent_are_deleted(tmp_path: Path) -> None:
    spool = Spool(tmp_path, SMALL)
    for number in range(100):
        spool.append([a_verdict(str(number))])
    assert len(list(tmp_path.glob("*.spool"))) > 5
    take_all(spool)
    assert len(list(tmp_path.glob("*.spool"))) == 1
    spool.close()


def test_a_restart_continues_behind_the_last_acknowledgement(tmp_path: Path) -> None:
    spool = Spool(tmp_path, SMALL)
    for number in range(50):
        spool.append([a_verdict(str(number))])
    first = spool.take_batch(1000)
    assert first
    spool.acknowledge(first)
    assert spool.take_batch(1000)  # in flight, never acknowledged
    spool.close()
    again = Spool(tmp_path, SMALL)
    again.append([a_verdict("new")])
    assert list_ids([*first.entries, *take_all(again)]) == [*map(str, range(50)), "new"]
    again.close()


def test_what_was_not_acknowledged_is_handed_out_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.append([a_verdict("a")])
    assert spool.take_batch()
    assert spool.take_batch() is None
    spool.rewind()
    assert list_ids(take_all(spool)) == ["a"]
    spool.close()


def test_a_lost_checkpoint_sends_again_what_is_there(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.append([a_verdict("a")])
    spool.acknowledge(spool.take_batch())  # type: ignore[arg-type]
    spool.append([a_verdict("b")])
    spool.close()
    (tmp_path / "checkpoint.json").write_text("{not json")
    again = Spool(tmp_path)
    assert list_ids(take_all(again)) == ["a", "b"]
    again.close()


def test_h6_a_checkpoint_that_one_start_can_not_read_deletes_nothing_at_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start that numbers its files from 1 again, while the checkpoint is about a later one."""
    for name in "abc":
        spool = Spool(tmp_path)
        spool.append([a_verdict(name)])
        assert list_ids(take_all(spool)) == [name]
        spool.close()

    def fail(_: Path) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files")

    Spool(tmp_path).close()
    with monkeypatch.context() as context:
        context.setattr(files, "read_all", fail)
        spool = Spool(tmp_path)
    spool.append([a_verdict("d")])
    spool.close()
    again = Spool(tmp_path)
    assert list_ids(take_all(again)) == ["d"]
    again.close()


def test_a_checkpoint_in_whose_place_something_longer_stands_is_written_whole(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.json").write_text("x" * 4096)
    spool = Spool(tmp_path)
    spool.append([a_verdict("a")])
    spool.acknowledge(spool.take_batch())  # type: ignore[arg-type]
    spool.append([a_verdict("b")])
    spool.close()
    again = Spool(tmp_path)
    assert list_ids(take_all(again)) == ["b"]
    again.close()


def test_a_checkpoint_is_never_written_through_a_link(tmp_path: Path) -> None:
    elsewhere = tmp_path / "of-somebody-else"
    elsewhere.write_text("kept")
    folder = tmp_path / "spool"
    folder.mkdir()
    (folder / "checkpoint.json").symlink_to(elsewhere)
    spool = Spool(folder)
    spool.append([a_verdict("a")])
    spool.acknowledge(spool.take_batch())  # type: ignore[arg-type]
    spool.close()
    assert elsewhere.read_text() == "kept"


def test_a_file_torn_at_any_byte_keeps_what_is_intact_and_takes_more(tmp_path: Path) -> None:
    intact_spool = Spool(tmp_path / "whole")
    intact_spool.append([a_verdict("a")])
    intact = intact_spool.disk_bytes
    intact_spool.append([a_verdict("b")])
    intact_spool.close()
    data = next((tmp_path / "whole").glob("*.spool")).read_bytes()
    for cut in range(intact, len(data)):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / "000000000001.spool").write_bytes(data[:cut])
        spool = Spool(folder)
        spool.append([a_verdict("c")])
        assert list_ids(take_all(spool)) == ["a", "c"]
        assert spool.counts.torn_bytes == cut - intact
        spool.close()


def test_damage_in_the_middle_is_counted_and_costs_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spool = Spool(tmp_path)
    for name in "abc":
        spool.append([a_verdict(name)])
    spool.close()
    path = next(tmp_path.glob("*.spool"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    again = Spool(tmp_path)
    assert list_ids(take_all(again)) == ["a", "c"]
    assert again.counts.damaged == 1
    assert str(path) in caplog.text
    again.close()


def test_two_schedulers_can_not_share_a_folder(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    with pytest.raises(SpoolInUseError, match=str(tmp_path)):
        Spool(tmp_path)
    spool.close()
    Spool(tmp_path).close()


async def test_answers_at_the_same_time_share_one_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[int] = []
    spool = Spool(tmp_path)
    monkeypatch.setattr(os, "fdatasync", syncs.append)

    async def answer(name: str) -> None:
        spool.append([a_verdict(name)])
        await spool.flush()

    await asyncio.gather(*(answer(str(number)) for number in range(50)))
    assert 1 <= len(syncs) <= 3
    spool.close()


async def test_nothing_waits_for_the_disk_with_sync_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[int] = []
    spool = Spool(tmp_path, SpoolLimits(sync="interval"))
    monkeypatch.setattr(os, "fdatasync", syncs.append)
    spool.append([a_verdict()])
    await spool.flush()
    assert syncs == []
    spool.close()


def build_attempt(number: int) -> list[Entry]:
    """Build three records of device detail and one verdict, appended at once."""
    pod = f"pod{number:03}"
    return [*(build_detail(pod, part) for part in range(3)), a_verdict(pod)]


def list_dropped(entries: list[Entry]) -> list[DetailDropped]:
    events = [decode(entry.record.value, entry.record.headers) for entry in entries]
    return [event for event in events if isinstance(event, DetailDropped)]


def test_a_full_spool_gives_up_the_oldest_device_detail_and_says_so(tmp_path: Path) -> None:
    attempt_bytes = sum(len(entry.record.value) + 400 for entry in build_attempt(0))
    spool = Spool(tmp_path, SpoolLimits(max_bytes=attempt_bytes * 20, segment_bytes=attempt_bytes * 3))
    for number in range(60):
        spool.append(build_attempt(number))
        assert spool.disk_bytes <= attempt_bytes * 20
    entries = take_all(spool)
    verdicts = [entry.ce_id for entry in entries if entry.ce_id.endswith("/concluded")]
    assert verdicts == [f"pod{number:03}/concluded" for number in range(60)]
    dropped = list_dropped(entries)
    assert dropped
    assert [event.pod.name for event in dropped] == [f"pod{number:03}" for number in range(len(dropped))]
    assert {(event.device_records, event.judged_devices) for event in dropped} == {(3, 6)}
    detail_count = sum(entry.kind is EntryKind.DETAIL for entry in entries)
    assert detail_count == 180 - 3 * len(dropped) > 0
    assert spool.dropped_detail == 3 * len(dropped)
    assert spool.dropped_verdicts == 0
    spool.close()


def test_verdicts_go_last_and_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spool = Spool(tmp_path, SpoolLimits(max_bytes=4000))
    for number in range(100):
        spool.append([a_verdict(str(number))])
    ids = list_ids(take_all(spool))
    assert ids == [str(number) for number in range(100 - len(ids), 100)]
    assert spool.dropped_verdicts == 100 - len(ids) > 0
    assert "lost" in caplog.text
    spool.close()


def test_a_batch_in_flight_is_acknowledged_right_although_its_file_was_thinned(tmp_path: Path) -> None:
    attempt_bytes = sum(len(entry.record.value) + 400 for entry in build_attempt(0))
    spool = Spool(tmp_path, SpoolLimits(max_bytes=attempt_bytes * 12, segment_bytes=attempt_bytes * 6))
    spool.append(build_attempt(0))
    first = spool.take_batch(attempt_bytes * 50)
    assert first
    for number in range(1, 40):
        spool.append(build_attempt(number))
    spool.acknowledge(first)
    entries = [*first.entries, *take_all(spool)]
    verdicts = [entry.ce_id for entry in entries if entry.ce_id.endswith("/concluded")]
    assert verdicts == [f"pod{number:03}/concluded" for number in range(40)]
    spool.close()


@settings(
    max_examples=count_examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(st.sampled_from(["append", "read", "acknowledge", "rewind", "restart"]), max_size=60))
def test_whatever_happens_in_between_every_verdict_is_handed_out_in_order(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    attempt_bytes = sum(len(entry.record.value) + 400 for entry in build_attempt(0))
    limits = SpoolLimits(max_bytes=attempt_bytes * 12, segment_bytes=attempt_bytes * 2)
    seen: list[Entry] = []
    flying: list[SpoolBatch] = []
    spool, written = Spool(folder, limits), 0
    for step in [*steps, "rewind"]:
        if step == "append":
            spool.append(build_attempt(written))
            written += 1
        elif step == "read" and (batch := spool.take_batch(600)):
            flying.append(batch)
        elif step == "acknowledge" and flying:
            batch = flying.pop(0)
            spool.acknowledge(batch)
            seen += batch.entries
        elif step == "rewind":
            spool.rewind()
            flying = []
        elif step == "restart":
            spool.close()
            spool, flying = Spool(folder, limits), []
    seen += take_all(spool)
    spool.close()
    verdicts = [entry.ce_id for entry in seen if entry.ce_id.endswith("/concluded")]
    assert verdicts == [f"pod{number:03}/concluded" for number in range(written)]


class FailingDisk:
    """Makes every write to the spool's files fail, until it is mended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = False
        write = files.write

        def fail(file: int, parts: list[bytes], offset: int) -> None:
            if not self.is_full:
                return write(file, parts, offset)
            os.pwrite(file, parts[0][: len(parts[0]) // 2], offset)
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(files, "write", fail)


async def test_without_disk_scheduling_continues_loudly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock, disk = Clock(), FailingDisk(monkeypatch)
    spool = Spool(tmp_path, clock=clock)
    spool.append([a_verdict("a")])
    disk.is_full = True
    for name in "bcd":
        spool.append([a_verdict(name)])
        await spool.flush()
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == 1
    assert str(tmp_path) in errors[0].getMessage()
    assert "No space left on device" in spool.problem
    assert list_ids(take_all(spool)) == list("abcd")
    spool.close()


async def test_that_the_disk_is_back_is_noticed_where_nothing_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka had everything from memory, and no further decision is made: `problem` would remain."""
    clock, disk = Clock(), FailingDisk(monkeypatch)
    spool = Spool(tmp_path, clock=clock, monotonic=lambda: clock.now.timestamp())
    disk.is_full = True
    spool.append([a_verdict("a")])
    batch = spool.take_batch()
    assert batch
    spool.acknowledge(batch)
    clock.advance(2)
    spool.retry_disk()
    assert "No space left on device" in spool.problem
    disk.is_full = False
    clock.advance(2)
    spool.retry_disk()
    assert spool.problem == ""
    spool.append([a_verdict("b")])
    assert list_ids(take_all(spool)) == ["b"]
    spool.close()


async def test_when_the_disk_is_back_what_waited_in_memory_moves_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, disk = Clock(), FailingDisk(monkeypatch)
    spool = Spool(tmp_path, clock=clock, monotonic=lambda: clock.now.timestamp())
    disk.is_full = True
    spool.append([a_verdict("a")])
    spool.append([a_verdict("b")])
    disk.is_full = False
    clock.advance(2)
    spool.append([a_verdict("c")])
    assert spool.problem == ""
    spool.close()
    again = Spool(tmp_path)
    assert list_ids(take_all(again)) == ["a", "b", "c"]
    assert again.counts.damaged == 0
    again.close()


def test_memory_is_bounded_too_and_verdicts_go_last_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FailingDisk(monkeypatch)
    spool = Spool(tmp_path, SpoolLimits(memory_bytes=20_000), clock=Clock())
    disk.is_full = True
    for number in range(20):
        spool.append(build_attempt(number))
    entries = take_all(spool)
    assert [entry.ce_id for entry in entries if entry.ce_id.endswith("/concluded")] == [
        f"pod{number:03}/concluded" for number in range(20)
    ]
    assert list_dropped(entries)
    assert spool.dropped_detail > 0 == spool.dropped_verdicts
    spool.close()


def test_its_age_is_that_of_the_oldest_record_that_is_not_sent(tmp_path: Path) -> None:
    clock = Clock()
    spool = Spool(tmp_path, clock=clock)
    assert spool.measure_oldest_age() == 0
    spool.append([a_verdict("a")])
    clock.advance(90)
    assert clock() != NOW
    assert spool.measure_oldest_age() == 90
    take_all(spool)
    assert spool.measure_oldest_age() == 0
    spool.close()


def test_a_folder_that_is_deleted_under_it_loses_nothing_that_is_read_in_time(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.append([a_verdict("a")])
    shutil.rmtree(tmp_path / "spool")
    spool.append([a_verdict("b")])
    assert list_ids(take_all(spool)) == ["a", "b"]
    spool.close()


def test_a_full_disk_leaves_no_heap_of_empty_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, disk = Clock(), FailingDisk(monkeypatch)
    spool = Spool(tmp_path, clock=clock)
    disk.is_full = True
    for number in range(50):
        spool.append([a_verdict(str(number))])
        clock.advance(2)
    assert len(list(tmp_path.glob("*.spool"))) <= 2
    assert list_ids(take_all(spool)) == [str(number) for number in range(50)]
    spool.close()


def test_what_is_lost_with_the_memory_is_reported_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FailingDisk(monkeypatch)
    spool = Spool(tmp_path, clock=Clock())
    disk.is_full = True
    spool.append([a_verdict("a"), a_verdict("b")])
    spool.close()
    assert "2 records in memory are lost" in caplog.text


def list_files(folder: Path, suffix: str) -> list[Path]:
    return sorted(folder.glob(f"*{suffix}"))


def test_a_record_torn_at_any_byte_by_a_kill_costs_only_itself(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", SMALL)
    spool.append([a_verdict("a")] * 3)
    active = list_files(tmp_path / "spool", ".spool")[-1]
    before = active.stat().st_size
    spool.append([a_verdict("b")])
    after = active.read_bytes()
    spool.close()
    for cut in range(before, len(after) + 1):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / active.name).write_bytes(after[:cut])
        again = Spool(folder, SMALL)
        assert list_ids(take_all(again)) == ["a"] * 3 + ["b"] * (cut == len(after))
        assert again.counts.torn_bytes == (cut - before if cut < len(after) else 0)
        again.append([a_verdict("next")])
        assert list_ids(take_all(again)) == ["next"]
        again.close()


@settings(
    max_examples=count_examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.data())
def test_a_flipped_bit_costs_one_record_and_is_counted(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("flipped")
    killed = Spool(folder / "killed", SMALL)
    for name in "ab":
        killed.append([a_verdict(name)])
    copy = shutil.copytree(folder / "killed", folder / "copy")
    killed.close()
    path = list_files(copy, ".spool")[-1]
    content = bytearray(path.read_bytes())
    bit = data.draw(st.integers(0, len(content) * 8 - 1))
    content[bit // 8] ^= 1 << (bit % 8)
    path.write_bytes(content)
    again = Spool(copy, SMALL)
    assert list_ids(take_all(again)) == (["b"] if bit // 8 < len(content) // 2 else ["a"])
    assert again.counts.damaged or again.counts.torn_bytes
    again.close()


def test_the_folder_never_takes_more_than_its_limit(tmp_path: Path) -> None:
    spool = Spool(tmp_path, SpoolLimits(max_bytes=8000, segment_bytes=1000))
    for number in range(200):
        spool.append([a_verdict(str(number))])
        assert sum(path.stat().st_size for path in tmp_path.glob("*.spool")) == spool.disk_bytes <= 8000
    assert len(take_all(spool)) == 200 - spool.dropped_verdicts > 0
    spool.close()


def test_a_write_that_fails_leaves_nothing_of_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FailingDisk(monkeypatch)
    spool = Spool(tmp_path, SMALL)
    spool.append([a_verdict("a")])
    disk.is_full = True
    spool.append([a_verdict("b")])
    spool._memory.clear()  # as a kill would
    again = Spool(shutil.copytree(tmp_path, tmp_path / "copy"), SMALL)
    assert list_ids(take_all(again)) == ["a"]
    assert again.counts.torn_bytes == 0
    again.close()
    spool.close()


def test_an_epoch_is_greater_than_the_one_before_also_after_the_clock_was_set_back(tmp_path: Path) -> None:
    clock = Clock()
    epochs = []
    for days in (3, -3, 0):
        clock.advance(days * 86_400)
        spool = Spool(tmp_path, SMALL, clock)
        epochs.append(spool.advance_epoch())
        spool.close()
    assert epochs[0] == count_microseconds(NOW + timedelta(days=3))
    assert epochs == [epochs[0], epochs[0] + 1, epochs[0] + 2]


def test_a_broken_file_of_the_epoch_is_named_and_costs_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spool = Spool(tmp_path, SMALL, Clock())
    (tmp_path / "epoch").write_bytes(b"soon")
    assert spool.advance_epoch() == count_microseconds(NOW)
    assert "the last epoch can't be read" in caplog.text
    spool.close()
