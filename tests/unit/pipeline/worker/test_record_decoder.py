"""A record that was read before is known again, and says what it would have said if it had been read anew."""

import random
from datetime import timedelta
from typing import Any

import pytest

from pipeline.worker.record_decoder import RecordDecoder
from schemas.codec.records import Record, Rejected, decode, encode, encode_value
from schemas.events import AttemptEvent, DevicesJudged, NodesJudged
from summaries.tally import CountedRecord, count_record
from tests.fuzz.mutate import other_bytes
from tests.support.builders.attempts import STARTED, about, an_attempt

DEVICES = {f"node{number}": [["picked", "CardCordoned", "NumaNotFit"]] for number in range(3)}


def a_try(number: int) -> list[AttemptEvent]:
    common = about() | {"attempt_id": f"{number:032x}", "started_at": STARTED + timedelta(minutes=number)}
    return an_attempt(DEVICES, chosen="node1", **common)


def plain(said: Any) -> Any:
    """What can be compared of what was read."""
    if isinstance(said, DevicesJudged):
        said = count_record(said)
    if isinstance(said, CountedRecord):
        tally = said.tally
        columns = (tally.node_index, tally.devices, tally.rows, tally.owner, tally.code, tally.count)
        head = said.id, str(said.pod), said.scheduler, said.started_at, said.nodes, list(tally.words), tally.container
        return head, [column.tolist() for column in columns], tally.picked, tally.models, tally.is_partial
    return str(said) if isinstance(said, Rejected) else (said.id, encode_value(said))


def read(reading: RecordDecoder, record: Record) -> Any:
    return reading.read(record.value, record.headers)


def test_a_record_that_differs_in_its_attempt_alone_is_told_of_its_own_attempt() -> None:
    reading = RecordDecoder(10**6)
    for number in range(3):
        for event in a_try(number):
            assert plain(read(reading, encode(event))) == plain(event)


def test_counts_of_the_same_rows_are_made_once() -> None:
    reading = RecordDecoder(10**6)
    first, second = (read(reading, encode(a_try(number)[0])) for number in range(2))
    assert first.tally is second.tally
    assert first.attempt_id != second.attempt_id


def test_an_inventory_is_read_once_while_what_is_used_of_it_changes() -> None:
    reading = RecordDecoder(10**6)
    before, after = a_try(0)[0], a_try(1)[0]
    assert isinstance(after, DevicesJudged)
    after = after.model_copy(update={"memory_used_mib": after.memory_used_mib + 1})
    first, second = (read(reading, encode(event)) for event in (before, after))
    assert first.tally is not second.tally
    assert first.nodes is second.nodes
    assert plain(second) == plain(after)


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        (b'"partial":', b'"uuid":["other"],"partial":'),
        (b'"uuid":', b'"verdict":[0],"uuid":'),
        (b'"partial":', b'"new":1,"partial":'),
        (b'"uuid":', b'"new":1,"uuid":'),
        (b'"node_index":[', b'"node_index":[7,'),
        (b'"verdict":[', b'"verdict":[0,'),
    ],
)
def test_halves_of_which_one_says_more_than_its_own_are_read_as_a_whole(said: bytes, instead: bytes) -> None:
    reading = RecordDecoder(10**6)
    record = encode(a_try(0)[0])
    read(reading, record)
    value = record.value.replace(said, instead, 1)
    assert value != record.value
    assert plain(reading.read(value, record.headers)) == plain(decode(value, record.headers))


def test_what_is_remembered_is_bounded() -> None:
    reading = RecordDecoder(0)
    first, second = (read(reading, encode(a_try(number)[0])) for number in range(2))
    assert first.tally is not second.tally
    assert plain(second) == plain(a_try(1)[0])


@pytest.mark.parametrize("kind", [DevicesJudged, NodesJudged])
def test_a_tail_that_gainsays_its_head_is_refused_or_read_as_a_whole(kind: type[AttemptEvent]) -> None:
    reading = RecordDecoder(10**6)
    event = next(each for each in a_try(0) if isinstance(each, kind))
    record = encode(event)
    value = record.value[:-1] + b',"attempt_id":"other"}'
    for head in (value, value.replace(b"hami-scheduler", b"another", 1), value):
        assert plain(reading.read(head, record.headers)) == plain(decode(head, record.headers))


def test_broken_records_are_refused_in_the_same_words() -> None:
    chance, reading = random.Random(5), RecordDecoder(10**6)
    records = [encode(event) for number in range(2) for event in a_try(number)]
    for _ in range(600):
        record = chance.choice(records)
        value = other_bytes(record.value, chance)
        assert plain(reading.read(value, record.headers)) == plain(decode(value, record.headers))
