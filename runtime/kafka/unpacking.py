"""Bounds on the unpacked size of Kafka's record batches: a batch of a few hundred bytes may hold gigabytes.

A batch that is too large, or unreadable, becomes one record without a value, whose header ``UNREADABLE`` names the
cause: it becomes a dead letter, and the consumer reads on. aiokafka itself has no bound, and would raise its error for
a batch again at every try. This module replaces its decoders and its class of a partition's fetched records, for all
consumers of this process; its version is pinned, and tests/contract/test_library_internals.py names what to read again
when the pin moves.
"""

import gzip
import io
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import aiokafka.consumer.fetcher
import cramjam
import zstandard
from aiokafka.consumer.fetcher import PartitionRecords
from aiokafka.record import default_records, legacy_records
from aiokafka.record._crecords import default_records as compiled_default_records
from aiokafka.record._crecords import legacy_records as compiled_legacy_records

from schemas.codec.records import UNREADABLE

MAX_BATCH_BYTES: Final = 16 * 1024 * 1024
"""Size of one batch, unpacked. Producers close a batch at one MiB, and a dead letter is shorter than ten."""
MAX_FETCH_BYTES: Final = 16 * 1024 * 1024
"""Size of all records that one fetch of a partition returns; the others are fetched again."""
_RECORD_OVERHEAD: Final = 500
"""Bytes of the Python objects of one record: a MiB of the shortest records takes a hundred times as much."""
_CHUNK: Final = 1024 * 1024
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES: Final = 16


class UnpackedTooLargeError(ValueError):
    """The batch holds more than ``MAX_BATCH_BYTES``."""

    def __init__(self) -> None:
        super().__init__(f"it unpacks to more than {MAX_BATCH_BYTES} bytes")


class UnreadableBatch(NamedTuple):
    """The record that stands for the unreadable remainder of a batch, with the attributes of aiokafka's records."""

    offset: int
    timestamp: int
    timestamp_type: int
    headers: list[tuple[str, bytes]]
    key: None = None
    value: None = None
    checksum: None = None


class BoundedPartitionRecords(PartitionRecords):  # type: ignore[misc]
    """Records that one fetch returned of a partition, up to ``MAX_FETCH_BYTES``."""

    def __init__(self, tp: Any, records: Any, aborted_transactions: Any, fetch_offset: int, *options: Any) -> None:
        super().__init__(tp, _Batches(records, fetch_offset), aborted_transactions, fetch_offset, *options)


class _Batches:
    """Batches of one fetch, which ends early when its budget is used up."""

    def __init__(self, records: Any, fetch_offset: int) -> None:
        self._records = records
        self.fetch_offset = fetch_offset
        self.left_bytes = MAX_FETCH_BYTES

    def has_next(self) -> bool:
        return self.left_bytes > 0 and bool(self._records.has_next())

    def next_batch(self) -> "_Batch":
        return _Batch(self._records.next_batch(), self)


class _Batch:
    """A batch of aiokafka whose iteration does not raise."""

    def __init__(self, batch: Any, fetch: _Batches) -> None:
        self._batch = batch
        self._fetch = fetch
        self.next_offset: int = batch.next_offset

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        """Return the record of a control batch."""
        return next(self._batch)

    def __iter__(self) -> Iterator[Any]:
        try:
            for record in self._batch:
                yield record
                # An earlier fetch has returned the records before: if they counted, no fetch would get beyond them.
                if record.offset >= self._fetch.fetch_offset:
                    self._fetch.left_bytes -= _count_bytes(record)
                    if self._fetch.left_bytes <= 0:
                        self.next_offset = record.offset + 1
                        return
        except Exception as error:  # noqa: BLE001 - of any kind: each would be raised again at every try
            yield self._build_unreadable(str(error) or type(error).__name__)

    def _build_unreadable(self, cause: str) -> UnreadableBatch:
        # At the last offset: reading may begin anywhere in the batch.
        first = getattr(self._batch, "base_offset", self._batch.next_offset - 1)
        text = f"the batch at offset {first} can't be read to its end: {cause}"
        return UnreadableBatch(
            offset=self._batch.next_offset - 1,
            timestamp=getattr(self._batch, "max_timestamp", -1),
            timestamp_type=getattr(self._batch, "timestamp_type", 0),
            headers=[(UNREADABLE, text.encode(errors="replace"))],
        )


def _count_bytes(record: Any) -> int:
    headers = sum(len(name) + len(value or b"") + 100 for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers + _RECORD_OVERHEAD


def unpack_zstd(packed: Any) -> bytes:
    """Unpack zstd. Raises ``UnpackedTooLargeError``, ``zstandard.ZstdError``."""
    with zstandard.ZstdDecompressor().stream_reader(bytes(packed), read_across_frames=True) as reader:
        return _unpack_within_bound(reader.read)


def unpack_gzip(packed: Any) -> bytes:
    """Unpack gzip. Raises ``UnpackedTooLargeError``, ``OSError``, ``EOFError``, ``zlib.error``."""
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as reader:
        return _unpack_within_bound(reader.read)


def _unpack_within_bound(read: Callable[[int], bytes]) -> bytes:
    chunks, size = [], 0
    while chunk := read(_CHUNK):
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_BATCH_BYTES:
            raise UnpackedTooLargeError
    return b"".join(chunks)


def unpack_lz4(packed: Any) -> bytes:
    """Unpack LZ4. Raises ``UnpackedTooLargeError``, ``cramjam.DecompressionError``."""
    packed = bytes(packed)
    # A byte of LZ4 holds 255 at most: the output of a short batch is no large allocation.
    output = bytearray(min(MAX_BATCH_BYTES, 255 * len(packed)) + 1)
    try:
        size = cramjam.lz4.decompress_into(packed, output)
    except cramjam.DecompressionError as error:
        if "whole buffer" in str(error):
            raise UnpackedTooLargeError from None
        raise
    return bytes(memoryview(output)[:size])


def unpack_snappy(packed: Any) -> bytes:
    """Unpack one block, or many as Xerial's library frames them. Raises ``UnpackedTooLargeError``, ``struct.error``,
    ``cramjam.DecompressionError``."""
    packed = bytes(packed)
    blocks = _split_xerial_blocks(packed) if packed.startswith(_XERIAL_MAGIC) else iter([packed])
    unpacked, size = [], 0
    for block in blocks:
        # The length is in a block's first bytes; the library refuses a block that unpacks to another one.
        size += cramjam.snappy.decompress_raw_len(block)
        if size > MAX_BATCH_BYTES:
            raise UnpackedTooLargeError
        unpacked.append(bytes(cramjam.snappy.decompress_raw(block)))
    return b"".join(unpacked)


def _split_xerial_blocks(packed: bytes) -> Iterator[bytes]:
    offset = _XERIAL_HEADER_BYTES
    while offset < len(packed):
        (size,) = struct.unpack_from("!i", packed, offset)
        if size < 0:
            raise ValueError("a block of Snappy has a negative length")
        yield packed[offset + 4 : offset + 4 + size]
        offset += 4 + size


aiokafka.consumer.fetcher.PartitionRecords = BoundedPartitionRecords
for _decoders in (default_records, legacy_records, compiled_default_records, compiled_legacy_records):
    for _name, _unpack in (
        ("gzip_decode", unpack_gzip),
        ("lz4_decode", unpack_lz4),
        ("snappy_decode", unpack_snappy),
        ("zstd_decode", unpack_zstd),
    ):
        setattr(_decoders, _name, _unpack)
