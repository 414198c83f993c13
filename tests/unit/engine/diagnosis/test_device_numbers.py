"""Numbers behind a refusal: what of the devices' amounts is named, and what is left out because it is not reported.

The amounts are counted by hand. Rows are of node ``a`` unless they name another.
"""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from engine.diagnosis.device_numbers import (
    collect_numbers,
    compare_with_largest,
    describe_requested_memory,
    list_models,
    select_rows,
)
from engine.diagnosis.facts import DiagnosisFacts, Unknown
from engine.diagnosis.refused_nodes import RefusedNodes, RowNames
from engine.hami.reason_codes import ReasonCode as Code
from schemas.answers.attempts import DeviceLog
from schemas.events import FITS, NOT_REACHED, PICKED, Request

NODES = ("a", "b", "c")
REQUEST = Request(container="main", vendor="NVIDIA", count=2, memory_mib=20_000, cores_percent=50)


def a_row(verdict: str, node: str = "a", uuid: str = "GPU-1", **numbers: Any) -> DeviceLog:
    """A device as it was judged, without the numbers that are not given."""
    unreported = dict.fromkeys(name for name, field in DeviceLog.model_fields.items() if field.is_required())
    named = {"node": node, "container": "main", "uuid": uuid, "verdict": verdict, "model": "", "checks": {}}
    return DeviceLog(**unreported | named | numbers)


def build_facts(*rows: DeviceLog, **facts: Any) -> DiagnosisFacts:
    return DiagnosisFacts("default", "ml", "train", datetime(2026, 11, 27, tzinfo=UTC), devices=rows, **facts)


def a_group(code: str, request: Request | None = REQUEST, nodes: int = 2, **fields: Any) -> RefusedNodes:
    """The first nodes, refused for a reason."""
    return RefusedNodes(code, nodes, RowNames(NODES, np.arange(nodes)), request, **fields)


def a_memory_row(total: int | None, used: int | None, node: str = "a", uuid: str = "GPU-1", **more: Any) -> DeviceLog:
    more = {"verdict": Code.CARD_INSUFFICIENT_MEMORY} | more
    return a_row(node=node, uuid=uuid, memory_total_mib=total, memory_used_mib=used, **more)


def a_cores_row(total: int, used: int, node: str = "a") -> DeviceLog:
    return a_row(Code.CARD_INSUFFICIENT_CORE, node, cores_total_percent=total, cores_used_percent=used)


def a_slots_row(
    used: int | None, total: int | None, node: str = "a", code: str = Code.CARD_TIME_SLICING_EXHAUSTED
) -> DeviceLog:
    return a_row(code, node, slots_used=used, slots_total=total)


def collect(
    code: str, *rows: DeviceLog, request: Request | None = REQUEST, **group: Any
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the words beyond the count and the request, and the clauses."""
    numbers = collect_numbers(a_group(code, request, **group), build_facts(*rows))
    return {name: word for name, word in numbers.words.items() if name not in ("count", "asked")}, numbers.clauses


@pytest.mark.parametrize(
    ("rows", "words", "clauses"),
    [
        (
            [a_memory_row(40_000, 35_000), a_memory_row(40_000, 30_000, "b")],
            {"free": 10_000, "node": "b"},
            ("asked", "free"),
        ),
        (
            [a_memory_row(40_000, 35_000), a_memory_row(40_000, 35_000, "b")],
            {"free": 5_000, "node": "b"},
            ("asked", "free"),
        ),
        # An overcommitted device has less than nothing free.
        ([a_memory_row(40_000, 45_000)], {"free": 0, "node": "a"}, ("asked", "free")),
        # The most that was free is unknown where one device's numbers are.
        ([a_memory_row(40_000, 35_000), a_memory_row(None, 0, "b")], {}, ("asked",)),
        ([a_memory_row(40_000, None)], {}, ("asked",)),
        # By these numbers it had enough: the pod's own earlier containers took it.
        ([a_memory_row(40_000, 20_000)], {}, ("asked", "own")),
        ([a_memory_row(40_000, 20_000), a_memory_row(40_000, 39_000, "b")], {}, ("asked", "own")),
        ([a_memory_row(40_000, 20_001)], {"free": 19_999, "node": "a"}, ("asked", "free")),
        # A device of another reason, of another node, or of no reason does not count.
        ([a_memory_row(40_000, 39_000), a_memory_row(40_000, 0, "c")], {"free": 1_000, "node": "a"}, ("asked", "free")),
        (
            [a_memory_row(40_000, 39_000), a_memory_row(40_000, 0, verdict=NOT_REACHED)],
            {"free": 1_000, "node": "a"},
            ("asked", "free"),
        ),
        ([a_memory_row(40_000, 0, "c")], {}, ("asked",)),
        # One device of the node suits, and the pod wants two.
        (
            [a_memory_row(40_000, 39_000), a_memory_row(40_000, 0, verdict=FITS)],
            {"free": 1_000, "node": "a"},
            ("asked", "free_of_refused"),
        ),
        (
            [a_memory_row(40_000, 39_000), a_memory_row(40_000, 0, verdict=PICKED)],
            {"free": 1_000, "node": "a"},
            ("asked", "free_of_refused"),
        ),
        (
            [a_memory_row(40_000, 39_000), a_memory_row(9, 0, verdict=Code.ALLOCATED_CARDS_INSUFFICIENT_REQUEST)],
            {"free": 1_000, "node": "a"},
            ("asked", "free_of_refused"),
        ),
        (
            [a_memory_row(40_000, 39_000), a_memory_row(40_000, 0, "c", verdict=FITS)],
            {"free": 1_000, "node": "a"},
            ("asked", "free"),
        ),
        ([], {}, ("asked",)),
    ],
)
def test_the_largest_free_memory_is_named_where_every_device_reports_it(
    rows: list[DeviceLog], words: dict[str, Any], clauses: tuple[str, ...]
) -> None:
    assert collect(Code.CARD_INSUFFICIENT_MEMORY, *rows) == (words, clauses)


@pytest.mark.parametrize(
    ("code", "rows", "words", "clauses"),
    [
        (
            Code.CARD_INSUFFICIENT_CORE,
            [a_cores_row(100, 70), a_cores_row(100, 60, "b")],
            {"free": 40, "node": "b"},
            ("asked", "free"),
        ),
        (Code.CARD_INSUFFICIENT_CORE, [a_cores_row(100, 50)], {}, ("asked", "own")),
        (Code.CARD_INSUFFICIENT_CORE, [a_cores_row(100, 51)], {"free": 49, "node": "a"}, ("asked", "free")),
        # The device with the fewest tasks; one without slots of its own does not count.
        (
            Code.CARD_TIME_SLICING_EXHAUSTED,
            [a_slots_row(10, 10), a_slots_row(9, 9, "b")],
            {"slots_used": 9, "slots": 9, "node": "b"},
            ("slots",),
        ),
        (
            Code.CARD_TIME_SLICING_EXHAUSTED,
            [a_slots_row(0, 10)],
            {"slots_used": 0, "slots": 10, "node": "a"},
            ("slots",),
        ),
        (
            Code.CARD_TIME_SLICING_EXHAUSTED,
            [a_slots_row(10, 10), a_slots_row(0, 0, "b")],
            {"slots_used": 10, "slots": 10, "node": "a"},
            ("slots",),
        ),
        (Code.CARD_TIME_SLICING_EXHAUSTED, [a_slots_row(None, 10)], {}, ()),
        # A pod that wants the device for itself finds it empty: only its own other container can be in the way.
        (
            Code.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT,
            [a_slots_row(0, 10, code=Code.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT)],
            {},
            ("own",),
        ),
        (
            Code.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT,
            [a_slots_row(1, 10, code=Code.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT)],
            {"slots_used": 1, "slots": 10, "node": "a"},
            ("slots",),
        ),
        (
            Code.CARD_NOT_HEALTH,
            [
                a_row(Code.CARD_NOT_HEALTH, "b", "GPU-1"),
                a_row(Code.CARD_NOT_HEALTH, "a", "GPU-9"),
                a_row(Code.CARD_NOT_HEALTH, "a", "GPU-2"),
            ],
            {"devices": 3, "node": "a", "device": "GPU-2"},
            ("devices",),
        ),
        # A device that two containers asked counts once.
        (
            Code.CARD_CORDONED,
            [a_row(Code.CARD_CORDONED), a_row(Code.CARD_CORDONED, container="side")],
            {"devices": 1, "node": "a", "device": "GPU-1"},
            ("devices",),
        ),
        (Code.CARD_CORDONED, [a_row(Code.CARD_CORDONED, uuid="")], {}, ()),
        (Code.CARD_TYPE_MISMATCH, [a_row(Code.CARD_TYPE_MISMATCH)], {}, ()),
        # The node with the most devices that suit; of equal ones the last by name.
        (
            Code.ALLOCATED_CARDS_INSUFFICIENT_REQUEST,
            [a_row(Code.ALLOCATED_CARDS_INSUFFICIENT_REQUEST, node) for node in ("a", "a", "b")],
            {"good": 2, "node": "a"},
            ("asked", "good"),
        ),
        (
            Code.ALLOCATED_CARDS_INSUFFICIENT_REQUEST,
            [a_row(Code.ALLOCATED_CARDS_INSUFFICIENT_REQUEST, node) for node in ("b", "a")],
            {"good": 1, "node": "b"},
            ("asked", "good"),
        ),
        # A reason without numbers of its own.
        (Code.NUMA_NOT_FIT, [a_row(Code.NUMA_NOT_FIT)], {}, ("asked",)),
    ],
)
def test_each_reason_has_the_numbers_of_its_devices(
    code: str, rows: list[DeviceLog], words: dict[str, Any], clauses: tuple[str, ...]
) -> None:
    assert collect(code, *rows) == (words, clauses)


@pytest.mark.parametrize(
    ("percent", "used", "clauses"),
    # HAMi takes half of 16,384 MiB, and of 16,385 the same 8,192.
    [(50, 8_192, ("asked", "own")), (50, 8_193, ("asked", "free")), (None, 16_384, ("asked", "free"))],
)
def test_a_share_of_the_memory_is_of_each_device(percent: int | None, used: int, clauses: tuple[str, ...]) -> None:
    request = Request(container="main", vendor="NVIDIA", count=1, memory_percent=percent)
    assert collect(Code.CARD_INSUFFICIENT_MEMORY, a_memory_row(16_384, used), request=request)[1] == clauses


def test_without_a_known_request_a_refusal_names_one_device_and_no_amount() -> None:
    numbers = collect_numbers(a_group(Code.CARD_INSUFFICIENT_MEMORY, None), build_facts(a_memory_row(40_000, 0)))
    assert (numbers.words["count"], numbers.words["free"], numbers.clauses) == (1, 40_000, ("free",))


@pytest.mark.parametrize(
    ("code", "requested"),
    [(Code.CARD_INSUFFICIENT_CORE, 50), (Code.CARD_INSUFFICIENT_MEMORY, describe_requested_memory(REQUEST))],
)
def test_a_refusal_for_cores_names_the_cores_that_were_asked_for(code: str, requested: object) -> None:
    assert collect_numbers(a_group(code), build_facts()).words == {"count": 2, "asked": requested}


@pytest.mark.parametrize(
    ("amounts", "words"),
    [
        ({"memory_mib": 8_000}, "8,000 MiB"),
        ({"memory_percent": 25}, "25 % of a device's memory"),
        # HAMi's documentation: without an amount the container gets the whole device.
        ({}, "100 % of a device's memory"),
    ],
)
def test_the_requested_memory_is_an_amount_or_a_share(amounts: dict[str, int], words: str) -> None:
    assert describe_requested_memory(Request(container="main", **amounts)).en == words


def test_rows_of_a_group_are_those_of_its_containers() -> None:
    main, side = a_memory_row(40_000, 0), a_memory_row(40_000, 0, container="side")
    code = Code.CARD_INSUFFICIENT_MEMORY
    assert select_rows(a_group(code), build_facts(main, side)) == [main, side]
    assert select_rows(a_group(code, containers=frozenset(["side"])), build_facts(main, side)) == [side]


@pytest.mark.parametrize(
    ("models", "listed"),
    [
        (["B", "A", "", "B"], ["A", "B"]),
        (["A", "B", "C"], ["A", "B", "C"]),
        (["A", "B", "C", "D"], []),
        (["", ""], []),
    ],
)
def test_models_are_listed_up_to_three(models: list[str], listed: list[str]) -> None:
    assert list_models([a_row(Code.CARD_TYPE_MISMATCH, model=model) for model in models]) == listed


@pytest.mark.parametrize(
    ("rows", "largest"),
    [
        ([a_memory_row(16_000, 0), a_memory_row(19_999, 0, uuid="GPU-2")], (19_999, 2)),
        ([a_memory_row(16_000, 0), a_memory_row(20_000, 0, uuid="GPU-2")], None),
        # A device that two containers asked is one; one of another model is none for this pod.
        ([a_memory_row(16_000, 0), a_memory_row(16_000, 0, container="side")], (16_000, 1)),
        (
            [a_memory_row(16_000, 0), a_memory_row(80_000, 0, uuid="GPU-2", verdict=Code.CARD_TYPE_MISMATCH)],
            (16_000, 1),
        ),
        (
            [a_memory_row(16_000, 0), a_memory_row(80_000, 0, uuid="GPU-2", verdict=Code.CARD_UUID_MISMATCH)],
            (16_000, 1),
        ),
        ([a_memory_row(16_000, 0), a_memory_row(None, 0, uuid="GPU-2")], None),
        ([], None),
    ],
)
def test_no_device_is_large_enough_only_where_every_size_is_known(
    rows: list[DeviceLog], largest: tuple[int, int] | None
) -> None:
    numbers = compare_with_largest(a_group(Code.CARD_INSUFFICIENT_MEMORY), build_facts(*rows))
    assert (numbers and (numbers.words["largest"], numbers.words["devices"])) == largest


def test_no_device_is_called_the_largest_where_some_could_not_be_read() -> None:
    code, row = Code.CARD_INSUFFICIENT_MEMORY, a_memory_row(16_000, 0)
    unread = [Unknown("devices", "index-down")]
    assert compare_with_largest(a_group(code), build_facts(row, unknown=unread)) is None
    assert compare_with_largest(a_group(code, None), build_facts(row)) is None
