"""Answers kube-scheduler's calls: decides, reserves, binds, and records what became of it.

Deciding and reserving happen between two awaits, so on one event loop no other call comes between them: two calls can
never give the same device away. Nothing here waits for Kafka; an answer leaves when its events are in the spool.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events import event_builder
from engine.fit.events.attempt import AttemptRef
from engine.fit.events.identity import Identity
from engine.fit.events.state_builder import Life
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, Failed, NotOurs, SchedulingPolicy
from engine.fit.judge.request.pod_request import list_requests
from engine.fit.judge.reservation import build_times, release, reserve
from runtime.bounded_cache import BoundedCache
from runtime.kubernetes.errors import KubeApiError
from runtime.telemetry.spans import Span
from scheduler.answering import extender_protocol
from scheduler.answering.bind_calls import BindCalls
from scheduler.answering.extender_protocol import FilterRequest, filter_reply
from scheduler.answering.filter_replies import reply_to, simulated
from scheduler.answering.pod_guard import PodGuard
from scheduler.answering.records import Records
from scheduler.bind.bind_request import ANSWER_AFTER, BindRequest
from scheduler.bind.binder import Binder
from scheduler.cluster.claims import Claims, mark_of
from scheduler.cluster.cluster_api import ClusterApi, version_of
from scheduler.log_fields import to_log_fields
from scheduler.publish.node_states import NodeStates
from schemas.codec.trace_context import NO_TRACE, Trace
from schemas.events import PodRef
from schemas.ids import count_microseconds
from schemas.json_types import Json

log = logging.getLogger(__name__)

WRITING: Final = "an earlier decision about this pod is still being written into it"
MAX_REMEMBERED_ATTEMPTS: Final = 100_000
"""Pods whose latest attempt is remembered for their bind; a bind of any other pod is an attempt of its own."""


class Scheduler:
    """Answers filter and bind calls. While `api.problem` is not empty, every answer is that text as its Error.

    columns: kept up to date by `Observer`, and by the reservations made here. claims: shared with the `Observer`.
    states: its task runs beside the calls.
    """

    def __init__(
        self,
        identity: Identity,
        policy: SchedulingPolicy,
        columns: ClusterColumns,
        api: ClusterApi,
        claims: Claims,
        binder: Binder,
        records: Records,
        clock: Callable[[], datetime],
        bind_timeout: timedelta = ANSWER_AFTER,
    ) -> None:
        self._identity, self._policy, self._columns, self._api = identity, policy, columns, api
        self._claims, self._clock = claims, clock
        self._guard = PodGuard(columns, api, claims)
        self._binds = BindCalls(api, self._guard, binder, records, clock, bind_timeout)
        self._records, self._events, self._metrics = records, records.events, records.metrics
        self._klog = records.klog
        self._attempts: BoundedCache[str, AttemptRef] = BoundedCache(MAX_REMEMBERED_ATTEMPTS)
        # Its start names this scheduler's life: in that of its predecessor a revision meant another state.
        life = Life(identity, count_microseconds(clock()))
        self.states = NodeStates(life, columns, self._events, clock, self._metrics, api.problem)

    async def filter(self, request: FilterRequest, trace: Trace = NO_TRACE) -> bytes:
        """The reply to POST /filter. trace: of the caller, if it has one."""
        started_at = self._clock()
        # HAMi waits until kube-scheduler gives up; an Error at once lets it put the pod back into its queue.
        if problem := await self._obstacle(request):
            self._metrics.decisions.labels("failed").inc()
            return filter_reply(error=problem)
        answer = self._decide(request)
        if isinstance(answer, NotOurs):
            self._metrics.decisions.labels("not_ours").inc()
            # As HAMi: a pod without its resources gets every node back unchanged.
            return request.hand_back(request.node_names)
        attempt, span = self._begin(request.pod, started_at, trace)
        try:
            if isinstance(answer, Failed):
                return await self._fail(attempt, request, answer)
            return await self._conclude(attempt, request, answer)
        finally:
            span.end(answer.error if isinstance(answer, Failed) else "")

    async def _obstacle(self, request: FilterRequest) -> str:
        if problem := self._guard.problem(request.pod["metadata"]["uid"]):
            return problem
        # A cluster file need not hold the pod; without this, the patch and the bind would not find it.
        self._api.offered(request.pod)
        return await self._guard.contradiction(request.pod)

    def _decide(self, request: FilterRequest) -> Decision | NotOurs | Failed:
        """The decision, with the states that it refers to in the spool."""
        uid = request.pod["metadata"]["uid"]
        own = self._columns.get_pod_use(uid)
        # Released first: a verdict follows from the state alone, and what the pod itself holds counts in none.
        release(self._columns, uid)
        answer: Decision | NotOurs | Failed | None = None
        try:
            answer = decide(self._columns, request.pod, request.node_names, self._policy)
        finally:
            if own and not isinstance(answer, Decision):
                self._columns.hold(uid, own)
        if isinstance(answer, Decision):
            # Before the reservation changes a state, and before another call refers to one.
            self.states.write_changed()
        return answer

    def simulate(self, request: FilterRequest) -> bytes:
        """The reply on the nodes that were sent whole, with all devices free; nothing is kept or recorded."""
        return simulated(request.pod, request.nodes or {}, self._policy, self._columns.vendors)

    async def _fail(self, attempt: AttemptRef, request: FilterRequest, failed: Failed) -> bytes:
        self._metrics.decisions.labels("failed").inc()
        ended_at = max(self._clock(), attempt.started_at)
        circumstances = self._records.circumstances(request.pod, self._columns.vendors)
        offered = len(request.node_names)
        failure = event_builder.build_failure(attempt, failed, offered, ended_at, circumstances)
        self._events.write([failure], attempt.trace)
        self._klog.failed(attempt, failed, ended_at)
        log.debug("filter of %s: %s", attempt.pod, failed.error, extra=to_log_fields(attempt))
        await self._events.flush()
        return filter_reply(error=failed.error)

    async def _conclude(self, attempt: AttemptRef, request: FilterRequest, decision: Decision) -> bytes:
        if decision.chosen is None:
            self._guard.let_go(attempt.pod)
            error = ""
        else:
            # There was no await since `decide`, and there is none before `reserve`: no other call takes these devices.
            self._claims.begin(attempt.pod.uid)
            reserve(self._columns, decision, request.pod)
            # Reserved first: calls that are answered during the patch already see these devices as taken.
            error = await self._annotate(attempt.pod, decision)
        ended_at = max(self._clock(), attempt.started_at)
        epoch, circumstances = self.states.life.epoch, self._records.circumstances(request.pod, self._columns.vendors)
        events = event_builder.build_events(
            attempt, decision, ended_at, error, epoch=epoch, circumstances=circumstances
        )
        self._events.write(events, attempt.trace)
        self._klog.decided(attempt, decision, ended_at, error)
        chosen = error or decision.chosen or "no node fits"
        log.debug("filter of %s: %s", attempt.pod, chosen, extra=to_log_fields(attempt))
        self._metrics.count(decision, is_placed=bool(decision.chosen and not error))
        await self._events.flush()
        return reply_to(request, decision, error)

    async def _annotate(self, pod: PodRef, decision: Decision) -> str:
        """Write the decision into the pod; returns why that failed, or nothing.

        Where it fails, the reservation is given up.
        """
        written = {**decision.annotations, **build_times(decision.containers, self._columns.vendors, self._clock())}
        mark = mark_of({"metadata": {"annotations": written}})
        # Remains where the call is cancelled: then neither line below sets it.
        error = "it was not done"
        term, known = self._api.term(), self._api.known_pod(pod.namespace, pod.name)
        try:
            # On the version that was decided about: another leader, or an earlier call whose request is late, may have
            # written into the pod or bound it since.
            seen = version_of(known or {"metadata": pod.model_dump()})
            with self._guard.occupied(pod.uid, WRITING):
                await self._api.patch_pod(seen, written, decision.labels)
            # If this scheduler lost its lead while it wrote, the new leader may have decided otherwise by now.
            error = self._api.problem() or ("" if self._api.term() == term else "another scheduler led meanwhile")
        except KubeApiError as failure:
            error = str(failure)
        finally:
            # In `finally`, because a client that gives up cancels this call between any two awaits.
            if error:
                self._guard.let_go(pod, mark)
            else:
                self._claims.stand(pod.uid, mark)
        return error

    def _begin(self, pod: Json, started_at: datetime, trace: Trace) -> tuple[AttemptRef, Span]:
        metadata = pod["metadata"]
        ref = PodRef(namespace=metadata["namespace"], name=metadata["name"], uid=metadata["uid"])
        # Which attempt is a pod's latest follows from when it began, also where the clock was set back since the last.
        if before := self._attempts.get(ref.uid):
            started_at = max(started_at, before.started_at + timedelta(microseconds=1))
        attempt, span = self._traced("filter", AttemptRef.start(self._identity, ref, started_at), started_at, trace)
        self._attempts.put(ref.uid, attempt)
        return attempt, span

    def _traced(self, name: str, attempt: AttemptRef, started_at: datetime, trace: Trace) -> tuple[AttemptRef, Span]:
        """The attempt with the trace of the span, which its records get."""
        began_ns = 1_000 * count_microseconds(started_at)
        span = self._records.tracing.begin(name, trace, to_log_fields(attempt), kind="server", began_ns=began_ns)
        return attempt._replace(trace=span.trace) if span.trace else attempt, span

    async def bind(self, request: BindRequest, trace: Trace = NO_TRACE) -> bytes:
        """The reply to POST /bind. trace: of the caller, if it has one."""
        started_at = self._clock()
        pod = PodRef(namespace=request.namespace, name=request.name, uid=request.uid)
        if problem := self._guard.problem(request.uid):
            self._metrics.binds.labels("failed").inc()
            return extender_protocol.bind_reply(problem)
        # Pods without devices have no attempt on record, so their binds have none either.
        if not self._is_ours(request):
            return extender_protocol.bind_reply(await self._binds.bind(request, None, started_at))
        # Not remembered where another leader, or this scheduler before a restart, answered the filter.
        attempt = self._attempts.get(request.uid) or AttemptRef.start(self._identity, pod, started_at)
        # A caller without a trace: the bind belongs to that of the filter.
        attempt, span = self._traced("bind", attempt, started_at, trace or attempt.trace)
        error = "the bind was cut off"
        try:
            error = await self._binds.bind(request, attempt, started_at)
        finally:
            span.end(error)
        return extender_protocol.bind_reply(error)

    async def close(self) -> None:
        """End the binds that are under way."""
        await self._binds.close()

    def _is_ours(self, request: BindRequest) -> bool:
        pod = self._api.known_pod(request.namespace, request.name)
        # An unknown pod may have asked for devices: its bind fails, and that belongs to its attempt.
        return pod is None or any(asked.asks for asked in list_requests(pod, self._columns.vendors))
