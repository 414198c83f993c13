"""Leadership while the kube-scheduler in our pod holds its Lease."""

import asyncio
import logging
import time
from collections.abc import Callable

from runtime.kubernetes import lease
from runtime.kubernetes.client import Client
from runtime.kubernetes.errors import KubeApiError
from runtime.kubernetes.lease import LeaseTimings, ObservedLease
from runtime.kubernetes.resources import LEASES, Key

log = logging.getLogger(__name__)


class ColocatedLeadership:
    """`Leadership` for a pod with a kube-scheduler that asks only us: we lead while it holds its Lease.

    HAMi's chart deploys both in one pod. With a second Lease, the leader could be in another pod than the leading
    kube-scheduler, and the extender that it asks would refuse every pod.
    """

    def __init__(
        self, client: Client, key: Key, host: str, timings: LeaseTimings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client, self._key, self._host, self._timings, self._clock = client, key, host, timings, clock
        self._observed, self._leads_until, self._last_error = ObservedLease(), 0.0, ""
        self.term = 0
        self.term_began = asyncio.Event()

    @property
    def is_leading(self) -> bool:
        return self._clock() < self._leads_until

    @property
    def problem(self) -> str:
        if self.is_leading:
            return ""
        lease_name = f"kube-scheduler's lease {self._key.namespace}/{self._key.name}"
        if self._last_error:
            return f"{lease_name} can't be read ({self._last_error})"
        if lease.derive_lead_end(self._observed, self._host, self._timings):
            return f"{lease_name} has not been renewed for {self._timings.renew:g} s"
        return f"{lease_name} is held by {self._observed.holder or 'none'}, not by a kube-scheduler in {self._host}"

    async def run(self) -> None:
        while True:
            await self._read_lease()
            await asyncio.sleep(self._timings.retry)

    async def _read_lease(self) -> None:
        # The lease was written before we asked for it, so its time may not count from later than this moment.
        started_at, was_leading = self._clock(), self.is_leading
        try:
            obj = await self._client.get(LEASES.build_object_path(self._key))
        # Not a loss of leadership: the last reading holds until its deadline, as for kube-scheduler itself.
        except KubeApiError as error:
            self._last_error = str(error)
            return
        self._last_error, self._observed = "", self._observed.observe(obj, started_at)
        # kube-scheduler gives up ``renew`` seconds after its last renewal, so we stop answering when it does.
        self._leads_until = lease.derive_lead_end(self._observed, self._host, self._timings)
        if self.is_leading and not was_leading:
            self.term += 1
            self.term_began.set()
            log.info("leading now, because the kube-scheduler in this pod leads")

    async def resign(self) -> None:
        """Stop leading; the lease is kube-scheduler's, so only kube-scheduler releases it."""
        self._leads_until = 0.0
