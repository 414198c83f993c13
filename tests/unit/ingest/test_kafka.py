"""What the sink sends: states before the verdicts that refer to them, each to its topic."""

import asyncio
from typing import Any

from ingest.kafka import KafkaSink
from process.kafka_connection import kafka_at
from tests.support.builders.events import devices_judged
from tests.support.builders.node_states import a_node_state


class Producer:
    """Acknowledges a record when another task has run, and notes both."""

    def __init__(self) -> None:
        self.log: list[str] = []

    async def send(self, topic: str, _value: bytes, **_: Any) -> "asyncio.Future[None]":
        self.log.append(f"sent to {topic}")
        return asyncio.ensure_future(self._acknowledge(topic))

    async def _acknowledge(self, topic: str) -> None:
        await asyncio.sleep(0)
        self.log.append(f"{topic} has it")


async def test_states_are_acknowledged_before_verdicts_are_sent() -> None:
    sink = KafkaSink(kafka_at("broker:9092"))
    sink._producer = producer = Producer()
    await sink.send([devices_judged(), a_node_state("node1"), devices_judged(), a_node_state("node2")])
    states, decisions = "schedulerlog.node-states", "schedulerlog.decisions"
    assert producer.log == [
        *[f"sent to {states}"] * 2, *[f"{states} has it"] * 2,
        *[f"sent to {decisions}"] * 2, *[f"{decisions} has it"] * 2,
    ]  # fmt: skip
