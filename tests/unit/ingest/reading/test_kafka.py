"""The order of sending: states before the verdicts that refer to them, each to its topic."""

import asyncio
from typing import Any

import orjson

from ingest.reading.kafka import KafkaSink
from runtime.settings.kafka_connection import build_kafka_connection
from schemas.events import Request
from tests.support.builders.attempts import an_attempt
from tests.support.builders.events import build_devices_judged
from tests.support.builders.node_states import a_node_state


class Producer:
    """Acknowledges a record when another task has run, and notes both."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.values: list[bytes] = []

    async def send(self, topic: str, value: bytes, **_: Any) -> "asyncio.Future[None]":
        self.log.append(f"sent to {topic}")
        self.values.append(value)
        return asyncio.ensure_future(self._acknowledge(topic))

    async def _acknowledge(self, topic: str) -> None:
        await asyncio.sleep(0)
        self.log.append(f"{topic} has it")


async def test_states_are_acknowledged_before_verdicts_are_sent() -> None:
    sink = KafkaSink(build_kafka_connection("broker:9092"))
    sink._producer = producer = Producer()
    await sink.send([build_devices_judged(), a_node_state("node1"), build_devices_judged(), a_node_state("node2")])
    states, decisions = "schedulerlog.node-states", "schedulerlog.decisions"
    assert producer.log == [
        *[f"sent to {states}"] * 2, *[f"{states} has it"] * 2,
        *[f"sent to {decisions}"] * 2, *[f"{decisions} has it"] * 2,
    ]  # fmt: skip


async def test_m5_what_is_too_large_for_kafka_is_shortened_and_does_not_hold_back_the_others() -> None:
    sink = KafkaSink(build_kafka_connection("broker:9092"))
    sink._producer = producer = Producer()
    concluded = an_attempt({"node1": [["picked"]]})[-1]
    large = concluded.model_copy(update={"requests": [Request(container="c" * 250)] * 9_000})
    await sink.send([large, build_devices_judged()])
    values = [orjson.loads(value) for value in producer.values]
    assert [len(value.get("requests", [])) for value in values] == [500, 0]
    assert values[0]["requests_left_out"] == 8_500
    rows = build_devices_judged(["n" * 600_000, "m" * 600_000])
    await sink.send([rows])
    assert orjson.loads(producer.values[-1])["device_records"] == 1
