"""Broken records of log shippers: bytes and values of their JSON, and the lines of schedulers within."""

import json
import random
from collections.abc import Iterator
from typing import Final

from ingest.readers.raw_logs.container_readers import ContainerReaders
from ingest.readers.raw_logs.shippers import parse_record
from ingest.reading.trusted_containers import TrustedContainers
from tests.fuzz import log_lines
from tests.fuzz.mutate import change_bytes, change_value
from tests.fuzz.readable import check
from tests.support.builders.shipped_lines import FORMS, record

_SECONDS_APART: Final = 0.01


def feed_records(count: int, seed: int) -> Iterator[str]:
    """Feed ``count`` broken records: whether each was read, and how many lines it had."""
    chance, readers = random.Random(seed), ContainerReaders(TrustedContainers(["*/*/*"]))
    lines = log_lines.mutate_lines(log_lines.list_lines(), count, seed)
    for number, line in enumerate(lines):
        shipped = parse_record(_break_record(line.decode(errors="replace"), number, chance))
        if shipped is None:
            yield "no record of a shipper"
            continue
        check(readers.take(shipped, number, number * _SECONDS_APART))
        check(readers.settle(number * _SECONDS_APART))
        yield f"{min(len(shipped), 2)} lines" + (" or more" if len(shipped) > 1 else "")


def _break_record(text: str, number: int, chance: random.Random) -> bytes:
    names = ("kai", f"scheduler-{number % 7}", "scheduler")
    shipped = record(chance.choice(FORMS), text, names=names, tag=chance.choice("FFFP"))
    way = chance.random()
    if way < 0.4:
        return shipped
    if way < 0.7:
        return change_bytes(shipped, chance)
    changed = change_value(json.loads(shipped), chance)
    return json.dumps(changed, ensure_ascii=False).encode(errors="surrogatepass")
