"""Records of device verdicts as documents: the devices once a day, the verdicts with every attempt."""

from datetime import timedelta
from typing import Any

import orjson

from pipeline.sinks.bulk import Document
from pipeline.worker.device_documents import DeviceDocuments
from pipeline.worker.open_attempts import DeviceRecord
from pipeline.worker.record_decoder import RecordDecoder
from schemas.codec.records import encode
from schemas.documents.attempts import devices_of
from schemas.events import DevicesJudged
from schemas.indices import DEVICES, INVENTORIES
from summaries.tally import CountedRecord
from tests.support.builders.events import STARTED, devices_judged


def rows_of(event: DevicesJudged, value: bytes | None = None) -> DeviceRecord:
    record = encode(event)
    said = value if value is not None else record.value
    read = RecordDecoder(1_000_000).read(said, record.headers)
    assert isinstance(read, CountedRecord)
    return DeviceRecord(read, said)


def sources(documents: list[Document]) -> list[dict[str, Any]]:
    return [orjson.loads(each.source) for each in documents]


def test_the_devices_are_written_once_and_the_verdicts_every_time() -> None:
    detail, first = DeviceDocuments(), devices_judged(["node1", "node2"])
    later = first.model_copy(update={"attempt_id": "later", "started_at": STARTED + timedelta(seconds=1)})
    told = detail.documents(rows_of(first))
    assert [each.index for each in told] == [INVENTORIES.name(STARTED), DEVICES.name(STARTED)]
    (again,) = detail.documents(rows_of(later))
    assert again.index == DEVICES.name(STARTED)
    inventory, said, said_later = sources([*told, again])
    assert said["inventory"] == said_later["inventory"] == told[0].id
    assert "uuid" not in said["record"]
    for document, event in ((said, first), (said_later, later)):
        read = devices_of(document, inventory)
        assert isinstance(read, DevicesJudged)
        assert encode(read) == encode(event)


def test_another_day_has_the_devices_too() -> None:
    detail, first = DeviceDocuments(), devices_judged(["node1"])
    detail.documents(rows_of(first))
    tomorrow = first.model_copy(update={"attempt_id": "tomorrow", "started_at": STARTED + timedelta(days=1)})
    told = detail.documents(rows_of(tomorrow))
    assert [each.index for each in told] == [
        INVENTORIES.name(STARTED + timedelta(days=1)), DEVICES.name(STARTED + timedelta(days=1)),
    ]  # fmt: skip


def test_other_devices_are_another_document() -> None:
    detail = DeviceDocuments()
    told = [detail.documents(rows_of(devices_judged(nodes)))[0] for nodes in (["node1"], ["node2"])]
    assert {each.index for each in told} == {INVENTORIES.name(STARTED)}
    assert told[0].id != told[1].id


def test_two_processes_give_the_same_devices_the_same_id() -> None:
    event = devices_judged(["node1"])
    assert DeviceDocuments().documents(rows_of(event))[0].id == DeviceDocuments().documents(rows_of(event))[0].id


def test_what_was_forgotten_is_written_again() -> None:
    detail, event = DeviceDocuments(), devices_judged(["node1"])
    first = detail.documents(rows_of(event))
    detail.clear()
    assert [each.id for each in detail.documents(rows_of(event))] == [each.id for each in first]


def test_a_record_that_is_written_otherwise_is_stored_whole() -> None:
    event = devices_judged(["node1"])
    pretty = orjson.dumps(orjson.loads(encode(event).value), option=orjson.OPT_INDENT_2)
    (told,) = sources(DeviceDocuments().documents(rows_of(event, pretty)))
    assert told["inventory"] is None
    read = devices_of(told)
    assert isinstance(read, DevicesJudged)
    assert encode(read) == encode(event)


def test_a_text_that_looks_like_the_cut_cuts_nothing() -> None:
    event = devices_judged(["node1"], verdicts=["fits", ',"kinds":', "CardCordoned", "NumaNotFit"])
    inventory, told = sources(DeviceDocuments().documents(rows_of(event)))
    read = devices_of(told, inventory)
    assert isinstance(read, DevicesJudged)
    assert encode(read) == encode(event)
