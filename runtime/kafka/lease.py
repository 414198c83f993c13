"""Lease by which one of several processes works; the others wait, and take over when it ends or stands still.

Kafka's group of the lease assigns the one partition of a topic to one of its members; nothing is read from it. A holder
that is killed or stopped loses it when its session ends. A stopped holder that continues learns of that within seconds:
until then two processes work, so their work has to be safe to do twice.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from runtime.kafka.consumer import connected, create_consumer, on_assignment
from runtime.kafka.topics import list_topic_names, require
from runtime.settings.kafka_connection import KafkaConnection
from schemas.topics import ALERTS

_TOPIC: Final = ALERTS
"""Any topic of one partition that every cluster has."""
_POLL_MS: Final = 200
JOINING: Final = "waiting for Kafka to assign the lease"
WAITING: Final = "waiting for the lease: another process works"
TAKING_OVER: Final = "has the lease, and reads how far the work is"
"""Reasons of a process of a lease for not being ready, in their order."""


class Lease:
    """Lease that one process holds at a time. A member has to await ``wait_until_held`` or ``wait_until_lost`` at any
    time, or its group excludes it. ``note`` takes the reason why the process is not ready.
    """

    def __init__(self, consumer: Any, note: Callable[[str], None]) -> None:
        self._consumer, self._note = consumer, note
        self.is_held = False
        note(JOINING)

    async def wait_until_held(self) -> None:
        """Wait until this process holds the lease. Raises ``KafkaError``."""
        while not self.is_held:
            await self._consumer.getmany(timeout_ms=_POLL_MS)

    async def wait_until_lost(self) -> None:
        """Wait until another process may hold the lease. Raises ``KafkaError``."""
        # A member that does not ask for records leaves its group after a while.
        while self.is_held:
            await self._consumer.getmany(timeout_ms=_POLL_MS)

    def note_assignment(self) -> None:
        """Note whether the group has assigned the lease's partition to this process."""
        partitions = self._consumer.assignment()
        # Only the owner of the partition matters: nobody reads it.
        self._consumer.pause(*partitions)
        had_it, self.is_held = self.is_held, bool(partitions)
        if not (had_it and self.is_held):
            self._note(TAKING_OVER if self.is_held else WAITING)


@asynccontextmanager
async def lease(
    kafka: KafkaConnection, group: str, session_seconds: float, note: Callable[[str], None]
) -> AsyncIterator[Lease]:
    """The lease of the processes that name this consumer group. Within the context this process waits for it or holds
    it, and gives it up at the end. ``note`` takes the reason why the process is not ready. Raises ``KafkaError``,
    ``NotProvisionedError``.
    """
    require([_TOPIC.name], await list_topic_names(kafka))
    consumer = create_consumer(
        kafka,
        group=group,
        session_seconds=session_seconds,
        # The client's default may move the partition each time that a process joins.
        partition_assignment_strategy=(StickyPartitionAssignor,),
    )
    lease_of_group = Lease(consumer, note)
    consumer.subscribe([_TOPIC.name], listener=on_assignment(lease_of_group.note_assignment))
    async with connected(consumer):
        yield lease_of_group
