"""Answers bind calls: in time, whatever the bind itself takes, which continues to its end and is recorded.

kube-scheduler gives up on a call after `httpTimeout` and asks for the same pod again. A bind that takes longer is
answered as failed before that. From then on it writes no binding, and until it has ended, other calls about its pod are
refused.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from engine.fit.events import event_builder
from engine.fit.events.attempt import AttemptRef
from scheduler.answering.pod_guard import PodGuard
from scheduler.answering.records import Records
from scheduler.bind.bind_journal import BindEnd, OpenBind
from scheduler.bind.bind_request import ANSWER_AFTER, BindRequest
from scheduler.bind.binder import Binder, BindResult
from scheduler.cluster.cluster_api import ClusterApi
from scheduler.log_fields import to_log_fields
from schemas.events import PodRef

log = logging.getLogger(__name__)

UNDER_WAY: Final = "an earlier bind of this pod is still under way"


class BindCalls:
    """`close` ends binds that are under way; the next life of the scheduler finds out how they ended."""

    def __init__(
        self,
        api: ClusterApi,
        guard: PodGuard,
        binder: Binder,
        records: Records,
        clock: Callable[[], datetime],
        answer_after: timedelta = ANSWER_AFTER,
    ) -> None:
        self._api, self._guard, self._binder, self._clock = api, guard, binder, clock
        self._records, self._answer_after = records, answer_after.total_seconds()
        self._under_way: set[asyncio.Task[str]] = set()

    async def bind(self, request: BindRequest, attempt: AttemptRef | None, started_at: datetime) -> str:
        """Bind the pod; return why it could not be bound, empty when it is. attempt: None for pods without devices."""
        task = asyncio.create_task(self._to_its_end(request, attempt, started_at), name="bind")
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        # Not cancelled with its call: a client that goes away would leave open what became of it.
        await asyncio.wait({task}, timeout=self._answer_after)
        return task.result() if task.done() else f"the bind took longer than {self._answer_after:g} s"

    async def _to_its_end(self, request: BindRequest, attempt: AttemptRef | None, started_at: datetime) -> str:
        with self._guard.occupied(request.uid, UNDER_WAY):
            bind = OpenBind(attempt, request.node, started_at) if attempt else None
            if bind:
                await self._records.binds.open(bind)
            result = await self._bind(request, started_at)
            if bind:
                await self._conclude(bind, result)
            return result.error

    async def _bind(self, request: BindRequest, started_at: datetime) -> BindResult:
        term, give_up = self._api.get_term(), time.monotonic() + self._answer_after

        def find_obstacle() -> str:
            if time.monotonic() > give_up:
                return f"the bind took longer than {self._answer_after:g} s"
            # Another leader may have given the pod's devices away.
            if self._api.get_term() != term:
                return "this scheduler has not led all the time since this bind began"
            return self._api.find_problem() or self._guard.explain_refusal(request)

        result = await self._binder.bind(request, started_at, find_obstacle)
        self._records.metrics.binds.labels("failed" if result.error else "bound").inc()
        # Where it is unsure, the pod may be bound and use its devices.
        if result.error and not result.is_unsure:
            self._guard.release_claim(PodRef(namespace=request.namespace, name=request.name, uid=request.uid))
        return result

    async def _conclude(self, bind: OpenBind, result: BindResult) -> None:
        end = BindEnd(result.error, self._clock(), result.lock)
        self._records.klog.log_bind(bind.attempt, bind.node, end.error, end.ended_at)
        log.debug(
            "bind of %s to %s: %s", bind.attempt.pod, bind.node, end.error or "bound", extra=to_log_fields(bind.attempt)
        )
        binds, events = self._records.binds, self._records.events
        if result.is_unsure:
            binds.leave_unresolved(bind)
            return
        # The journal gets the end before the spool: after a kill between the two, recovery writes the same record.
        binds.record_end(bind, end)
        times = bind.started_at, end.ended_at
        event = event_builder.build_bind(bind.attempt, bind.node, end.error, *times, end.lock)
        events.write([event], bind.attempt.trace)
        await events.flush()
        binds.forget(bind)

    async def close(self) -> None:
        """Cancel what is under way."""
        tasks = list(self._under_way)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
