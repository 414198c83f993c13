"""Broken records of every type for the processes that read the pipeline's topics: index writer, placements, alerts."""

import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pipeline.alerts.inputs import decode_inputs
from pipeline.index.batch_builder import DocumentBatchBuilder
from pipeline.index.summary_parts import SummaryParts
from pipeline.placements.input_decoder import decode_input
from runtime.kafka.record import Record
from schemas.codec.records import EncodedRecord, Rejected
from schemas.topics import ALERTS, ATTEMPTS, DEAD_LETTERS, DECISIONS, NODES, PODS, RAW_LOGS
from tests.fuzz.records import break_record

_GOLDEN: Final = Path(__file__).parents[1] / "contract" / "golden"
_TOPICS: Final = (ATTEMPTS, DECISIONS, NODES, PODS, DEAD_LETTERS, ALERTS, RAW_LOGS)
_NOW: Final = datetime(2026, 12, 31, tzinfo=UTC)
_BATCH: Final = 100


def feed_index(count: int, seed: int) -> Iterator[str]:
    """Feed the index writer ``count`` broken records, and yield what becomes of each."""
    builder = DocumentBatchBuilder(SummaryParts(max_bytes=8 * 1024**2), _BATCH, 8 * 1024**2)
    for number, record in enumerate(_break_records(count, seed), start=1):
        builder.add(record)
        if number % _BATCH == 0 or number == count:
            for (_, outcome), total in builder.take().outcomes.items():
                yield from [outcome] * total


def feed_inputs(count: int, seed: int) -> Iterator[str]:
    """Feed placements and alerts ``count`` broken records, and yield what becomes of each."""
    for record in _break_records(count, seed):
        item = decode_input(record.value, record.headers, _NOW)
        is_used = bool(decode_inputs(record)) or not (item is None or isinstance(item, Rejected))
        yield "used" if is_used else "rejected" if isinstance(item, Rejected) else "passed over"


def _break_records(count: int, seed: int) -> Iterator[Record]:
    chance, golden = random.Random(seed), _read_golden()
    for offset in range(count):
        record = break_record(chance.choice(golden), chance)
        topic = chance.choice(_TOPICS).name
        yield Record(topic, 0, offset, record.key, record.value, record.headers, offset, _acknowledge)


def _read_golden() -> list[EncodedRecord]:
    paths = sorted(path for path in _GOLDEN.glob("*/*.json") if not path.name.endswith(".headers.json"))
    return [_read(path) for path in paths]


def _read(path: Path) -> EncodedRecord:
    headers: dict[str, str] = json.loads(path.with_suffix(".headers.json").read_text(encoding="utf-8"))
    named = [(name, value.encode()) for name, value in headers.items() if name != "key"]
    return EncodedRecord(headers.get("key", "").encode(), path.read_bytes(), named)


_acknowledge: Final[Callable[[], object]] = object
