"""Recovery of binds whose outcome was lost: by a kill of the scheduler, or an API server that did not answer.

The pod shows it. It carries our node and our `hami.io/bind-time` only if our bind took place. A scheduler that binds
the pod later writes its own time first, and that time differs: another leader has waited for the Lease to expire, and
a restarted scheduler has had to start.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from engine.fit.events import event_builder
from engine.hami.annotations import BIND_TIME
from runtime.kubernetes.errors import KubeApiError
from scheduler.bind.bind_journal import BindEnd, BindJournal, OpenBind
from scheduler.bind.binder import format_bind_time
from scheduler.cluster.cluster_api import ClusterApi, Object, get_annotation
from scheduler.log_fields import to_log_fields
from scheduler.publish.spool_writer import SpoolWriter

log = logging.getLogger(__name__)

NOT_BOUND: Final = "the scheduler ended, or got no answer, before the pod was bound"
IN_FLIGHT: Final = timedelta(minutes=1)
"""The longest that an API server works on a request (`--request-timeout`): until then it may still bind the pod."""
PAUSE_SECONDS: Final = 1.0


def derive_end(bind: OpenBind, pod: Object, now: datetime) -> BindEnd | None:
    """Derive the outcome that the pod shows; None while the bind may still take place.

    All times come from the pod and the bind, so that a second look yields the same event.
    """
    node = (pod.get("spec") or {}).get("nodeName")
    if node == bind.node and get_annotation(pod, BIND_TIME) == format_bind_time(bind.started_at):
        # Kubernetes writes whole seconds, so the condition's time may lie before the bind began.
        return BindEnd("", max(_find_scheduled_time(pod), bind.started_at))
    # A pod is bound only once: another node, or ours with another time, rules our bind out for good.
    if node or now - bind.started_at > IN_FLIGHT:
        return BindEnd(NOT_BOUND, bind.started_at)
    return None


def _find_scheduled_time(pod: Object) -> datetime:
    conditions: Any = (pod.get("status") or {}).get("conditions") or ()
    times = [condition.get("lastTransitionTime") for condition in conditions if condition.get("type") == "PodScheduled"]
    return max(map(datetime.fromisoformat, filter(None, times)), default=_EPOCH)


_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00Z")


class BindRecovery:
    """`run` is the task. It needs no lease: it reports on this scheduler's own binds only."""

    def __init__(
        self, binds: BindJournal, api: ClusterApi, event_writer: SpoolWriter, clock: Callable[[], datetime]
    ) -> None:
        self._binds, self._api, self._events, self._clock = binds, api, event_writer, clock

    async def run(self) -> None:
        """Recover binds until cancelled."""
        if self._binds.unresolved:
            log.info("%d binds were cut off; looking up their outcome", len(self._binds.unresolved))
        while True:
            await self.recover()
            await asyncio.sleep(PAUSE_SECONDS)

    async def recover(self) -> None:
        """Record the outcome of every bind that can be known by now."""
        # A copy: `_record` and binds that end meanwhile change the dict.
        for bind in list(self._binds.unresolved.values()):
            try:
                end = bind.end or await self._look_up_end(bind)
            except KubeApiError as error:
                self._note_failure(bind, error)
            else:
                if end:
                    await self._record(bind, end)

    async def _look_up_end(self, bind: OpenBind) -> BindEnd | None:
        """Look up the outcome. Raises `KubeApiError`: 404 also where another pod has the name."""
        # Asked of the API server: the watch may be behind, and it leaves out pods that have ended.
        pod = await self._api.get_pod(bind.attempt.pod.namespace, bind.attempt.pod.name)
        if pod["metadata"].get("uid") != bind.attempt.pod.uid:
            raise KubeApiError(404, "another pod has its name")
        return derive_end(bind, pod, self._clock())

    def _note_failure(self, bind: OpenBind, error: KubeApiError) -> None:
        if error.is_missing:
            log.warning(
                "pod %s is gone: it is unknown whether it was bound to %s", bind.attempt.pod, bind.node,
                extra=to_log_fields(bind.attempt),
            )  # fmt: skip
            self._binds.forget(bind)
        else:
            log.debug(
                "whether pod %s was bound to %s is not known yet: %s", bind.attempt.pod, bind.node, error,
                extra=to_log_fields(bind.attempt),
            )  # fmt: skip

    async def _record(self, bind: OpenBind, end: BindEnd) -> None:
        log.info(
            "pod %s, node %s: %s", bind.attempt.pod, bind.node, end.error or "was bound",
            extra=to_log_fields(bind.attempt),
        )  # fmt: skip
        # The journal first, as after a bind: a kill between the two repeats the same record with the same id.
        self._binds.record_end(bind, end)
        times = bind.started_at, end.ended_at
        event = event_builder.build_bind(bind.attempt, bind.node, end.error, *times, end.lock)
        self._events.write([event], bind.attempt.trace)
        await self._events.flush()
        self._binds.forget(bind)
