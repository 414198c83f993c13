"""The states of nodes in HAMi's log, and that each row of a verdict is about the device that its line names."""

import random
from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.readers.hami.devices import DeviceInRegistration
from ingest.readers.hami.reader import HamiLog
from schemas.codec.records import MAX_VALUE_BYTES, encode
from schemas.events import AttemptConcluded, DevicesJudged, Event
from tests.support.builders.hami_lines import (
    a_line,
    build_lines,
    list_devices,
    list_states,
    read,
    write_failure,
    write_request,
    write_start,
    write_unfit,
)
from tests.support.stress import count_examples

RECORDED = sorted((Path(__file__).parents[4] / "conformance" / "cases" / "logs").glob("*.log"))
REGISTERED = {
    f"GPU-{number}": DeviceInRegistration("node1", "A100", 40960, 100, 10, 0, device_index=number)
    for number in range(3)
}
DAY = 86_400.0


def refuse_for_memory(uuid: str, used: int, pod: str = "ml/trainer") -> bytes:
    numbers = f"device index=0 device total memory=40960 device used memory={used} request memory=20480"
    return a_line(f'"CardInsufficientMemory" pod="{pod}" device="{uuid}" {numbers}', seconds=0.02)


def refuse_for_cores(uuid: str, used: int) -> bytes:
    numbers = f"device index=0 device total core=100 device used core={used} request cores=20"
    return a_line(f'"CardInsufficientCore" pod="ml/trainer" device="{uuid}" {numbers}', seconds=0.02)


def refuse(uuid: str, code: str) -> bytes:
    return a_line(f'"{code}" pod="ml/trainer" device="{uuid}"', seconds=0.02)


def accept(uuid: str) -> bytes:
    return a_line(f'"find fit device" pod="ml/trainer" device="{uuid}"', seconds=0.02)


def make_attempt(*device_lines: bytes, containers: int = 1) -> list[bytes]:
    refusal = f"1/1 CardInsufficientMemory, {len(device_lines)}/{len(device_lines)} X"
    return [
        write_start(),
        write_request(*[1] * containers),
        *device_lines,
        write_unfit("node1", refusal),
        write_failure(1),
    ]


def choose(uuid: str, containers: str = '[{{"UUID":"{}"}}]') -> bytes:
    picked = f'{{"NVIDIA":[{containers.format(uuid)}]}}'
    text = f'"Scheduling pod to node" podNamespace="ml" podName="trainer" nodeID="node1" devices={picked}'
    return a_line(text, seconds=0.025)


def on_the_next_day(texts: list[bytes]) -> list[bytes]:
    return [text.replace(b"I1121", b"I1122", 1) for text in texts]


@pytest.mark.parametrize("log", RECORDED, ids=lambda path: path.stem)
def test_each_state_is_before_the_verdicts_on_it_and_has_their_devices(log: Path) -> None:
    sizes: dict[tuple[str, int], int] = {}
    for event in read(*log.read_bytes().splitlines()):
        sizes |= {(state.node, state.revision): len(state.uuid) for state in list_states([event])}
        if isinstance(event, DevicesJudged):
            needed = list(zip(event.nodes, event.revision.tolist(), strict=True))
            assert set(needed) <= set(sizes)
            assert all(rows <= sizes[key] for key, rows in zip(needed, event.rows.tolist(), strict=True))
            if event.device.size:
                row_sizes = [
                    sizes[key] for key, rows in zip(needed, event.rows.tolist(), strict=True) for _ in range(rows)
                ]
                assert all(position < size for position, size in zip(event.device.tolist(), row_sizes, strict=True))


@pytest.mark.parametrize("log", RECORDED, ids=lambda path: path.stem)
def test_a_log_that_is_read_twice_gives_the_same_ids(log: Path) -> None:
    texts = log.read_bytes().splitlines()
    first, second = ([event.id for event in read(*texts)] for _ in range(2))
    assert first == second
    assert any("/state/0/" in name for name in first)


def test_the_numbers_of_a_row_are_those_of_its_devices_line() -> None:
    read_twice = read(
        *make_attempt(
            refuse_for_memory("GPU-2", 30000), refuse_for_cores("GPU-0", 90), refuse("GPU-1", "CardTypeMismatch")
        ),
        reader=HamiLog(devices=REGISTERED),
    )
    states = {
        row.uuid: (row.node, row.verdict, row.model, row.memory_used_mib, row.cores_used_percent, row.slots_used)
        for row in list_devices(read_twice)
    }
    assert states == {
        "GPU-0": ("node1", "CardInsufficientCore", "A100", None, 90, None),
        "GPU-1": ("node1", "CardTypeMismatch", "A100", None, None, None),
        "GPU-2": ("node1", "CardInsufficientMemory", "A100", 30000, None, None),
    }
    [record] = [event for event in read_twice if isinstance(event, DevicesJudged)]
    # All devices of the state in its order: the order need not be repeated.
    assert (record.models, record.device.tolist()) == ({"A100": 3}, [])


def test_a_state_has_all_registered_devices_also_those_without_a_line() -> None:
    read_twice = read(*make_attempt(refuse_for_memory("GPU-2", 30000)), reader=HamiLog(devices=REGISTERED))
    [state] = list_states(read_twice)
    assert (state.uuid, state.index.tolist()) == (["GPU-0", "GPU-1", "GPU-2"], [0, 1, 2])
    assert state.memory_used_mib.tolist() == [-1, -1, 30000]
    [record] = [event for event in read_twice if isinstance(event, DevicesJudged)]
    assert (record.rows.tolist(), record.device.tolist()) == ([1], [2])
    assert [(row.uuid, row.memory_used_mib) for row in list_devices(read_twice)] == [("GPU-2", 30000)]


def test_a_device_is_unhealthy_or_cordoned_where_its_line_or_its_registration_shows_it() -> None:
    registered = REGISTERED | {"GPU-3": REGISTERED["GPU-2"]._replace(is_healthy=False)}
    registered |= {"GPU-4": registered["GPU-3"]}
    read_twice = read(
        *make_attempt(refuse("GPU-0", "CardNotHealth"), refuse("GPU-1", "CardCordoned"), accept("GPU-4")),
        reader=HamiLog(devices=registered),
    )
    [state] = list_states(read_twice)
    health = dict(zip(state.uuid, zip(state.healthy, state.cordoned, strict=True), strict=True))
    assert health == {
        "GPU-0": (False, False), "GPU-1": (True, True), "GPU-2": (True, False), "GPU-3": (False, False),
        "GPU-4": (True, False),
    }  # fmt: skip


def test_an_unchanged_node_has_one_state_and_a_changed_number_another_revision() -> None:
    log = [line for used in (30000, 30000, 31000) for line in make_attempt(refuse_for_memory("GPU-0", used))]
    read_twice = read(*log, reader=HamiLog(devices=REGISTERED))
    first, second = list_states(read_twice)
    assert (first.memory_used_mib[0], second.memory_used_mib[0]) == (30000, 31000)
    assert first.revision != second.revision
    revisions = [event.revision.tolist() for event in read_twice if isinstance(event, DevicesJudged)]
    assert revisions == [[first.revision], [first.revision], [second.revision]]


def test_after_a_day_an_unchanged_state_is_emitted_again_under_its_id() -> None:
    today = make_attempt(refuse_for_memory("GPU-0", 30000))
    read_twice = read(*today, *on_the_next_day(today), reader=HamiLog(devices=REGISTERED))
    first, again = list_states(read_twice)
    assert again.id == first.id
    assert (again.observed_at - first.observed_at).total_seconds() == DAY
    kinds = [kind for kind, _ in groupby(type(event).__name__ for event in read_twice)]
    assert kinds == ["NodeStateChanged", "DevicesJudged", "NodesJudged", "AttemptConcluded"] * 2


def test_a_reader_that_was_restored_emits_no_state_twice() -> None:
    reader = HamiLog(devices=REGISTERED)
    before = list(reader.feed(build_lines(make_attempt(refuse_for_memory("GPU-0", 30000)))))
    restored = HamiLog()
    restored.restore(reader.save())
    after = list(restored.feed(build_lines(make_attempt(refuse_for_memory("GPU-0", 30000)))))
    assert (len(list_states(before)), list_states(after)) == (1, [])


def test_what_the_first_container_took_is_not_in_the_state() -> None:
    """The first container takes GPU-0 of 30000 MiB in use; the second finds it with 50480."""

    def try_device(uuid: str, memory: int) -> bytes:
        numbers = f"Memreq={memory} MemPercentagereq=101 Coresreq=20 Nums=1 device index=0"
        return a_line(f'"scoring pod" pod="ml/trainer" device="{uuid}" {numbers}', seconds=0.015)

    log = make_attempt(
        try_device("GPU-1", 20480), refuse_for_memory("GPU-1", 33000), try_device("GPU-0", 20480), accept("GPU-0"),
        try_device("GPU-1", 20479), refuse_for_memory("GPU-1", 33000), try_device("GPU-0", 20479),
        refuse_for_memory("GPU-0", 50480),
        containers=2,
    )  # fmt: skip
    read_twice = read(*log, reader=HamiLog(devices=REGISTERED))
    [state] = list_states(read_twice)
    assert state.memory_used_mib.tolist() == [-1, 33000, -1]
    records = [event for event in read_twice if isinstance(event, DevicesJudged)]
    assert {(record.container, *record.revision.tolist()) for record in records} == {
        (0, state.revision), (1, state.revision),
    }  # fmt: skip


def test_numbers_that_may_be_those_after_an_earlier_container_are_left_out() -> None:
    """Two containers with one request: a device line shows no container."""
    read_twice = read(
        write_start(), write_request(1, 1, memory=20480).replace(b"20479", b"20480"), refuse_for_memory("GPU-0", 30000),
        write_unfit("node1", "1/1 CardInsufficientMemory"), write_failure(1), reader=HamiLog(devices=REGISTERED),
    )  # fmt: skip
    [state] = list_states(read_twice)
    assert state.memory_used_mib.tolist() == [-1, -1, -1]
    [row] = list_devices(read_twice)
    assert (row.verdict, row.memory_total_mib) == ("CardInsufficientMemory", 40960)


def test_devices_without_a_node_are_in_states_without_a_node() -> None:
    used = {f"GPU-{number:03}": 20000 + number for number in range(250)}
    texts = [refuse_for_memory(uuid, number) for uuid, number in used.items()]
    random.Random(1).shuffle(texts)
    read_twice = read(*make_attempt(*texts))
    assert {state.node for state in list_states(read_twice)} == {""}
    assert all(len(encode(event).value) < MAX_VALUE_BYTES for event in read_twice)
    rows = list_devices(read_twice)
    assert {(row.node, row.uuid, row.memory_used_mib) for row in rows} == {("", *item) for item in used.items()}
    assert len(rows) == 250


def test_the_conclusion_has_the_picked_devices_with_what_the_registration_shows() -> None:
    log = [write_start(), write_request(1), choose("GPU-1")]
    [end] = [event for event in read(*log, reader=HamiLog(devices=REGISTERED)) if isinstance(event, AttemptConcluded)]
    [device] = end.picked
    assert (device.container, device.uuid, device.model) == (0, "GPU-1", "A100")
    assert (device.memory_mib, device.cores_percent) == (20480, 20)
    assert (device.memory_total_mib, device.cores_total_percent, device.slots_total) == (40960, 100, 10)
    assert (device.memory_used_mib, device.cores_used_percent, device.slots_used) == (None, None, None)


ROWS = st.dictionaries(
    st.tuples(st.sampled_from(["node1", "node2", "node3"]), st.integers(0, 5)),
    st.tuples(st.sampled_from(["memory", "cores", "CardTypeMismatch", "CardNotHealth"]), st.integers(0, 99)),
    min_size=1,
)


@settings(max_examples=count_examples(15))
@given(ROWS, st.booleans(), st.randoms(use_true_random=False))
def test_any_lines_in_any_order_give_one_state_and_each_row_its_line(
    try_device: dict[tuple[str, int], tuple[str, int]], is_registered: bool, chance: random.Random
) -> None:
    registered = {
        f"GPU-{node}-{number}": DeviceInRegistration(node, "A100", 40960, 100, 10, 0, number)
        for node in ("node1", "node2", "node3")
        for number in range(4)
    }
    texts, expected = [], Counter[tuple[str, str, str, int | None, int | None]]()
    for (node, number), (why, used) in try_device.items():
        uuid = f"GPU-{node}-{number}"
        line = {"memory": refuse_for_memory, "cores": refuse_for_cores}.get(why)
        texts.append(line(uuid, used) if line else refuse(uuid, why))
        verdict = {"memory": "CardInsufficientMemory", "cores": "CardInsufficientCore"}.get(why, why)
        # Devices 4 and 5 are in no registration.
        registered_node = node if is_registered and number < 4 else ""
        numbers = (used if why == "memory" else None, used if why == "cores" else None)
        expected[registered_node, uuid, verdict, *numbers] += 1

    def read_twice() -> list[Event]:
        chance.shuffle(texts)
        return read(*make_attempt(*texts), reader=HamiLog(devices=registered if is_registered else {}))

    first, second = read_twice(), read_twice()
    assert [encode(state) for state in list_states(first)] == [encode(state) for state in list_states(second)]
    rows = (
        (row.node, row.uuid, row.verdict, row.memory_used_mib, row.cores_used_percent) for row in list_devices(first)
    )
    assert Counter(rows) == expected
