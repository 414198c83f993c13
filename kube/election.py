"""Leading while a Lease is ours: taking it, renewing it, giving it back; or while it is our neighbour's."""

import asyncio
import logging
import os
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Final, Protocol

from kube import lease
from kube.client import Client
from kube.errors import ApiError
from kube.lease import Leading, Seen, Step, Terms
from kube.resources import LEASES, Key

log = logging.getLogger(__name__)

_JITTER: Final = 0.2
_RELEASE_PAUSES: Final = 0.1, 0.3, 1.0
"""Seconds between tries to give the lease back: another may write it meanwhile, an API server may be restarting."""


class Leadership(Protocol):
    """`is_leading` is asked before every answer: it turns false by itself when the lease can't be renewed in time.

    `problem` is why we do not lead; empty while we do. `term` grows each time that leading begins anew, also where
    nobody else led meanwhile; `leads_anew` is set then.
    """

    term: int
    leads_anew: asyncio.Event

    @property
    def is_leading(self) -> bool: ...

    @property
    def problem(self) -> str: ...

    async def run(self) -> None:
        """Follow the lease for ever."""

    async def resign(self) -> None:
        """Stop leading, and let another lead at once."""


def own_host() -> str:
    return os.environ.get("POD_NAME") or os.uname().nodename


def own_identity() -> str:
    """Different for each process, and shows which pod it is."""
    return f"{own_host()}_{uuid.uuid4()}"


class Election:
    """Implements `Leadership` with a Lease of our own."""

    def __init__(
        self,
        client: Client,
        key: Key,
        me: str,
        terms: Terms,
        clock: Callable[[], float] = time.monotonic,
        rng: Random | None = None,
    ) -> None:
        self._client, self._key, self._me, self._terms = client, key, me, terms
        self._clock, self._rng = clock, rng or Random()  # noqa: S311 - no secret
        self._seen, self._leading, self._trouble = Seen(), Leading(), ""
        self._trying: asyncio.Task[None] | None = None
        self.term = 0
        self.leads_anew = asyncio.Event()

    @property
    def is_leading(self) -> bool:
        return self._leading.holds(self._clock())

    @property
    def problem(self) -> str:
        if self.is_leading:
            return ""
        if self._trouble:
            return f"the lease {self._key.namespace}/{self._key.name} can't be had ({self._trouble})"
        holder = self._seen.holder
        return f"{holder} leads" if holder and holder != self._me else "nobody leads yet"

    async def run(self) -> None:
        """Try for ever, every retry period."""
        while True:
            before = self.is_leading, self.term
            await self._try_to_its_end()
            if before != (self.is_leading, self.term):
                log.info("leading now" if self.is_leading else "not leading any more: %s", *self._why())
            await asyncio.sleep(self._terms.retry * (1 + _JITTER * self._rng.random()))

    async def _try_to_its_end(self) -> None:
        """A try that is cut off leaves open whether its write took place: a cancellation waits a while for it."""
        self._trying = asyncio.create_task(self._try())
        try:
            await asyncio.shield(self._trying)
        except asyncio.CancelledError:
            await asyncio.wait([self._trying], timeout=self._terms.retry)
            if self._trying.cancel():
                self._trouble = "the last try had no answer yet"
            raise

    def _why(self) -> tuple[str, ...]:
        return () if self.is_leading else (self.problem,)

    async def _try(self) -> None:
        """One look at the lease and what follows from it. A try that takes too long counts as failed."""
        began = self._clock()
        try:
            async with asyncio.timeout(self._terms.renew):
                await self._step(began)
            self._trouble = ""
        except ApiError as error:
            self._trouble = "" if error.is_conflict else str(error)
        except TimeoutError:
            self._trouble = f"no answer within {self._terms.renew:g} s"

    async def _step(self, started_at: float) -> None:
        if not self.is_leading:
            await self._look()
        step = lease.next_step(self._seen, self._me, self._clock())
        if step is Step.WAIT:
            self._leading = Leading()
            return
        claim = lease.claim(self._seen, self._key, self._me, self._terms, datetime.now(UTC))
        try:
            await self._write(claim, step)
        except ApiError as error:
            if error.is_conflict or error.is_missing:
                # Somebody else has written it: we lead only if it still says so.
                await self._look()
                if self._seen.holder != self._me:
                    self._leading = Leading()
            raise
        if not self.is_leading:
            self.term += 1
            self.leads_anew.set()
        self._leading = self._leading.renewed(started_at, self._terms)

    async def _look(self) -> None:
        try:
            found = await self._client.get(LEASES.item(self._key))
        except ApiError as error:
            if not error.is_missing:
                raise
            self._seen = Seen()
        else:
            self._seen = self._seen.next(found, self._clock())

    async def _write(self, claim: dict[str, object], step: Step) -> None:
        if step is Step.CREATE:
            found = await self._client.create(LEASES.collection(self._key.namespace), claim)
        else:
            found = await self._client.update(LEASES.item(self._key), claim)
        self._seen = self._seen.next(found, self._clock())

    async def resign(self) -> None:
        """Give the lease back, or log why not: then it runs out."""
        self._leading = Leading()
        try:
            async with asyncio.timeout(self._terms.renew):
                if self._trying:
                    await asyncio.wait([self._trying])
                self._leading = Leading()
                # The last look can be wrong only where the last try failed.
                if self._seen.holder == self._me or self._trouble:
                    await self._give_back()
        except (ApiError, TimeoutError) as error:
            cause = str(error) or f"no answer within {self._terms.renew:g} s"
            text = "lease %s/%s was not given back (%s); another scheduler may take it after %g s"
            log.warning(text, *self._key, cause, self._terms.duration)

    async def _give_back(self) -> None:
        """Free the lease as it is now, whatever was written since our last look; leave another's alone."""
        for pause_seconds in (*_RELEASE_PAUSES, None):
            try:
                await self._look()
                if self._seen.holder == self._me:
                    freed = lease.resignation(self._seen, self._key, datetime.now(UTC))
                    await self._client.update(LEASES.item(self._key), freed)
            except ApiError as error:
                if pause_seconds is None or not (error.is_conflict or error.is_unsure):
                    raise
                await asyncio.sleep(pause_seconds)
            else:
                return


class Neighbour:
    """Implements `Leadership` where kube-scheduler runs in our pod and asks only us: we lead while it holds its Lease.

    HAMi's chart deploys both in one pod; a lease of our own could be another pod's than kube-scheduler's.
    """

    def __init__(
        self, client: Client, key: Key, host: str, terms: Terms, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client, self._key, self._host, self._terms, self._clock = client, key, host, terms, clock
        self._seen, self._until, self._trouble = Seen(), 0.0, ""
        self.term = 0
        self.leads_anew = asyncio.Event()

    @property
    def is_leading(self) -> bool:
        return self._clock() < self._until

    @property
    def problem(self) -> str:
        if self.is_leading:
            return ""
        about = f"kube-scheduler's lease {self._key.namespace}/{self._key.name}"
        if self._trouble:
            return f"{about} can't be read ({self._trouble})"
        if lease.led_by_host(self._seen, self._host, self._terms):
            return f"{about} has not been renewed for {self._terms.renew:g} s"
        return f"{about} is held by {self._seen.holder or 'nobody'}, not by one in {self._host}"

    async def run(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(self._terms.retry)

    async def _look(self) -> None:
        # What is read was written before now at the latest: later than this it may not count from.
        began, was_leading = self._clock(), self.is_leading
        try:
            found = await self._client.get(LEASES.item(self._key))
        except ApiError as error:
            self._trouble = str(error)
            return
        self._trouble, self._seen = "", self._seen.next(found, began)
        self._until = lease.led_by_host(self._seen, self._host, self._terms)
        if self.is_leading and not was_leading:
            self.term += 1
            self.leads_anew.set()
            log.info("leading now, as kube-scheduler beside us does")

    async def resign(self) -> None:
        """The lease is kube-scheduler's to give back."""
        self._until = 0.0
