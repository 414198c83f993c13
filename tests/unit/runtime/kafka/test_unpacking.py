"""Batches of records as aiokafka reads them: compressed by each codec, broken, and larger than they may be."""

import tracemalloc
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from aiokafka import TopicPartition
from aiokafka.record import default_records, legacy_records
from aiokafka.record._crecords import default_records as compiled
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from pipeline.dead_letter import restore_original, to_dead_letter
from runtime.kafka import unpacking
from runtime.kafka.record import Record
from runtime.kafka.unpacking import MAX_FETCH_BYTES, BoundedPartitionRecords
from schemas.codec.records import UNREADABLE, Rejected, decode

CODECS: Final = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
BOMB: Final = bytes(100_000_000)


def a_batch(values: list[bytes], codec: str, base_offset: int = 0) -> bytes:
    """The batch as a broker sends it: its records have consecutive offsets."""
    options = {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1, "batch_size": 2**30}
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=CODECS[codec], is_transactional=False, **options
    )  # fmt: skip
    for number, value in enumerate(values):
        builder.append(number, timestamp=1_000, key=b"key", value=value, headers=[("ce_id", b"1")])
    # The checksum does not cover the offset, which the broker sets.
    return base_offset.to_bytes(8, "big") + bytes(builder.build())[8:]


def read(fetched: bytes, offset: int = 0) -> tuple[list[Any], int]:
    """Read the records of one fetch, and where the next one begins."""
    records = BoundedPartitionRecords(
        TopicPartition("schedulerlog.decisions", 0), MemoryRecords(fetched), [], offset, None, None, True, 0
    )
    return list(records), records.next_fetch_offset


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_of_a_usual_size_is_read_as_it_was_sent(codec: str) -> None:
    values = [b"%d" % number * number for number in range(300)]
    records, next_offset = read(a_batch(values, codec, base_offset=7), 7)
    assert [record.value for record in records] == values
    assert [record.offset for record in records] == list(range(7, 307))
    assert next_offset == 307


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_m10_a_batch_that_unpacks_to_much_costs_one_dead_letter_and_little_memory(codec: str) -> None:
    bomb = a_batch([b"first", BOMB[: 100_000_000 if codec == "zstd" else 40_000_000]], codec, base_offset=3)
    fetched = a_batch([b"0", b"1", b"2"], "zstd") + bomb + a_batch([b"5"], codec, base_offset=5)
    tracemalloc.start()
    records, next_offset = read(fetched)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60_000_000
    assert [(record.offset, record.value) for record in records if record.offset != 4] == [
        (0, b"0"), (1, b"1"), (2, b"2"), (5, b"5"),
    ]  # fmt: skip
    assert next_offset == 6
    (unreadable,) = [record for record in records if record.offset == 4]
    cause = "the batch at offset 3 can't be read to its end: it unpacks to more than 16777216 bytes"
    assert decode(unreadable.value, unreadable.headers) == Rejected(cause)
    assert dict(unreadable.headers) == {UNREADABLE: cause.encode()}


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_what_is_no_compressed_data_costs_one_dead_letter(codec: str) -> None:
    batch = a_batch([b"a" * 100] * 100, codec)
    broken = batch[:70] + bytes(20) + batch[90:]
    records = BoundedPartitionRecords(TopicPartition("t", 0), MemoryRecords(broken), [], 0, None, None, False, 0)
    (record,) = records
    assert (record.offset, record.value, records.next_fetch_offset) == (99, None, 100)
    assert "the batch at offset 0 can't be read to its end: " in str(decode(None, record.headers))


@pytest.mark.parametrize("module", [default_records, legacy_records, compiled])
def test_aiokafka_decodes_by_the_bounded_decoders(module: Any) -> None:
    for codec in ("gzip", "snappy", "lz4"):
        assert getattr(module, f"{codec}_decode") is getattr(unpacking, f"unpack_{codec}")


def test_a_header_that_is_no_text_costs_one_dead_letter_and_those_before_are_read() -> None:
    batch = a_batch([b"a", b"b", b"c"], "none")
    # The last header's name: the checksum is not looked at.
    index = batch.rindex(b"ce_id")
    broken = batch[:index] + b"\xff" + batch[index + 1 :]
    records = BoundedPartitionRecords(TopicPartition("t", 0), MemoryRecords(broken), [], 0, None, None, False, 0)
    unpacked = list(records)
    assert [record.value for record in unpacked] == [b"a", b"b", None]
    assert unpacked[-1].offset == 2
    assert "can't decode byte 0xff" in str(decode(None, unpacked[-1].headers))
    assert records.next_fetch_offset == 3


def test_m10_the_records_of_a_fetch_are_bounded_and_the_others_are_fetched_again() -> None:
    values = [bytes(1_000_000)] * 12
    batches = [a_batch(values, "zstd"), a_batch(values, "zstd", base_offset=12)]
    offset, sizes = 0, []
    while offset < 24:
        # A broker begins with the batch that holds the offset.
        records, offset = read(b"".join(batches[offset // 12 :]), offset)
        sizes.append([record.offset for record in records])
    assert [number for size in sizes for number in size] == list(range(24))
    assert max(map(len, sizes)) <= MAX_FETCH_BYTES // 1_000_000 + 1


def test_m10_many_short_records_are_counted_by_what_their_objects_take() -> None:
    fetched = a_batch([b""] * 100_000, "zstd")
    offset, counts = 0, []
    while offset < 100_000:
        records, offset = read(fetched, offset)
        counts.append(len(records))
    assert sum(counts) == 100_000
    assert max(counts) < 40_000


def _read(headers: list[tuple[str, bytes]]) -> Record:
    return Record("schedulerlog.decisions", 0, 3, None, None, headers)


def test_the_dead_letter_of_an_unreadable_batch_is_not_replayed() -> None:
    letter = to_dead_letter(_read([(UNREADABLE, b"why")]), "why", datetime(2026, 11, 23, tzinfo=UTC))
    with pytest.raises(ValueError, match="the batch of records was not unpacked"):
        restore_original(_read(letter.headers))
