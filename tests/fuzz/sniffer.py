"""The sniffer's lines and requests, broken."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from ingest.lines.blocks import Lines, Origin
from ingest.readers.sniffer import SnifferLog
from tests.fuzz.mutate import NAUGHTY, NUMBERS, other_bytes, other_value
from tests.fuzz.readable import check
from tests.support.builders.sniffer_lines import DOCUMENT

_STARTED: Final = datetime(2026, 11, 21, tzinfo=UTC)
_KNOWN: Final = [line for line in DOCUMENT.splitlines() if line]


def line_outcomes(count: int, seed: int) -> Iterator[str]:
    """What became of each of ``count`` lines."""
    chance, reader, origin = random.Random(seed), SnifferLog(), Origin("sniffer.log", reference=_STARTED)
    for _ in range(count):
        line = _broken(chance).replace(b"\n", b" ")
        before = dict(reader.counts.lines)
        check(reader.feed(Lines(origin, [line])))
        yield next(name for name, total in reader.counts.lines.items() if total != before.get(name, 0))


def request_outcomes(count: int, seed: int) -> Iterator[str]:
    """What became of each of ``count`` requests."""
    chance, reader = random.Random(seed), SnifferLog()
    for number in range(count):
        events = reader.send(_request(chance, number), _STARTED + timedelta(seconds=number))
        check(events)
        yield "event" if events else "unknown"


def _broken(chance: random.Random) -> bytes:
    line = chance.choice(_KNOWN)
    if chance.random() < 0.5:
        return other_bytes(line, chance)
    changed = other_value(orjson.loads(line), chance)
    try:
        return orjson.dumps(changed)
    except TypeError:  # a number of more than 64 bits, a lone surrogate
        return repr(changed).encode(errors="replace")


def _request(chance: random.Random, number: int) -> dict[str, Any]:
    """Of texts alone, as gRPC has them: pods and conditions of any number, as a caller may make them up."""
    made_up = f"{chance.choice(('pod', 'node'))}-{number}"
    values = (*NAUGHTY, made_up, made_up, "Ready", str(chance.choice(NUMBERS)), "x" * chance.randrange(1_500))
    fields = {name: chance.choice(values) for name in ("pod", "node", "event", "payload", "timestamp")}
    return fields | {"endpoint": chance.choice(("podUpdate", "nodeUpdate", "podDelete", chance.choice(NAUGHTY)))}
