"""Positions that a group has read to, as the administration client answers them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from aiokafka.structs import OffsetAndMetadata

from runtime.kafka import inspection
from runtime.kafka.consumer import TopicPartition
from runtime.kafka.errors import UNAVAILABLE
from runtime.settings.kafka_connection import build_kafka_connection

FIRST, SECOND = TopicPartition("decisions", 1), TopicPartition("decisions", 2)


class Administration:
    """Answers with these offsets."""

    def __init__(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._offsets = offsets

    async def list_consumer_group_offsets(
        self, group: str, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        return {partition: OffsetAndMetadata(offset, "") for partition, offset in self._offsets.items()}


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}

    @asynccontextmanager
    async def administration(servers: str) -> AsyncIterator[Administration]:
        yield Administration(offsets)

    monkeypatch.setattr(inspection, "administration", administration)
    return offsets


async def test_a_partition_of_which_nothing_is_committed_is_read_up_to_0(answer: dict[TopicPartition, int]) -> None:
    answer.update({FIRST: 7, SECOND: -1})
    assert await inspection.read_committed_offsets(build_kafka_connection("broker:9092"), "group", [FIRST, SECOND]) == {
        FIRST: 7,
        SECOND: 0,
    }


async def test_a_coordinator_that_is_still_loading_is_unavailable(answer: dict[TopicPartition, int]) -> None:
    with pytest.raises(UNAVAILABLE, match="group does not answer for 2 partitions"):
        await inspection.read_committed_offsets(build_kafka_connection("broker:9092"), "group", [FIRST, SECOND])
