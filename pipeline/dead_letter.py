"""Dead letters: a record that could not be processed, byte for byte, behind headers that say where it was read and why
it failed. The log has a few lines a minute about them, because a producer must not be able to fill a worker's log."""

import time
from collections.abc import Callable
from datetime import datetime
from logging import Logger
from typing import Final

from runtime.kafka.record import Record, identify_record
from schemas.codec.records import UNREADABLE, EncodedRecord, format_rfc3339
from schemas.topics import DEAD_LETTER_HEADERS, DEAD_LETTERS

# The record itself may be as long as the topic allows; its cause must not make the dead letter longer than that.
_MAX_CAUSE_CHARACTERS: Final = 2_000
MAX_VALUE_BYTES: Final = 8 * 1024 * 1024
"""A compressed record of a MiB may hold a GiB: one that no topic takes would be sent again without an end."""
MAX_HEADER_BYTES: Final = 1024 * 1024
_MAX_KEY_BYTES: Final = 64 * 1024
_CUT_TO: Final = 64 * 1024


def to_dead_letter(record: Record, cause: str, time: datetime) -> EncodedRecord:
    """Make the dead letter of a record. It is cut where it is too long for the topic, and says so."""
    key, value, headers, cut = record.key, record.value, list(record.headers), []
    if value is not None and len(value) > MAX_VALUE_BYTES:
        cut.append(f"the value had {len(value)} bytes, these are the first {_CUT_TO}")
        value = value[:_CUT_TO]
    if (size := sum(len(name) + len(content or b"") for name, content in headers)) > MAX_HEADER_BYTES:
        cut.append(f"its own headers, {size} bytes, were left out")
        headers = []
    if key is not None and len(key) > _MAX_KEY_BYTES:
        cut.append(f"its key, {len(key)} bytes, was left out")
        key = None
    if any(name == UNREADABLE for name, _ in headers):
        cut.append("the batch of records was not unpacked")
    elif key is None and value is None:
        cut.append("it had neither key nor value")
    if key is None and value is None:
        # The client sends no record without both.
        value = b""
    position = (record.topic, str(record.partition), str(record.offset))
    values = (*position, cause[:_MAX_CAUSE_CHARACTERS], format_rfc3339(time), "; ".join(cut))
    # A cause may quote a lone surrogate of the record, which UTF-8 has no bytes for.
    why = [(name, text.encode(errors="replace")) for name, text in zip(DEAD_LETTER_HEADERS, values, strict=True)]
    # A record of any producer may lack a key or a value; the records of the contract never do.
    return EncodedRecord(key, value, [*why, *headers], DEAD_LETTERS.name)  # type: ignore[arg-type]


def restore_original(record: Record) -> EncodedRecord:
    """Restore the record of a dead letter, for the topic that it came from.

    Raises ``ValueError`` for a record that lacks the headers of a dead letter, and for one that was cut.
    """
    headers = list(record.headers)
    # By place and not by name: the record's own headers may be called the same.
    why = dict(headers[: len(DEAD_LETTER_HEADERS)])
    if list(why) != list(DEAD_LETTER_HEADERS):
        raise ValueError(
            f"offset {record.offset} is not a dead letter: its first headers are {[name for name, _ in headers]}"
        )
    if why["dead_letter_cut"]:
        raise ValueError(f"offset {record.offset} can't be replayed: {why['dead_letter_cut'].decode()}")
    headers_before = headers[len(DEAD_LETTER_HEADERS) :]
    topic = why["dead_letter_topic"].decode()
    return EncodedRecord(record.key, record.value, headers_before, topic)  # type: ignore[arg-type]


LINES: Final = 10
PERIOD_SECONDS: Final = 60.0


class DeadLetterLog:
    """Warnings of ``logger``, at most ``LINES`` in ``PERIOD_SECONDS``; the first line after them counts the omitted
    ones. ``clock`` gives seconds and never goes back."""

    def __init__(self, logger: Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger, self._clock = logger, clock
        self._began_at = -PERIOD_SECONDS
        self._records = 0
        """Dead letters since the period began."""

    def note(self, record: Record, cause: str) -> None:
        """Warn which record becomes a dead letter, and why."""
        self._begin_period()
        self._records += 1
        if self._records > LINES:
            return
        self._logger.warning(
            "dead-lettered %s[%d]@%d: %.500s", record.topic, record.partition, record.offset, cause,
            extra=identify_record(record.headers),
        )  # fmt: skip
        if self._records == LINES:
            self._logger.warning("more dead letters within this minute are counted and not logged")

    def _begin_period(self) -> None:
        now = self._clock()
        if now - self._began_at < PERIOD_SECONDS:
            return
        if self._records > LINES:
            self._logger.warning("%d more records were dead-lettered and not logged", self._records - LINES)
        self._began_at, self._records = now, 0
