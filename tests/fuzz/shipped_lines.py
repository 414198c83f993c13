"""What log shippers send, broken: bytes and values of their JSON, and the lines of schedulers within."""

import json
import random
from collections.abc import Iterator
from typing import Final

from ingest.readers.raw_logs.container_readers import ContainerReaders
from ingest.readers.raw_logs.shippers import lines_of_record
from ingest.reading.trusted_containers import TrustedContainers
from tests.fuzz import log_lines
from tests.fuzz.mutate import other_bytes, other_value
from tests.fuzz.readable import check
from tests.support.builders.shipped_lines import FORMS, record

_SECONDS_APART: Final = 0.01


def outcomes(count: int, seed: int) -> Iterator[str]:
    """Of each of ``count`` records: whether it was read, and how many lines it had."""
    chance, readers = random.Random(seed), ContainerReaders(TrustedContainers(["*/*/*"]))
    lines = log_lines.mutated(log_lines.known_lines(), count, seed)
    for number, line in enumerate(lines):
        shipped = lines_of_record(_broken(line.decode(errors="replace"), number, chance))
        if shipped is None:
            yield "no record of a shipper"
            continue
        check(readers.take(shipped, number, number * _SECONDS_APART))
        check(readers.settle(number * _SECONDS_APART))
        yield f"{min(len(shipped), 2)} lines" + (" or more" if len(shipped) > 1 else "")


def _broken(text: str, number: int, chance: random.Random) -> bytes:
    names = ("kai", f"scheduler-{number % 7}", "scheduler")
    whole = record(chance.choice(FORMS), text, names=names, tag=chance.choice("FFFP"))
    way = chance.random()
    if way < 0.4:
        return whole
    if way < 0.7:
        return other_bytes(whole, chance)
    changed = other_value(json.loads(whole), chance)
    return json.dumps(changed, ensure_ascii=False).encode(errors="surrogatepass")
