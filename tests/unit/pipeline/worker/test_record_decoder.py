"""A record whose content was decoded before becomes the event that decoding it again would give."""

import random
from datetime import timedelta
from typing import Any

import pytest

from pipeline.worker.record_decoder import RecordDecoder
from schemas.codec.records import EncodedRecord, Rejected, decode, encode, encode_value
from schemas.events import AttemptEvent, DevicesJudged, NodesJudged
from summaries.tally import CountedRecord, count_record
from tests.fuzz.mutate import other_bytes
from tests.support.builders.attempts import STARTED, about, an_attempt

DEVICES = {f"node{number}": [["picked", "CardCordoned", "NumaNotFit"]] for number in range(3)}


def a_try(number: int) -> list[AttemptEvent]:
    common = about() | {"attempt_id": f"{number:032x}", "started_at": STARTED + timedelta(minutes=number)}
    return an_attempt(DEVICES, chosen="node1", **common)


def plain(event: Any) -> Any:
    """The parts of an event that can be compared."""
    if isinstance(event, DevicesJudged):
        event = count_record(event)
    if isinstance(event, CountedRecord):
        tally = event.tally
        columns = (tally.node_index, tally.devices, tally.rows, tally.owner, tally.code, tally.count)
        head = (
            event.id,
            str(event.pod),
            event.scheduler,
            event.started_at,
            event.nodes,
            list(tally.words),
            tally.container,
        )
        return head, [column.tolist() for column in columns], tally.picked, tally.models, tally.is_partial
    return str(event) if isinstance(event, Rejected) else (event.id, encode_value(event))


def decoded(decoder: RecordDecoder, record: EncodedRecord) -> Any:
    return decoder.decode(record.value, record.headers)


def test_a_record_that_differs_in_its_attempt_alone_becomes_an_event_of_its_own_attempt() -> None:
    decoder = RecordDecoder(10**6)
    for number in range(3):
        for event in a_try(number):
            assert plain(decoded(decoder, encode(event))) == plain(event)


def test_the_same_rows_are_counted_once() -> None:
    decoder = RecordDecoder(10**6)
    first, second = (decoded(decoder, encode(a_try(number)[0])) for number in range(2))
    assert first.tally is second.tally
    assert first.attempt_id != second.attempt_id


def test_an_inventory_is_decoded_once_while_the_usage_of_its_devices_changes() -> None:
    decoder = RecordDecoder(10**6)
    before, after = a_try(0)[0], a_try(1)[0]
    assert isinstance(after, DevicesJudged)
    after = after.model_copy(update={"memory_used_mib": after.memory_used_mib + 1})
    first, second = (decoded(decoder, encode(event)) for event in (before, after))
    assert first.tally is not second.tally
    assert first.nodes is second.nodes
    assert plain(second) == plain(after)


@pytest.mark.parametrize(
    ("original", "instead"),
    [
        (b'"partial":', b'"uuid":["other"],"partial":'),
        (b'"uuid":', b'"verdict":[0],"uuid":'),
        (b'"partial":', b'"new":1,"partial":'),
        (b'"uuid":', b'"new":1,"uuid":'),
        (b'"node_index":[', b'"node_index":[7,'),
        (b'"verdict":[', b'"verdict":[0,'),
    ],
)
def test_a_record_whose_halves_hold_fields_of_each_other_is_decoded_as_a_whole(original: bytes, instead: bytes) -> None:
    decoder = RecordDecoder(10**6)
    record = encode(a_try(0)[0])
    decoded(decoder, record)
    value = record.value.replace(original, instead, 1)
    assert value != record.value
    assert plain(decoder.decode(value, record.headers)) == plain(decode(value, record.headers))


def test_the_cache_is_bounded() -> None:
    decoder = RecordDecoder(0)
    first, second = (decoded(decoder, encode(a_try(number)[0])) for number in range(2))
    assert first.tally is not second.tally
    assert plain(second) == plain(a_try(1)[0])


@pytest.mark.parametrize("kind", [DevicesJudged, NodesJudged])
def test_a_tail_that_contradicts_its_header_is_rejected_or_decoded_as_a_whole(kind: type[AttemptEvent]) -> None:
    decoder = RecordDecoder(10**6)
    event = next(each for each in a_try(0) if isinstance(each, kind))
    record = encode(event)
    value = record.value[:-1] + b',"attempt_id":"other"}'
    for head in (value, value.replace(b"hami-scheduler", b"another", 1), value):
        assert plain(decoder.decode(head, record.headers)) == plain(decode(head, record.headers))


def test_broken_records_are_rejected_with_the_same_message() -> None:
    chance, decoder = random.Random(5), RecordDecoder(10**6)
    records = [encode(event) for number in range(2) for event in a_try(number)]
    for _ in range(600):
        record = chance.choice(records)
        value = other_bytes(record.value, chance)
        assert plain(decoder.decode(value, record.headers)) == plain(decode(value, record.headers))
