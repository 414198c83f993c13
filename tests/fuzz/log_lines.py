"""Lines of a scheduler's log as they should not be: cut, doubled, with pieces of others inside, numbers gone wild.

Whole lines stand between them, so that attempts begin and continue. A consumer must be able to read every event.
"""

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final

from ingest.lines.blocks import Origin
from ingest.lines.framing import Framing
from ingest.readers.hami.grammar import load_spellings
from ingest.readers.hami.reader import HamiLog
from ingest.readers.kai import KaiLog
from ingest.readers.kube_scheduler.reader import KubeSchedulerLog
from ingest.readers.volcano.reader import VolcanoLog
from ingest.reading.protocol import LogReader
from tests.fuzz.limits import BLOCK
from tests.fuzz.readable import check
from tests.support.builders.klog_lines import write_klog

_HAMI: Final = Path(__file__).parents[1] / "conformance" / "cases" / "logs" / "038.log"
_KAI: Final = Path(__file__).parents[1] / "unit" / "ingest" / "readers" / "kai" / "cases"
_WRITTEN: Final = datetime(2026, 12, 31, tzinfo=UTC)
_WILD: Final = (
    b"-1", b"0", b"99999999999999999999", b"NaN", b"1e400", b"0x10", b"", b"\xff\xfe", b"[" * 50, b'"', b"\\", b"=<",
    b" > ",
)  # fmt: skip
_LONG: Final = 1 / 2_000
"""Share of the pieces of a line that are repeated up to so many bytes: a time that grows with its square shows."""
_LONGEST: Final = 64 * 1024
_TOKENS: Final = (
    b' pod="', b' node="', b' reason="', b'"', b"] ", b"=", b"{", b"}", b"[", b"]", b",", b"/", b"(", b")", b":", b"\t",
    b"\x1b[31m",
)  # fmt: skip


def feed_hami_lines(count: int, seed: int) -> Iterator[str]:
    """Feed ``count`` broken lines of HAMi; the outcomes: event, noise, unknown, or joined to other lines."""
    yield from _read(HamiLog(), list_hami_lines(), count, seed)


def feed_kai_lines(count: int, seed: int) -> Iterator[str]:
    """Feed ``count`` broken lines of KAI; the outcomes are as for HAMi."""
    yield from _read(KaiLog(), list_kai_lines(), count, seed)


def feed_kube_scheduler_lines(count: int, seed: int) -> Iterator[str]:
    """Feed ``count`` broken lines of kube-scheduler; the outcomes are as for HAMi."""
    yield from _read(KubeSchedulerLog(), list_kube_scheduler_lines(), count, seed)


def feed_volcano_lines(count: int, seed: int) -> Iterator[str]:
    """Feed ``count`` broken lines of Volcano; the outcomes are as for HAMi."""
    yield from _read(VolcanoLog(), list_volcano_lines(), count, seed)


def list_kube_scheduler_lines() -> list[bytes]:
    """List lines of every kind that the reader knows, of three pods, and some noise."""
    file, words = "schedule_one.go", "0/3 nodes are available: 2 Insufficient cpu, 1 node(s) were unschedulable."
    return [
        write_klog(message.format(pod=f"ml/p{index}"), file, index)
        for index in range(3)
        for message in (
            '"Attempting to schedule pod" pod="{pod}"',
            f'"Unable to schedule pod; no fit; waiting" pod="{{pod}}" err="{words}"',
            f"Unable to schedule {{pod}}: no fit: {words}; waiting",
            '"Error scheduling pod; retrying" err="no answer" pod="{pod}"',
            '"Successfully bound pod to node" pod="{pod}" node="n1" evaluatedNodes=3 feasibleNodes=1',
            '"Preemptor pod preempted victim pod" preemptor="{pod}" victim="ml/old" node="n1"',
            '"Updating pod condition" pod="{pod}" conditionType=PodScheduled',
        )
    ]


def list_volcano_lines() -> list[bytes]:
    """List lines of every kind that the reader knows, of three pods, and some noise."""
    return [
        write_klog(message.format(pod=f"ml/p{index}"), file, index)
        for index in range(3)
        for file, message in (
            ("session.go", "Open Session 1 with <1> Job and <1> Queues"),
            ("allocate.go", "There are <2> nodes for Job <ml/group>"),
            ("predicate_helper.go", "Predicates failed: task {pod} on node n1 fit failed: Insufficient cpu"),
            ("job_info.go", "Task <{pod}> is Pending: 0/2 nodes are unavailable: 2 Insufficient cpu."),
            ("session.go", "Binding Task <{pod}> to node <n1>"),
            ("cache.go", "Updating pod condition for {pod} to (PodScheduled==False)"),
            ("allocate.go", "Try to allocate resource to 1 tasks of Job <ml/group>"),
            ("session.go", "Close Session 1"),
        )
    ]


def list_lines() -> list[bytes]:
    """List unbroken lines of all schedulers."""
    return list_hami_lines() + list_kai_lines()


def list_hami_lines() -> list[bytes]:
    samples = [sample.encode() for spelling in load_spellings() for sample in spelling.samples]
    return [*samples, *_HAMI.read_bytes().splitlines()]


def list_kai_lines() -> list[bytes]:
    return [line for case in sorted(_KAI.glob("*.log")) for line in case.read_bytes().splitlines()]


def _read(reader: LogReader, samples: Sequence[bytes], count: int, seed: int) -> Iterator[str]:
    lines, framing = mutate_lines(samples, count, seed), Framing(Origin("mutated", _WRITTEN))
    while block := list(islice(lines, BLOCK)):
        before = dict(reader.counts.lines)
        framed = framing.feed(b"\n".join(block) + b"\n")
        check(reader.feed(framed) if framed else ())
        yield from _spread(before, reader.counts.lines, len(block))


def _spread(before: dict[str, int], after: dict[str, int], lines: int) -> Iterator[str]:
    for outcome, total in after.items():
        for _ in range(total - before[outcome]):
            yield outcome
    for _ in range(lines - sum(after.values()) + sum(before.values())):
        yield "joined or empty"


def mutate_lines(lines: Sequence[bytes], count: int, seed: int) -> Iterator[bytes]:
    """Yield ``count`` lines, every one of them made from one of ``lines``."""
    chance = random.Random(seed)
    for _ in range(count):
        line = chance.choice(lines)
        for _ in range(chance.choice((0, 1, 1, 2, 5))):
            line = _mutate_line(line, lines, chance)
        yield line.replace(b"\n", b" ")


def _mutate_line(line: bytes, lines: Sequence[bytes], chance: random.Random) -> bytes:
    start = chance.randrange(len(line) + 1)
    stop = min(len(line), start + chance.choice((1, 2, 8, 40, 200)))
    if chance.random() < _LONG:
        return (line[:start] + line[start:stop] * _LONGEST)[:_LONGEST] + line[stop:]
    match chance.randrange(8):
        case 0:
            return line[:start]
        case 1:
            return line[:start] + line[stop:]
        case 2:
            return line[:start] + line[start:stop] * chance.choice((2, 20)) + line[stop:]
        case 3:
            return line[:start] + chance.randbytes(stop - start) + line[stop:]
        case 4:
            return line[:start] + chance.choice(lines)[: stop * 2] + line[stop:]
        case 5:
            return line[:start] + chance.choice(_WILD) + line[stop:]
        case 6:
            return line[:start] + chance.choice(_TOKENS) + line[start:]
        case _:
            return _change_number(line, chance)


def _change_number(line: bytes, chance: random.Random) -> bytes:
    digits = [position for position, byte in enumerate(line) if 48 <= byte < 58]
    if not digits:
        return line
    position = chance.choice(digits)
    return line[:position] + chance.choice(_WILD) + line[position + 1 :]
