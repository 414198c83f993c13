"""scheduler-sniffer's own lines, and requests to its service."""

import asyncio
import json
from datetime import UTC, datetime

import grpc
import pytest

from engine.summaries.occupancy import Facts, to_sighting
from ingest.errors import KafkaUnavailableError
from ingest.lines.blocks import Lines, Origin
from ingest.readers.sniffer import SnifferLog
from ingest.readers.sniffer.message import parse_time
from ingest.readers.sniffer.reader import MAX_REMEMBERED_BYTES
from ingest.readers.sniffer.service import SERVICE, SendRequest, SendResponse, create_server
from ingest.reading.protocol import EVENT, UNKNOWN
from schemas.codec.records import Rejected, decode, encode
from schemas.events import Event, NodeObserved, PodObserved
from tests.support.builders.sniffer_lines import DOCUMENT

ORIGIN = Origin("sniffer.log", reference=datetime(2024, 4, 23, tzinfo=UTC))


def read(text: bytes, reader: SnifferLog | None = None) -> list[Event]:
    reader = reader or SnifferLog()
    return [*reader.feed(Lines(ORIGIN, text.splitlines())), *reader.close()]


def test_the_documents_lines_give_the_pods_conditions() -> None:
    first, second = (event for event in read(DOCUMENT) if isinstance(event, PodObserved))
    assert str(first.pod) == "-/local-path-provisioner-7577fdbbfb-w84m2"
    assert [(condition.type, condition.status) for condition in first.conditions] == [("ContainersReady", "True")]
    assert first.conditions[0].last_transition_at == datetime(2024, 4, 20, 18, 22, 3, tzinfo=UTC)
    assert [condition.type for condition in second.conditions] == ["ContainersReady", "PodScheduled"]
    assert second.conditions[1].last_transition_at == datetime(2024, 4, 20, 18, 22, 0, tzinfo=UTC)


def test_the_last_observation_of_a_pod_or_node_is_complete_and_the_latest() -> None:
    events = read(DOCUMENT)
    pods = [event for event in events if isinstance(event, PodObserved)]
    nodes = [event for event in events if isinstance(event, NodeObserved)]
    pod, node = max(pods, key=lambda event: event.observed_at), max(nodes, key=lambda event: event.observed_at)
    assert [condition.type for condition in pod.conditions] == ["ContainersReady", "PodScheduled"]
    assert (node.capacity["cpu"], node.conditions[0].type) == ("12", "Ready")


def test_the_documents_lines_give_the_nodes_capacity_and_condition() -> None:
    ready, amounts = (event for event in read(DOCUMENT) if isinstance(event, NodeObserved))
    assert (ready.node, ready.conditions[0].reason) == ("kind-control-plane", "KubeletReady")
    assert ready.conditions[0].message == "kubelet is posting ready status"
    assert amounts.capacity == {
        "cpu": "12", "ephemeral-storage": "1921208544Ki", "hugepages-1Gi": "0", "hugepages-2Mi": "0",
        "memory": "32512128Ki", "pods": "110",
    }  # fmt: skip
    assert amounts.allocatable["memory"] == "32512128Ki"
    assert [condition.type for condition in amounts.conditions] == ["Ready"]


def test_an_observation_has_the_second_of_its_line_and_a_further_one_comes_a_millisecond_later() -> None:
    first, second, ready, amounts = (event.time for event in read(DOCUMENT))
    assert first == datetime(2024, 4, 20, 18, 22, 3, tzinfo=UTC)
    assert second == datetime(2024, 4, 20, 18, 22, 3, 1000, tzinfo=UTC)
    assert ready == datetime(2024, 4, 22, 1, 8, 24, tzinfo=UTC)
    assert amounts == datetime(2024, 4, 22, 1, 8, 24, 1000, tzinfo=UTC)


def test_pods_of_one_second_have_that_second_each() -> None:
    text = a_pod_line("Ready", "n1", 3, pod="ml/a") + a_pod_line("Ready", "n1", 3, pod="ml/b")
    assert {event.time.microsecond for event in read(text)} == {0}


def test_a_line_without_a_time_has_that_of_the_line_before() -> None:
    *_, amounts = read(DOCUMENT)
    assert amounts.time.replace(microsecond=0) == datetime(2024, 4, 22, 1, 8, 24, tzinfo=UTC)


def test_reading_again_or_in_pieces_gives_the_same_events() -> None:
    once = [encode(event) for event in read(DOCUMENT)]
    assert len({event.id for event in read(DOCUMENT)}) == 4
    reader, pieces = SnifferLog(), []
    for line in DOCUMENT.splitlines():
        pieces += read(line, reader)
        saved, reader = reader.save(), SnifferLog()
        reader.restore(saved)
    assert [encode(event) for event in pieces] == once
    assert not any(isinstance(decode(record.value, record.headers), Rejected) for record in once)


def test_a_line_that_the_sniffer_did_not_write_is_unknown() -> None:
    reader = SnifferLog()
    assert read(b'hello\n[]\n{"object":"Pod"}\n{"name":3,"endpoint":"podUpdate"}\n\xff', reader) == []
    assert (reader.counts.lines[UNKNOWN], reader.counts.lines[EVENT]) == (5, 0)


@pytest.mark.parametrize(
    ("stamp", "time"),
    [
        ("2024-04-20 18:22:03 +0000 UTC", datetime(2024, 4, 20, 18, 22, 3, tzinfo=UTC)),
        ("2024-04-20 20:22:03.123456789 +0200 CEST m=+0.1", datetime(2024, 4, 20, 18, 22, 3, 123456, tzinfo=UTC)),
        ("2024-04-20T18:22:03Z", datetime(2024, 4, 20, 18, 22, 3, tzinfo=UTC)),
        ("2024-13-20 18:22:03 +0000 UTC", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_times_are_read_as_go_prints_them(stamp: str, time: datetime | None) -> None:
    assert parse_time(stamp) == time


def a_pod_line(event: str, node: str, second: int, endpoint: str = "podUpdate", pod: str = "ml/a") -> bytes:
    return (
        f'{{"object":"Pod","name":"{pod}","endpoint":"{endpoint}","event":"{event}","node":"{node}",'
        f'"timestamp":"2024-04-20 18:22:{second:02} +0000 UTC"}}\n'
    ).encode()


def test_placements_begin_with_the_node_and_end_with_the_pod() -> None:
    text = a_pod_line("Running", "n1", 1) + a_pod_line("Ready", "n1", 2) + a_pod_line("Running", "n1", 8, "podDelete")
    text += a_pod_line("Running", "n2", 9) + a_pod_line("Succeeded", "n2", 20)
    sights = [to_sighting(event) for event in read(text) if isinstance(event, PodObserved)]
    placements = [fact.placement for fact in Facts("default", "ml", "a", filter(None, sights)).derive_placements()]
    seconds = (
        (placement.started_at.second, placement.ended_at and placement.ended_at.second) for placement in placements
    )
    pairs = zip(placements, seconds, strict=True)
    assert [(placement.node, *within, placement.ended_by) for placement, within in pairs] == [
        ("n1", 1, 8, "deleted"), ("n2", 9, 20, "Succeeded"),
    ]  # fmt: skip


def test_nothing_is_remembered_of_a_pod_that_is_gone() -> None:
    deletion, next_one = read(a_pod_line("Ready", "n1", 8, "podDelete") + a_pod_line("Running", "", 9))
    assert isinstance(deletion, PodObserved)
    assert isinstance(next_one, PodObserved)
    assert (deletion.deleted, next_one.deleted, next_one.node, next_one.conditions) == (True, False, "", [])


async def send_request(request: dict[str, str], reader: SnifferLog, *, is_stored: bool = True) -> list[Event]:
    """Send a request over the network and return its events."""
    events: list[Event] = []

    async def take(request: dict[str, str]) -> None:
        if not is_stored:
            raise KafkaUnavailableError("no broker")
        events.extend(reader.send(request, datetime(2024, 4, 20, tzinfo=UTC)))

    running, port = create_server("127.0.0.1:0", take)
    await running.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = channel.unary_unary(
                f"/{SERVICE}/Send",
                request_serializer=SendRequest.SerializeToString,
                response_deserializer=SendResponse.FromString,
            )
            await asyncio.wait_for(call(SendRequest(**request)), 10)
    finally:
        await running.stop(None)
    return events


async def test_a_request_to_the_service_is_an_observation() -> None:
    request = {"endpoint": "bind", "pod": "ml/a", "node": "n1", "event": "Scheduled"}
    (observed,) = await send_request(request | {"timestamp": "2024-04-20 18:22:03.5 +0000 UTC m=+1"}, SnifferLog())
    assert isinstance(observed, PodObserved)
    assert (str(observed.pod), observed.node, observed.observed_at.microsecond) == ("ml/a", "n1", 500000)


async def test_a_request_that_cant_be_stored_is_to_be_sent_again() -> None:
    with pytest.raises(grpc.aio.AioRpcError, match="send it again") as failed:
        await send_request({"endpoint": "bind", "pod": "a"}, SnifferLog(), is_stored=False)
    assert failed.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_an_empty_request_is_counted() -> None:
    reader = SnifferLog()
    assert await send_request({"payload": "?"}, reader) == []
    assert reader.counts.lines[UNKNOWN] == 1


def a_request(**fields: str) -> dict[str, str]:
    plain = {"endpoint": "podUpdate", "pod": "trainer", "node": "", "event": "Ready", "payload": "", "timestamp": ""}
    return plain | fields


def test_m13_a_request_of_a_wrong_clock_is_not_believed_and_the_next_one_is() -> None:
    reader, received = SnifferLog(), datetime(2026, 11, 21, tzinfo=UTC)
    assert reader.send(a_request(timestamp="9998-01-01 00:00:00 +0000 UTC"), received) == []
    assert reader.counts.lines[UNKNOWN] == 1
    (pod,) = reader.send(a_request(), received)
    assert isinstance(pod, PodObserved)
    assert pod.observed_at == received


def test_m13_what_is_remembered_of_all_pods_and_nodes_is_bounded() -> None:
    reader, received = SnifferLog(), datetime(2026, 11, 21, tzinfo=UTC)
    # 1,000 bytes for a pod and for its condition, and the condition's name.
    bound = MAX_REMEMBERED_BYTES // 2_300
    for number in range(bound + 1_000):
        reader.send(a_request(pod=f"pod-{number}", event="c" * 300), received)
    assert len(json.loads(reader.save())["pods"]) == bound


def test_a_slash_without_a_name_is_counted_and_the_next_request_is_taken() -> None:
    reader, received = SnifferLog(), datetime(2026, 11, 21, tzinfo=UTC)
    assert reader.send(a_request(pod="ml/"), received) == []
    assert reader.counts.lines[UNKNOWN] == 1
    assert len(reader.send(a_request(pod="ml/a"), received)) == 1


def test_m13_what_is_remembered_of_a_pod_is_bounded() -> None:
    reader, received = SnifferLog(), datetime(2026, 11, 21, tzinfo=UTC)
    for number in range(300):
        events = reader.send(a_request(event=f"condition-{number}", payload="x" * 900_000), received)
    (pod,) = events
    assert isinstance(pod, PodObserved)
    assert [condition.type for condition in pod.conditions] == [f"condition-{number}" for number in range(250, 300)]
    assert len(encode(pod).value) < 64 * 1024
    assert len(reader.save()) < 200_000
    assert reader.send(a_request(event="c" * 100_000), received) == []
