"""A dead letter is the record byte for byte, unless it is longer than the topic takes."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from pipeline.admin.dead_letters import to_json_line
from pipeline.dead_letter import MAX_HEADER_BYTES, MAX_VALUE_BYTES, restore_original, to_dead_letter
from runtime.kafka.record import Record
from schemas.codec.records import EncodedRecord
from schemas.topics import DEAD_LETTERS

FAILED_AT = datetime(2026, 11, 21, 3, 6, 23, tzinfo=UTC)


HEADERS = [("ce_id", b"a"), ("dead_letter_cause", b"b")]


def a_record(
    key: bytes | None = b"llm/trainer",
    value: bytes | None = b"no JSON",
    headers: Sequence[tuple[str, bytes]] = tuple(HEADERS),
) -> Record:
    return Record("schedulerlog.decisions", 7, 41, key, value, headers)


def read_back(letter: EncodedRecord) -> Record:
    """Return the dead letter as it is read from its topic."""
    return Record(DEAD_LETTERS.name, 0, 3, letter.key, letter.value, letter.headers)


def test_a_record_comes_back_byte_for_byte() -> None:
    record = restore_original(read_back(to_dead_letter(a_record(), "value: not JSON", FAILED_AT)))
    assert record == (b"llm/trainer", b"no JSON", HEADERS, "schedulerlog.decisions", None)


def test_a_value_that_no_topic_takes_is_cut_and_not_replayed() -> None:
    letter = to_dead_letter(a_record(value=b"x" * (MAX_VALUE_BYTES + 1)), "value: not JSON", FAILED_AT)
    assert len(letter.value) == 65_536
    assert dict(letter.headers)["dead_letter_cut"] == b"the value had 8388609 bytes, these are the first 65536"
    with pytest.raises(ValueError, match="offset 3 can't be replayed: the value had 8388609 bytes"):
        restore_original(read_back(letter))


def test_headers_that_no_topic_takes_are_left_out() -> None:
    letter = to_dead_letter(a_record(headers=[("a", b"x" * MAX_HEADER_BYTES)]), "value: not JSON", FAILED_AT)
    assert sum(len(value) for _, value in letter.headers) < 1_000
    with pytest.raises(ValueError, match="its own headers, 1048577 bytes, were left out"):
        restore_original(read_back(letter))


def test_a_key_that_no_topic_takes_is_left_out() -> None:
    letter = to_dead_letter(a_record(key=b"k" * 70_000), "value: not JSON", FAILED_AT)
    assert letter.key is None
    with pytest.raises(ValueError, match="its key, 70000 bytes, was left out"):
        restore_original(read_back(letter))


def test_a_record_without_key_and_value_has_a_dead_letter_that_the_client_sends() -> None:
    letter = to_dead_letter(a_record(key=None, value=None), "value: the record has no value", FAILED_AT)
    assert letter.value == b""
    with pytest.raises(ValueError, match="it had neither key nor value"):
        restore_original(read_back(letter))


def test_the_longest_that_is_not_cut_is_below_the_limit_of_the_topic() -> None:
    assert DEAD_LETTERS.max_message_bytes > MAX_VALUE_BYTES + MAX_HEADER_BYTES + 10_000


def test_a_dead_letter_as_json_names_its_place_and_that_of_the_record() -> None:
    line = to_json_line(read_back(to_dead_letter(a_record(key=b"\xff\n"), "value: not JSON", FAILED_AT)))
    assert "\n" not in line
    assert json.loads(line) == {
        "offset": 3, "topic": "schedulerlog.decisions", "partition": "7", "record_offset": "41", "bytes": 7,
        "at": "2026-11-21T03:06:23.000000Z", "cause": "value: not JSON", "cut": "", "key": "\ufffd\n",
    }  # fmt: skip
