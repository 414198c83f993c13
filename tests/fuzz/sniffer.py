"""The sniffer's lines and requests, broken."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from ingest.lines.blocks import Lines, Origin
from ingest.readers.sniffer import SnifferLog
from tests.fuzz.mutate import NAUGHTY, NUMBERS, change_bytes, change_value
from tests.fuzz.readable import check
from tests.support.builders.sniffer_lines import DOCUMENT

_STARTED: Final = datetime(2026, 11, 21, tzinfo=UTC)
_LINES: Final = [line for line in DOCUMENT.splitlines() if line]


def feed_lines(count: int, seed: int) -> Iterator[str]:
    """Feed ``count`` broken lines, and yield what became of each."""
    chance, reader, origin = random.Random(seed), SnifferLog(), Origin("sniffer.log", reference=_STARTED)
    for _ in range(count):
        line = _break_line(chance).replace(b"\n", b" ")
        before = dict(reader.counts.lines)
        check(reader.feed(Lines(origin, [line])))
        yield next(name for name, total in reader.counts.lines.items() if total != before.get(name, 0))


def feed_requests(count: int, seed: int) -> Iterator[str]:
    """Feed ``count`` invented requests, and yield what became of each."""
    chance, reader = random.Random(seed), SnifferLog()
    for number in range(count):
        events = reader.send(_invent_request(chance, number), _STARTED + timedelta(seconds=number))
        check(events)
        yield "event" if events else "unknown"


def _break_line(chance: random.Random) -> bytes:
    line = chance.choice(_LINES)
    if chance.random() < 0.5:
        return change_bytes(line, chance)
    changed = change_value(orjson.loads(line), chance)
    try:
        return orjson.dumps(changed)
    except TypeError:  # a number of more than 64 bits, a lone surrogate
        return repr(changed).encode(errors="replace")


def _invent_request(chance: random.Random, number: int) -> dict[str, Any]:
    """Invent a request of texts, as gRPC has them: pods and conditions of any number, as a caller may make them up."""
    made_up = f"{chance.choice(('pod', 'node'))}-{number}"
    values = (*NAUGHTY, made_up, made_up, "Ready", str(chance.choice(NUMBERS)), "x" * chance.randrange(1_500))
    fields = {name: chance.choice(values) for name in ("pod", "node", "event", "payload", "timestamp")}
    return fields | {"endpoint": chance.choice(("podUpdate", "nodeUpdate", "podDelete", chance.choice(NAUGHTY)))}
