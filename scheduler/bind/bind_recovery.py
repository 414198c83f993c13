"""Tells how binds ended that nobody waited for: cut off by a kill, or not answered by the API server.

The pod itself says it. Its node and `hami.io/bind-time` are ours only where our bind took place, since whoever binds it
later writes its own time first: another leader has waited for a Lease to run out, and a next life has started anew.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from hami.annotations import BIND_TIME
from kube.errors import KubeApiError
from scheduler.bind.bind_journal import BindEnd, BindJournal, OpenBind
from scheduler.bind.binder import bind_time
from scheduler.cluster.cluster_api import ClusterApi, Object, annotation
from scheduler.publish import event_builder
from scheduler.publish.spool_writer import SpoolWriter

log = logging.getLogger(__name__)

NOT_BOUND: Final = "the scheduler ended, or got no answer, before the pod was bound"
IN_FLIGHT: Final = timedelta(minutes=1)
"""The longest that an API server works on a request (`--request-timeout`): until then it may still bind the pod."""
PAUSE_SECONDS: Final = 1.0


def end_of(bind: OpenBind, pod: Object, now: datetime) -> BindEnd | None:
    """What the pod says became of the bind; None while it may still take place.

    The times are those that another look would find too, so that telling it twice is telling the same.
    """
    node = (pod.get("spec") or {}).get("nodeName")
    if node == bind.node and annotation(pod, BIND_TIME) == bind_time(bind.started_at):
        return BindEnd("", max(_scheduled_at(pod), bind.started_at))
    if node or now - bind.started_at > IN_FLIGHT:
        return BindEnd(NOT_BOUND, bind.started_at)
    return None


def _scheduled_at(pod: Object) -> datetime:
    conditions: Any = (pod.get("status") or {}).get("conditions") or ()
    times = [each.get("lastTransitionTime") for each in conditions if each.get("type") == "PodScheduled"]
    return max(map(datetime.fromisoformat, filter(None, times)), default=_EPOCH)


_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00Z")


class BindRecovery:
    """`run` is the task. It needs no lead: what it tells is its own."""

    def __init__(
        self, binds: BindJournal, api: ClusterApi, event_writer: SpoolWriter, clock: Callable[[], datetime]
    ) -> None:
        self._binds, self._api, self._events, self._clock = binds, api, event_writer, clock

    async def run(self) -> None:
        """Look for ever."""
        if self._binds.unresolved:
            log.info("%d binds were cut off: looking what became of them", len(self._binds.unresolved))
        while True:
            await self.recover()
            await asyncio.sleep(PAUSE_SECONDS)

    async def recover(self) -> None:
        """Tell what can be known by now."""
        for bind in list(self._binds.unresolved.values()):
            try:
                end = bind.end or await self._look(bind)
            except KubeApiError as error:
                self._note(bind, error)
            else:
                if end:
                    await self._tell(bind, end)

    async def _look(self, bind: OpenBind) -> BindEnd | None:
        """Raises `KubeApiError`: 404 also where another pod has the name."""
        pod = await self._api.get_pod(bind.attempt.pod.namespace, bind.attempt.pod.name)
        if pod["metadata"].get("uid") != bind.attempt.pod.uid:
            raise KubeApiError(404, "another pod has its name")
        return end_of(bind, pod, self._clock())

    def _note(self, bind: OpenBind, error: KubeApiError) -> None:
        if error.is_missing:
            log.warning("pod %s is gone: nobody knows whether it was bound to %s", bind.attempt.pod, bind.node)
            self._binds.done(bind)
        else:
            log.debug("whether pod %s was bound to %s is not known yet: %s", bind.attempt.pod, bind.node, error)

    async def _tell(self, bind: OpenBind, end: BindEnd) -> None:
        log.info("pod %s, node %s: %s", bind.attempt.pod, bind.node, end.error or "was bound")
        self._binds.record_end(bind, end)
        self._events.write([event_builder.bind_of(bind.attempt, bind.node, end.error, bind.started_at, end.ended_at)])
        await self._events.flush()
        self._binds.done(bind)
