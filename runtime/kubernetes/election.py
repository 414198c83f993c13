"""Leader election by our Lease: take it, renew it, release it."""

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Final

from runtime.kubernetes import lease
from runtime.kubernetes.client import Client
from runtime.kubernetes.errors import KubeApiError
from runtime.kubernetes.lease import LeadershipDeadline, LeaseStep, LeaseTimings, ObservedLease
from runtime.kubernetes.resources import LEASES, Key

log = logging.getLogger(__name__)

# Candidates that started together must not write in the same moments. It is why ``renew`` has to exceed 1.2 retry
# periods; client-go checks the same.
_JITTER: Final = 0.2
_RELEASE_PAUSES: Final = 0.1, 0.3, 1.0
"""Seconds between attempts to release the lease: another may write it meanwhile, an API server may be restarting."""


class Election:
    """`Leadership` by a Lease that all candidates share."""

    def __init__(
        self,
        client: Client,
        key: Key,
        identity: str,
        timings: LeaseTimings,
        clock: Callable[[], float] = time.monotonic,
        rng: Random | None = None,
    ) -> None:
        self._client, self._key, self._identity, self._timings = client, key, identity, timings
        self._clock, self._rng = clock, rng or Random()  # noqa: S311 - no secret
        self._observed, self._deadline, self._last_error = ObservedLease(), LeadershipDeadline(), ""
        self._attempt_task: asyncio.Task[None] | None = None
        self.term = 0
        self.term_began = asyncio.Event()

    @property
    def is_leading(self) -> bool:
        return self._deadline.holds(self._clock())

    @property
    def problem(self) -> str:
        if self.is_leading:
            return ""
        if self._last_error:
            return f"the lease {self._key.namespace}/{self._key.name} can't be taken or renewed ({self._last_error})"
        holder = self._observed.holder
        return f"{holder} leads" if holder and holder != self._identity else "no process leads yet"

    async def run(self) -> None:
        """Take or renew the lease every retry period until cancelled."""
        while True:
            before = self.is_leading, self.term
            await self._finish_attempt()
            if before != (self.is_leading, self.term):
                log.info("leading now" if self.is_leading else "not leading any more: %s", *self._explain())
            await asyncio.sleep(self._timings.retry * (1 + _JITTER * self._rng.random()))

    async def _finish_attempt(self) -> None:
        """Finish one attempt. When cancelled, wait a while for its answer: a write may still take place."""
        self._attempt_task = asyncio.create_task(self._try_lease())
        try:
            # Cancelling the request would not undo a write that the server has received, and resigning must know its
            # result.
            await asyncio.shield(self._attempt_task)
        except asyncio.CancelledError:
            await asyncio.wait([self._attempt_task], timeout=self._timings.retry)
            if self._attempt_task.cancel():
                self._last_error = "the last attempt had no answer yet"
            raise

    def _explain(self) -> tuple[str, ...]:
        return () if self.is_leading else (self.problem,)

    async def _try_lease(self) -> None:
        """Try to take or renew the lease, once. An attempt that takes too long counts as failed."""
        started_at = self._clock()
        try:
            # A longer attempt could only extend a leadership that has ended meanwhile.
            async with asyncio.timeout(self._timings.renew):
                await self._step(started_at)
            self._last_error = ""
        except KubeApiError as error:
            self._last_error = "" if error.is_conflict else str(error)
        except TimeoutError:
            self._last_error = f"no answer within {self._timings.renew:g} s"

    async def _step(self, started_at: float) -> None:
        if not self.is_leading:
            await self._read_lease()
        step = lease.decide_step(self._observed, self._identity, self._clock())
        if step is LeaseStep.WAIT:
            self._deadline = LeadershipDeadline()
            return
        # Without reading first while we lead: the resourceVersion in the claim shows whether another has written since.
        claim = lease.build_claim(self._observed, self._key, self._identity, self._timings, datetime.now(UTC))
        try:
            await self._write(claim, step)
        except KubeApiError as error:
            # Missing: the Lease was deleted by hand between reading and writing.
            if error.is_conflict or error.is_missing:
                # Another process has written the lease: we lead only if it still names us.
                await self._read_lease()
                if self._observed.holder != self._identity:
                    self._deadline = LeadershipDeadline()
            raise
        if not self.is_leading:
            self.term += 1
            self.term_began.set()
        self._deadline = self._deadline.renew(started_at, self._timings)

    async def _read_lease(self) -> None:
        try:
            obj = await self._client.get(LEASES.build_object_path(self._key))
        except KubeApiError as error:
            if not error.is_missing:
                raise
            self._observed = ObservedLease()
        else:
            self._observed = self._observed.observe(obj, self._clock())

    async def _write(self, claim: dict[str, object], step: LeaseStep) -> None:
        if step is LeaseStep.CREATE:
            obj = await self._client.create(LEASES.build_collection_path(self._key.namespace), claim)
        else:
            obj = await self._client.update(LEASES.build_object_path(self._key), claim)
        self._observed = self._observed.observe(obj, self._clock())

    async def resign(self) -> None:
        """Release the lease, or log why that failed: then it expires."""
        self._deadline = LeadershipDeadline()
        try:
            async with asyncio.timeout(self._timings.renew):
                if self._attempt_task:
                    await asyncio.wait([self._attempt_task])
                self._deadline = LeadershipDeadline()
                # The observed holder can be wrong only if the last attempt failed.
                if self._observed.holder == self._identity or self._last_error:
                    await self._release()
        except (KubeApiError, TimeoutError) as error:
            cause = str(error) or f"no answer within {self._timings.renew:g} s"
            text = "lease %s/%s was not released (%s); another process may take it after %g s"
            log.warning(text, *self._key, cause, self._timings.duration)

    async def _release(self) -> None:
        """Release the lease as it is now, whatever others wrote since we last read it; leave another holder's alone."""
        for pause_seconds in (*_RELEASE_PAUSES, None):
            try:
                await self._read_lease()
                if self._observed.holder == self._identity:
                    released = lease.build_resignation(self._observed, self._key, datetime.now(UTC))
                    await self._client.update(LEASES.build_object_path(self._key), released)
            except KubeApiError as error:
                if pause_seconds is None or not (error.is_conflict or error.is_unsure):
                    raise
                await asyncio.sleep(pause_seconds)
            else:
                return
