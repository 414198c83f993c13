"""Time grows with the input and not with its square: of eight times the input it is eight times, not sixty-four."""

import time
from collections.abc import Callable
from typing import Final

import pytest

from ingest.kai.tags import parse_tagged
from ingest.lines.blocks import Origin
from ingest.lines.framing import Framing
from ingest.raw_logs.container_readers import ContainerReaders
from ingest.raw_logs.shippers import ShippedLine, ShippedLog
from ingest.trusted_containers import TrustedContainers
from tests.support.builders.shipped_lines import STARTED

SIZE: Final = 4_000
FACTOR: Final = 8
STAMP: Final = b"2026-11-21T03:13:30.1Z stderr "


def framed(text: bytes) -> None:
    Framing(Origin("a", STARTED)).feed(text)


def a_value_of_many_lines(size: int) -> None:
    framed(b'I1121 03:06:23.217054 1 a.go:1] "m" k=<\n' + b"\tx\n" * size + b" >\n")


def many_values_of_one_line(size: int) -> None:
    framed(b'I1121 03:06:23.217054 1 a.go:1] "m" k=<\n' + b" >k=<\n" * size)


def parts_of_the_container_runtime(size: int) -> None:
    framed((STAMP + b"P x\n") * size + STAMP + b"F x\n")


def parts_of_a_shipped_line(size: int) -> None:
    container = ShippedLog("kai", "a", "b")
    readers = ContainerReaders(TrustedContainers(["*/*/*"]))
    list(readers.take([ShippedLine(container, b"x", STARTED, is_partial=True)] * size, 0, 0.0))


def letters_behind_a_tag(size: int) -> None:
    parse_tagged("[GPU_FILTER] " + "a" * size * 2)


def seconds(read: Callable[[int], None], size: int) -> float:
    """The least of a few: others use the machine too."""
    taken = []
    for _ in range(3):
        began = time.process_time()
        read(size)
        taken.append(time.process_time() - began)
    return min(taken)


@pytest.mark.parametrize(
    "read",
    [
        a_value_of_many_lines, many_values_of_one_line, parts_of_the_container_runtime, parts_of_a_shipped_line,
        letters_behind_a_tag,
    ],
)  # fmt: skip
def test_m11_time_grows_with_the_input_and_not_with_its_square(read: Callable[[int], None]) -> None:
    # Between 8 and 64; the few milliseconds that any measurement may be wrong by do not count.
    assert seconds(read, FACTOR * SIZE) < 3 * FACTOR * seconds(read, SIZE) + 0.02
