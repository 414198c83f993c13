"""The states of nodes with shared devices in KAI's log."""

from datetime import UTC, datetime

import pytest

from ingest.readers.kai import KaiLog
from schemas.events import AttemptConcluded, DevicesJudged
from tests.support.builders.kai_lines import CONSOLE, JSON, TAGS, block, list_devices, list_states, read, read_texts

LABELS = {"gpu-0": 40960}


@pytest.mark.parametrize("case", [CONSOLE, JSON, TAGS])
def test_each_state_is_before_the_verdicts_on_it_and_has_their_devices(case: str) -> None:
    sizes: dict[tuple[str, int], int] = {}
    for event in read(read_texts(case)):
        sizes |= {(state.node, state.revision): len(state.uuid) for state in list_states([event])}
        if isinstance(event, DevicesJudged):
            keys = zip(event.nodes, event.revision.tolist(), strict=True)
            assert [sizes[key] for key in keys] == event.rows.tolist()
            assert event.device.size == 0
    assert sizes


def test_a_state_has_what_the_lines_about_shared_devices_report() -> None:
    """Two devices of 40960 MiB, which KAI counts as 40900; 20000 of each are allocated."""
    state = list_states(read(read_texts(CONSOLE), KaiLog(LABELS)))[0]
    assert (state.node, state.scheduler, state.epoch) == ("gpu-0", "kai-scheduler", 0)
    assert state.uuid == ["grp-0", "grp-1"]
    assert [state.kinds[code].memory_mib for code in state.kind] == [40900, 40900]
    assert state.memory_used_mib.tolist() == [20000, 20000]
    assert state.observed_at == datetime(2026, 11, 21, 3, 13, 33, 245_000, tzinfo=UTC)
    unreported = (state.index, state.numa, state.cores_used_percent, state.slots_used)
    assert [column.tolist() for column in unreported] == [[-1, -1]] * 4
    assert (state.healthy, state.cordoned) == ([True, True], [False, False])


def test_numbers_that_the_level_leaves_out_are_not_reported() -> None:
    state = list_states(read(read_texts(JSON)))[0]
    assert state.memory_used_mib.tolist() == [-1, -1]
    assert [kind.memory_mib for kind in state.kinds] == [None]


def a_session(name: bytes, used: bytes = b"20000", day: bytes = b"21") -> list[bytes]:
    """The first session of the log, in which one pod fits on neither device."""
    lines = [line for line in read_texts(CONSOLE) if b"[s2bbbb]" in line]
    return [
        line.replace(b"s2bbbb", name).replace(b"<20000>", b"<%b>" % used).replace(b"2026-11-21", b"2026-11-%b" % day)
        for line in lines
    ]


def test_an_unchanged_node_has_one_state_and_a_changed_number_another_revision() -> None:
    log = [*a_session(b"s1"), *a_session(b"s2"), *a_session(b"s3", b"21000")]
    events = read(log, KaiLog(LABELS))
    first, second = list_states(events)
    assert (first.memory_used_mib.tolist(), second.memory_used_mib.tolist()) == ([20000] * 2, [21000] * 2)
    revisions = [event.revision.tolist() for event in events if isinstance(event, DevicesJudged)]
    assert revisions == [[first.revision], [first.revision], [second.revision]]


def test_after_a_day_an_unchanged_state_is_emitted_again_under_its_id() -> None:
    events = read([*a_session(b"s1"), *a_session(b"s2", day=b"22")], KaiLog(LABELS))
    first, again = list_states(events)
    assert (first.id, again.observed_at.day - first.observed_at.day) == (again.id, 1)


def test_a_reader_that_was_restored_emits_no_state_twice() -> None:
    reader = KaiLog(LABELS)
    before = [event for name in (b"s1", b"s2", b"s3", b"s4") for event in reader.feed(block(a_session(name)))]
    restored = KaiLog(LABELS)
    restored.restore(reader.save())
    assert (len(list_states(before)), list_states(list(restored.close()))) == (1, [])
    assert list_states(read(a_session(b"s5"), restored)) == []


def test_each_row_is_about_the_device_of_its_line() -> None:
    rows = list_devices(read(read_texts(CONSOLE), KaiLog(LABELS)))
    assert [(row.node, row.uuid, row.verdict, row.memory_used_mib) for row in rows[:3]] == [
        ("gpu-0", "grp-0", "CardInsufficientMemory", 20000),
        ("gpu-0", "grp-1", "CardInsufficientMemory", 20000),
        # 30000 of it are being released: the pod waits for them.
        ("gpu-0", "grp-0", "picked", 35000),
    ]


def test_the_conclusion_has_the_picked_devices() -> None:
    ends = [event for event in read(read_texts(CONSOLE), KaiLog(LABELS)) if isinstance(event, AttemptConcluded)]
    [device] = [device for end in ends for device in end.picked]
    assert (device.container, device.uuid, device.memory_mib) == (0, "grp-0", 30000)
    assert (device.memory_total_mib, device.memory_used_mib) == (40900, 35000)
    assert (device.cores_total_percent, device.cores_used_percent, device.slots_used) == (None, None, None)
