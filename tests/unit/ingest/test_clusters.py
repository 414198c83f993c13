"""Every reader puts its cluster's name into all of its events, so that equal pods of two clusters are two pods."""

from collections.abc import Callable

import pytest

from ingest.lines.blocks import Lines, Origin
from ingest.readers.hami.reader import HamiLog
from ingest.readers.kai.reader import KaiLog
from ingest.readers.kube import KubeEvents
from ingest.readers.sniffer import SnifferLog
from schemas.codec.records import encode_value
from schemas.events import Event
from tests.support.builders import api_server_objects, hami_lines, kai_lines
from tests.support.builders.sniffer_lines import DOCUMENT

Read = Callable[[str], list[Event]]


def read_hami(cluster: str) -> list[Event]:
    lines = [
        hami_lines.write_start(),
        hami_lines.write_request(1),
        hami_lines.write_unfit("node1", "1/1 CardInsufficientMemory"),
    ]
    return hami_lines.read(*lines, hami_lines.write_failure(1), reader=HamiLog(cluster=cluster))


def read_kai(cluster: str) -> list[Event]:
    return kai_lines.read(kai_lines.read_texts(kai_lines.CONSOLE), KaiLog(cluster=cluster))


def read_sniffer(cluster: str) -> list[Event]:
    return list(SnifferLog(cluster=cluster).feed(Lines(Origin("sniffer.log"), DOCUMENT.splitlines())))


def read_kube(cluster: str) -> list[Event]:
    refused = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    objects = ("pod", api_server_objects.a_pod()), ("event", api_server_objects.an_event("FailedScheduling", refused))
    return api_server_objects.read(*objects, reader=KubeEvents(cluster))


@pytest.mark.parametrize("read", [read_hami, read_kai, read_sniffer, read_kube])
def test_two_clusters_share_neither_ids_nor_keys_and_are_equal_otherwise(read: Read) -> None:
    east, west = read("east"), read("west")
    assert len(east) == len(west) > 1
    assert {event.cluster for event in east} == {"east"}
    assert {event.cluster for event in west} == {"west"}
    assert not {event.id for event in east} & {event.id for event in west}
    assert not {event.key for event in east} & {event.key for event in west}
    left_out = {"cluster", "attempt_id"}
    contents = [[encode_value(event.model_dump(exclude=left_out)) for event in events] for events in (east, west)]
    assert contents[0] == contents[1]
