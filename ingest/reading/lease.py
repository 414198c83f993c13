"""One of several processes of a reader reads; the others wait, and take over when it ends or stands still."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from ingest.errors import KafkaUnavailableError
from runtime.errors import NotProvisionedError
from runtime.kafka.errors import KafkaError, explain_kafka_error
from runtime.kafka.lease import Lease, lease
from runtime.refused_credentials import end_when_refused
from runtime.settings.kafka_connection import KafkaConnection
from runtime.signals import run_until_first_ends

log = logging.getLogger(__name__)

SESSION_SECONDS: Final = 6.0
"""Time without a heartbeat after which another process takes over."""
_POLL_SECONDS: Final = 0.2


class LeaseLostError(KafkaUnavailableError):
    """Another process may read now. A process that ends and is started again waits with an empty memory."""


def _is_over() -> bool:
    return False


class ReaderLease:
    """Lease of the processes that name this consumer group. Without a name a process reads at once."""

    def __init__(self, kafka: KafkaConnection, group: str) -> None:
        self._kafka, self._group = kafka, group
        self.waiting = ""
        """Reason why this process does not read; empty while it does."""

    def _note(self, reason: str) -> None:
        self.waiting = reason

    async def read(self, work: Callable[[], Coroutine[Any, Any, None]], until: Callable[[], bool] = _is_over) -> None:
        """Work when no other process does, until the work ends; not at all if ``until()`` is true before.

        Raises ``KafkaUnavailableError``, ``LeaseLostError``, ``FixedCredentialsError``, and what the work raises.
        """
        await run_until_first_ends(self._read(work, until), end_when_refused())

    async def _read(self, work: Callable[[], Coroutine[Any, Any, None]], until: Callable[[], bool]) -> None:
        if not self._group:
            await work()
            return
        try:
            async with lease(self._kafka, self._group, SESSION_SECONDS, self._note) as held:
                await run_until_first_ends(held.wait_until_held(), _wait_until(until))
                if held.is_held:
                    self._note("")
                    log.info("this process holds the lease %s: it reads, others wait", self._group)
                    await run_until_first_ends(self._end_with_lease(held), work())
        except KafkaError as error:
            raise KafkaUnavailableError(f"{self._kafka}: lease {self._group}: {explain_kafka_error(error)}") from None
        except NotProvisionedError as error:
            raise KafkaUnavailableError(f"{self._kafka}: {error}") from None

    async def _end_with_lease(self, held: Lease) -> None:
        await held.wait_until_lost()
        raise LeaseLostError(f"another process may hold the lease {self._group} now; start again to wait for it")


async def _wait_until(until: Callable[[], bool]) -> None:
    while not until():  # noqa: ASYNC110 - callers have a question, and no event
        await asyncio.sleep(_POLL_SECONDS)
