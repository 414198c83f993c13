"""Records of device verdicts as documents: the devices once a day, the verdicts with every attempt."""

from datetime import timedelta
from typing import Any

import orjson

from pipeline.sinks.bulk import Document
from pipeline.worker.device_documents import DeviceDocuments
from pipeline.worker.open_attempts import DeviceRecord
from pipeline.worker.record_decoder import RecordDecoder
from schemas.codec.records import encode
from schemas.documents.devices import devices_of
from schemas.events import DevicesJudged
from schemas.indices import DEVICES, INVENTORIES
from summaries.tally import CountedRecord
from tests.support.builders.events import STARTED, devices_judged


def device_record(event: DevicesJudged, value: bytes | None = None) -> DeviceRecord:
    """The event as a record, or as one whose JSON is ``value``."""
    record = encode(event)
    json = value if value is not None else record.value
    decoded = RecordDecoder(1_000_000).decode(json, record.headers)
    assert isinstance(decoded, CountedRecord)
    return DeviceRecord(decoded, json)


def sources(documents: list[Document]) -> list[dict[str, Any]]:
    return [orjson.loads(each.source) for each in documents]


def test_the_devices_are_written_once_and_the_verdicts_every_time() -> None:
    documents, first = DeviceDocuments(), devices_judged(["node1", "node2"])
    later = first.model_copy(update={"attempt_id": "later", "started_at": STARTED + timedelta(seconds=1)})
    written = documents.of(device_record(first))
    assert [each.index for each in written] == [INVENTORIES.name(STARTED), DEVICES.name(STARTED)]
    (again,) = documents.of(device_record(later))
    assert again.index == DEVICES.name(STARTED)
    inventory, verdicts, later_verdicts = sources([*written, again])
    assert verdicts["inventory"] == later_verdicts["inventory"] == written[0].id
    assert "uuid" not in verdicts["record"]
    for document, event in ((verdicts, first), (later_verdicts, later)):
        read = devices_of(document, inventory)
        assert isinstance(read, DevicesJudged)
        assert encode(read) == encode(event)


def test_another_day_has_the_devices_too() -> None:
    documents, first = DeviceDocuments(), devices_judged(["node1"])
    documents.of(device_record(first))
    tomorrow = first.model_copy(update={"attempt_id": "tomorrow", "started_at": STARTED + timedelta(days=1)})
    written = documents.of(device_record(tomorrow))
    assert [each.index for each in written] == [
        INVENTORIES.name(STARTED + timedelta(days=1)), DEVICES.name(STARTED + timedelta(days=1)),
    ]  # fmt: skip


def test_other_devices_are_another_document() -> None:
    documents = DeviceDocuments()
    written = [documents.of(device_record(devices_judged(nodes)))[0] for nodes in (["node1"], ["node2"])]
    assert {each.index for each in written} == {INVENTORIES.name(STARTED)}
    assert written[0].id != written[1].id


def test_two_processes_give_the_same_devices_the_same_id() -> None:
    event = devices_judged(["node1"])
    assert DeviceDocuments().of(device_record(event))[0].id == DeviceDocuments().of(device_record(event))[0].id


def test_what_was_forgotten_is_written_again() -> None:
    documents, event = DeviceDocuments(), devices_judged(["node1"])
    first = documents.of(device_record(event))
    documents.clear()
    assert [each.id for each in documents.of(device_record(event))] == [each.id for each in first]


def test_a_record_that_is_written_otherwise_is_stored_whole() -> None:
    event = devices_judged(["node1"])
    pretty = orjson.dumps(orjson.loads(encode(event).value), option=orjson.OPT_INDENT_2)
    (verdicts,) = sources(DeviceDocuments().of(device_record(event, pretty)))
    assert verdicts["inventory"] is None
    read = devices_of(verdicts)
    assert isinstance(read, DevicesJudged)
    assert encode(read) == encode(event)


def test_a_text_that_looks_like_the_cut_cuts_nothing() -> None:
    event = devices_judged(["node1"], verdicts=["fits", ',"kinds":', "CardCordoned", "NumaNotFit"])
    inventory, verdicts = sources(DeviceDocuments().of(device_record(event)))
    read = devices_of(verdicts, inventory)
    assert isinstance(read, DevicesJudged)
    assert encode(read) == encode(event)
