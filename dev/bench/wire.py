"""Bytes of an attempt and of the states that it refers to: in the spool, and on the way to Kafka."""

import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

import orjson
import zstandard

from dev.bench import cluster
from dev.bench.cluster import DEVICES_PER_NODE
from dev.bench.report import Figure, Result
from scheduler.publish.spool.frames import Entry, EntryKind, measure
from schemas.codec.records import EncodedRecord
from schemas.topics import DECISIONS, NODE_STATES, Topic

NODES = 5_000
WARM_UP = 20
"""Attempts before the one that is measured, so that revisions differ from node to node."""
LEVEL = 3
"""Level with which aiokafka compresses."""
LARGEST = 5
"""Number of columns that a note names."""


def measure_wire() -> Result:
    """Measure the bytes of one attempt on nodes of which none, some or all have changed since the attempt before."""
    first = next(iter(cluster.iterate_attempts_and_states(NODES, 1)))
    return Result(
        "wire",
        "The records of one attempt: frames of the spool; and zstd of the records for Kafka, a batch a partition",
        f"{NODES:,} nodes x {DEVICES_PER_NODE} devices in use, no node fits; after {WARM_UP} attempts",
        (
            *_iterate_figures("1 % of the nodes changed", *_build_later(0.01)),
            *_iterate_figures("nothing changed", *_build_later(0)),
            *_iterate_figures("every device changed", *_build_later(1)),
            *_iterate_figures("the first attempt", *first),
        ),
    )


def _build_later(changing: float) -> tuple[list[EncodedRecord], list[EncodedRecord]]:
    attempts = cluster.iterate_attempts_and_states(NODES, WARM_UP + 1, changing=changing)
    return next(islice(attempts, WARM_UP, None))


def _iterate_figures(case: str, states: list[EncodedRecord], decisions: list[EncodedRecord]) -> Iterator[Figure]:
    spool = _measure_spool(NODE_STATES, states), _measure_spool(DECISIONS, decisions)
    sent = _measure_sent(NODE_STATES, states), _measure_sent(DECISIONS, decisions)
    for way, (of_states, of_decisions) in (("spool", spool), ("wire", sent)):
        note = f"decisions {of_decisions / 1e3:.1f}, {len(states)} states {of_states / 1e3:.1f}"
        yield Figure(f"{case}: {way}", (of_states + of_decisions) / 1e3, "kB", note=note)
    for name, records in (("decisions", decisions), ("states", states)):
        if records:
            yield Figure(
                f"{case}: JSON of {name}", sum(len(record.value) for record in records) / 1e3, "kB",
                note=_list_columns(records),
            )  # fmt: skip


def _measure_spool(topic: Topic, records: Sequence[EncodedRecord]) -> int:
    return measure(Entry(EntryKind.VERDICT, record._replace(topic=topic.name), 0) for record in records)


def _measure_sent(topic: Topic, records: Sequence[EncodedRecord]) -> int:
    """Measure the batches with headers and keys. A producer makes one batch of the records for one partition."""
    batches: dict[int, list[bytes]] = defaultdict(list)
    for record in records:
        headers = b"".join(name.encode() + value for name, value in record.headers)
        # Which hash does not matter for the size.
        batches[zlib.crc32(record.key) % topic.partitions].append(record.key + headers + record.value)
    return sum(len(_compress(b"".join(batch))) for batch in batches.values())


def _compress(value: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=LEVEL).compress(value)


def _list_columns(records: Sequence[EncodedRecord]) -> str:
    """List the fields that take most: kB as JSON, and compressed by themselves."""
    texts: dict[str, bytes] = defaultdict(bytes)
    for record in records:
        for field, value in orjson.loads(record.value).items():
            texts[field] += orjson.dumps(value)
    largest = sorted(texts.items(), key=lambda item: -len(item[1]))[:LARGEST]
    return ", ".join(f"{field} {len(text) / 1e3:.0f} ({len(_compress(text)) / 1e3:.1f})" for field, text in largest)
