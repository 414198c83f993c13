"""Lines of a scheduler's log as they should not be: cut, doubled, with pieces of others inside, numbers gone wild.

Whole lines stand between them, so that attempts begin and continue. A consumer must be able to read every event, no
block may take long, and memory must stay where it is.
"""

import random
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final

from ingest.hami.grammar import spellings
from ingest.hami.reader import HamiLog
from ingest.kai import KaiLog
from ingest.lines.blocks import Origin
from ingest.lines.framing import Framing
from ingest.protocol import LogReader
from schemas.codec.records import Rejected, decode, encode

BLOCK: Final = 500
SLOWEST_SECONDS: Final = 5.0
"""Of CPU, for a block of lines."""
MEMORY_BYTES: Final = 64 * 1024**2
"""More than a reader full of attempts takes."""

_WHOLE: Final = Path(__file__).parents[1] / "conformance" / "cases" / "logs" / "038.log"
_KAI: Final = Path(__file__).parents[1] / "unit" / "ingest" / "kai" / "cases"
_WRITTEN: Final = datetime(2026, 12, 31, tzinfo=UTC)
_WILD: Final = (
    b"-1", b"0", b"99999999999999999999", b"NaN", b"1e400", b"0x10", b"", b"\xff\xfe", b"[" * 50, b'"', b"\\", b"=<",
    b" > ",
)  # fmt: skip
_TOKENS: Final = (
    b' pod="', b' node="', b' reason="', b'"', b"] ", b"=", b"{", b"}", b"[", b"]", b",", b"/", b"(", b")", b":", b"\t",
    b"\x1b[31m",
)  # fmt: skip


class BrokenPromiseError(AssertionError):
    """A reader emitted an event that can't be read, or took too much time or memory."""


def outcomes(count: int, seed: int) -> Iterator[str]:
    """What became of each of ``count`` lines: event, noise, unknown, or nothing for one that was joined to others."""
    samples = [sample.encode() for spelling in spellings() for sample in spelling.samples]
    yield from _read(HamiLog(), [*samples, *_WHOLE.read_bytes().splitlines()], count, seed)


def kai_outcomes(count: int, seed: int) -> Iterator[str]:
    """The same of KAI's log."""
    cases = sorted(_KAI.glob("*.log"))
    yield from _read(KaiLog(), [line for case in cases for line in case.read_bytes().splitlines()], count, seed)


def _read(reader: LogReader, known: Sequence[bytes], count: int, seed: int) -> Iterator[str]:
    lines, framing = mutated(known, count, seed), Framing(Origin("mutated", _WRITTEN))
    tracemalloc.start()
    try:
        while block := list(islice(lines, BLOCK)):
            before = dict(reader.counts.lines)
            _feed(reader, framing, b"\n".join(block) + b"\n")
            yield from _spread(before, reader.counts.lines, len(block))
    finally:
        tracemalloc.stop()


def _feed(reader: LogReader, framing: Framing, data: bytes) -> None:
    begun = time.process_time()
    found = framing.feed(data)
    events = list(reader.feed(found)) if found else []
    if (seconds := time.process_time() - begun) > SLOWEST_SECONDS:
        raise BrokenPromiseError(f"{BLOCK} lines took {seconds:.1f} s of CPU")
    for event in events:
        record = encode(event)
        again = decode(record.value, record.headers)
        if isinstance(again, Rejected):
            raise BrokenPromiseError(f"{event.id}: {again}")
    if (held := tracemalloc.get_traced_memory()[0]) > MEMORY_BYTES:
        raise BrokenPromiseError(f"{held / 1024**2:.0f} MiB are held")


def _spread(before: dict[str, int], after: dict[str, int], lines: int) -> Iterator[str]:
    for outcome, total in after.items():
        for _ in range(total - before[outcome]):
            yield outcome
    for _ in range(lines - sum(after.values()) + sum(before.values())):
        yield "joined or empty"


def mutated(lines: Sequence[bytes], count: int, seed: int) -> Iterator[bytes]:
    """``count`` lines, every one of them made from one of ``lines``."""
    chance = random.Random(seed)
    for _ in range(count):
        line = chance.choice(lines)
        for _ in range(chance.choice((0, 1, 1, 2, 5))):
            line = _once(line, lines, chance)
        yield line.replace(b"\n", b" ")


def _once(line: bytes, lines: Sequence[bytes], chance: random.Random) -> bytes:
    start = chance.randrange(len(line) + 1)
    stop = min(len(line), start + chance.choice((1, 2, 8, 40, 200)))
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
            return _renumbered(line, chance)


def _renumbered(line: bytes, chance: random.Random) -> bytes:
    digits = [place for place, byte in enumerate(line) if 48 <= byte < 58]
    if not digits:
        return line
    place = chance.choice(digits)
    return line[:place] + chance.choice(_WILD) + line[place + 1 :]
