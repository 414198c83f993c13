"""A dead letter is the record byte for byte, unless it is longer than the topic takes."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from pipeline.admin.dead_letters import to_json_line
from pipeline.dead_letter import MAX_HEADER_BYTES, MAX_VALUE_BYTES, restore_original, to_dead_letter
from runtime.kafka.record import Outgoing
from schemas.topics import DEAD_LETTERS

FAILED_AT = datetime(2026, 11, 21, 3, 6, 23, tzinfo=UTC)


@dataclass(frozen=True)
class Read:
    value: bytes | None = b"no JSON"
    headers: list[tuple[str, bytes]] = field(default_factory=lambda: [("ce_id", b"a"), ("dead_letter_cause", b"b")])
    topic: str = "schedulerlog.decisions"
    partition: int = 7
    offset: int = 41
    key: bytes | None = b"llm/trainer"


def read_again(letter: Outgoing) -> Read:
    """Return the dead letter as it is read from its topic."""
    return Read(letter.record.value, list(letter.record.headers), DEAD_LETTERS.name, 0, 3, letter.record.key)


def test_a_record_comes_back_byte_for_byte() -> None:
    topic, record = restore_original(read_again(to_dead_letter(Read(), "value: not JSON", FAILED_AT)))
    assert (topic, record.key, record.value, list(record.headers)) == (
        "schedulerlog.decisions", b"llm/trainer", b"no JSON", Read().headers,
    )  # fmt: skip


def test_a_value_that_no_topic_takes_is_cut_and_not_replayed() -> None:
    letter = to_dead_letter(Read(b"x" * (MAX_VALUE_BYTES + 1)), "value: not JSON", FAILED_AT)
    assert len(letter.record.value) == 65_536
    assert dict(letter.record.headers)["dead_letter_cut"] == b"the value had 8388609 bytes, these are the first 65536"
    with pytest.raises(ValueError, match="offset 3 can't be replayed: the value had 8388609 bytes"):
        restore_original(read_again(letter))


def test_headers_that_no_topic_takes_are_left_out() -> None:
    letter = to_dead_letter(Read(headers=[("a", b"x" * MAX_HEADER_BYTES)]), "value: not JSON", FAILED_AT)
    assert sum(len(value) for _, value in letter.record.headers) < 1_000
    with pytest.raises(ValueError, match="its own headers, 1048577 bytes, were left out"):
        restore_original(read_again(letter))


def test_a_key_that_no_topic_takes_is_left_out() -> None:
    letter = to_dead_letter(Read(key=b"k" * 70_000), "value: not JSON", FAILED_AT)
    assert letter.record.key is None
    with pytest.raises(ValueError, match="its key, 70000 bytes, was left out"):
        restore_original(read_again(letter))


def test_a_record_without_key_and_value_has_a_dead_letter_that_the_client_sends() -> None:
    letter = to_dead_letter(Read(key=None, value=None), "value: the record has no value", FAILED_AT)
    assert letter.record.value == b""
    with pytest.raises(ValueError, match="it had neither key nor value"):
        restore_original(read_again(letter))


def test_the_longest_that_is_not_cut_is_below_the_limit_of_the_topic() -> None:
    assert DEAD_LETTERS.max_message_bytes > MAX_VALUE_BYTES + MAX_HEADER_BYTES + 10_000


def test_a_dead_letter_as_json_names_its_place_and_that_of_the_record() -> None:
    line = to_json_line(read_again(to_dead_letter(Read(key=b"\xff\n"), "value: not JSON", FAILED_AT)))
    assert "\n" not in line
    assert json.loads(line) == {
        "offset": 3, "topic": "schedulerlog.decisions", "partition": "7", "record_offset": "41", "bytes": 7,
        "at": "2026-11-21T03:06:23.000000Z", "cause": "value: not JSON", "cut": "", "key": "\ufffd\n",
    }  # fmt: skip
