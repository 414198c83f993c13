"""Records of device verdicts as documents: the record itself, byte for byte where it is one line."""

import orjson

from pipeline.worker.attempt_documents import device_document
from pipeline.worker.open_attempts import DeviceRecord
from schemas.codec.records import encode
from schemas.documents.devices import devices_of
from schemas.events import DevicesJudged
from tests.support.builders.events import devices_judged


def test_the_document_of_device_verdicts_holds_the_bytes_of_its_record() -> None:
    event = devices_judged(["node1", "node2"])
    value = encode(event).value
    document = device_document(DeviceRecord(event, value))
    assert (document.index, document.id) == ("schedulerlog-devices-2026.11.21", f"{'0f' * 16}/devices/0")
    assert value in document.source
    assert document.version is None
    fields = orjson.loads(document.source)
    assert (fields["nodes"], fields["container"]) == (["node1", "node2"], "worker")


def test_a_record_of_several_lines_is_stored_on_one_and_reads_the_same() -> None:
    event = devices_judged(["node1"])
    pretty = orjson.dumps(orjson.loads(encode(event).value), option=orjson.OPT_INDENT_2)
    document = device_document(DeviceRecord(event, pretty))
    assert b"\n" not in document.source
    read = devices_of(orjson.loads(document.source))
    assert isinstance(read, DevicesJudged)
    assert encode(read) == encode(event)
