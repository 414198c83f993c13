"""Time grows with the input and not with its square: of eight times the input it is eight times, not sixty-four.

Of each reader: many lines, and a line of which each part in turn is long.
"""

import time
from collections.abc import Callable, Iterator
from typing import Final

import orjson
import pytest

from ingest.lines.blocks import Lines, Origin
from ingest.lines.framing import Framing
from ingest.readers.hami.reader import HamiLog
from ingest.readers.kai import KaiLog
from ingest.readers.kai.tags import parse_tagged
from ingest.readers.kube import KubeEvents
from ingest.readers.raw_logs.container_readers import ContainerReaders
from ingest.readers.raw_logs.shippers import ShippedLine, ShippedLog, parse_record
from ingest.readers.sniffer import SnifferLog
from ingest.reading.protocol import LogReader
from ingest.reading.trusted_containers import TrustedContainers
from tests.fuzz.log_lines import list_hami_lines, list_kai_lines
from tests.support.builders.api_server_objects import an_event, an_old_event
from tests.support.builders.hami_lines import write_failure, write_fit, write_request, write_start
from tests.support.builders.shipped_lines import STARTED, build_otel_resource
from tests.support.builders.sniffer_lines import DOCUMENT
from tests.support.growth import is_linear
from tests.support.stress import IS_STRESS

SIZE: Final = 4_000
STAMP: Final = b"2026-11-21T03:13:30.1Z stderr "


def read_framed(text: bytes) -> None:
    Framing(Origin("a", STARTED)).feed(text)


def read_by(reader: LogReader, lines: list[bytes]) -> None:
    list(reader.feed(Lines(Origin("a", STARTED), lines)))


def a_value_of_many_lines(size: int) -> None:
    read_framed(b'I1121 03:06:23.217054 1 a.go:1] "m" k=<\n' + b"\tx\n" * size + b" >\n")


def read_many_values_of_one_line(size: int) -> None:
    read_framed(b'I1121 03:06:23.217054 1 a.go:1] "m" k=<\n' + b" >k=<\n" * size)


def read_parts_of_the_container_runtime(size: int) -> None:
    read_framed((STAMP + b"P x\n") * size + STAMP + b"F x\n")


def read_parts_of_a_shipped_line(size: int) -> None:
    container = ShippedLog("kai", "a", "b")
    readers = ContainerReaders(TrustedContainers(["*/*/*"]))
    list(readers.take([ShippedLine(container, b"x", STARTED, is_partial=True)] * size, 0, 0.0))


def read_lines_of_a_shipped_record(size: int) -> None:
    resource = build_otel_resource(["hello"] * (size // 4), STARTED, ("kai", "a", "b"))
    parse_record(orjson.dumps({"resourceLogs": [resource]}))


def read_letters_after_a_tag(size: int) -> None:
    parse_tagged("[GPU_FILTER] " + "a" * size * 2)


def read_attempts_of_hami(size: int) -> None:
    lines = [
        line
        for number in range(size // 40)
        for line in (
            write_start(seconds=number),
            write_request(1, seconds=number),
            write_failure(1, f"ml/pod-{number}", seconds=number),
        )
    ]
    read_by(HamiLog(), lines)


def read_nodes_of_one_attempt_of_hami(size: int) -> None:
    nodes = [write_fit(f"node{number}", "3.5", seconds=0.1) for number in range(size // 20)]
    read_by(HamiLog(), [write_start(), write_request(1), *nodes, write_failure(1)])


def read_lines_of_kai(size: int) -> None:
    lines_of_cases = list_kai_lines()
    read_by(KaiLog(), [lines_of_cases[number % len(lines_of_cases)] for number in range(size // 4)])


def read_lines_of_the_sniffer(size: int) -> None:
    read_by(SnifferLog(), (DOCUMENT.splitlines() * size)[: size // 10])


def read_nodes_in_an_event_of_hami(size: int) -> None:
    nodes = ",".join(f"node{number}:3.5" for number in range(size))
    KubeEvents().read_object(
        "event", an_old_event("FilteringSucceed", f"find fit node(n), {size} nodes fit({nodes})"), 0.0
    )


def read_reasons_in_an_event_of_kubernetes(size: int) -> None:
    reasons = ", ".join(f"{number} Insufficient cpu" for number in range(size))
    KubeEvents().read_object("event", an_event("FailedScheduling", f"0/5 nodes are available: {reasons}."), 0.0)


def read_events_of_kubernetes(size: int) -> None:
    reader = KubeEvents()
    for number in range(size // 40):
        reader.read_object(
            "event", an_event("FailedScheduling", f"0/5 nodes are available: {number} Insufficient cpu."), 0
        )
        reader.settle(float(number))


READERS: Final[list[Callable[[int], None]]] = [
    a_value_of_many_lines, read_many_values_of_one_line, read_parts_of_the_container_runtime,
    read_parts_of_a_shipped_line,
    read_lines_of_a_shipped_record, read_letters_after_a_tag, read_attempts_of_hami,
    read_nodes_of_one_attempt_of_hami, read_lines_of_kai,
    read_lines_of_the_sniffer, read_nodes_in_an_event_of_hami, read_reasons_in_an_event_of_kubernetes,
    read_events_of_kubernetes,
]  # fmt: skip


@pytest.mark.parametrize("read", READERS)
def test_m11_time_grows_with_the_input_and_not_with_its_square(read: Callable[[int], None]) -> None:
    assert is_linear(read, SIZE)


LONG: Final = 32_000
"""Characters. Patterns that searched a line again from each character took seconds for half as many."""
FILLS: Final = (b"a", b"1", b" ", b",", b"(", b'"', b"{", b"a,", b"a:1,", b"\\", b"1.", b"=", b"/a", b"] ", b"-", b"<")
SLOWEST_SECONDS: Final = 1.0
"""CPU time. A line that is read in linear time takes a twentieth of it."""


def iterate_lengthened(line: bytes, number: int) -> Iterator[bytes]:
    """Iterate over the line with a long text after each word: all ``FILLS`` under ``make stress``, else one."""
    ends = [
        index
        for index in range(1, len(line))
        if line[index - 1 : index].isalnum() and not line[index : index + 1].isalnum()
    ]
    for position, index in enumerate([*ends, len(line)], start=number):
        for fill in FILLS if IS_STRESS else [FILLS[position % len(FILLS)]]:
            yield line[:index] + (fill * LONG)[:LONG] + line[index:]


def is_slow(reader: LogReader, line: bytes) -> bool:
    # Several times only where it matters: a collection of garbage may fall into any of them.
    return all(measure_seconds(reader, line) > SLOWEST_SECONDS for _ in range(4))


def measure_seconds(reader: LogReader, line: bytes) -> float:
    began = time.process_time()
    read_by(reader, [line])
    return time.process_time() - began


@pytest.mark.stress
@pytest.mark.parametrize(
    ("reader", "lines"),
    [(HamiLog, list_hami_lines), (KaiLog, list_kai_lines), (SnifferLog, DOCUMENT.splitlines)],
    ids=["hami-log", "kai-log", "sniffer"],
)
def test_m11_a_line_of_which_any_part_is_long_is_read_at_once(
    reader: Callable[[], LogReader], lines: Callable[[], list[bytes]]
) -> None:
    read, lines_of_cases = reader(), list(dict.fromkeys(lines()))[:: 1 if IS_STRESS else 5]
    slow = [
        line
        for number, sample in enumerate(lines_of_cases)
        for line in iterate_lengthened(sample, number)
        if is_slow(read, line)
    ]
    assert not [line[:200] for line in slow]
