"""Service behind kube-scheduler's calls: decides, reserves, binds, and records the outcome.

Deciding and reserving happen between two awaits, so on one event loop no other call comes between them: two calls can
never give the same device away. Nothing here waits for Kafka; an answer leaves when its events are in the spool.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events import event_builder
from engine.fit.events.attempt import AttemptRef, Identity
from engine.fit.events.decision_digest import digest_refusals
from engine.fit.events.state_builder import Life
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, Failed, NotOurs, SchedulingPolicy
from engine.fit.judge.request.pod_request import list_requests
from engine.fit.judge.reservation import build_times, release, reserve
from engine.hami.vendors import Vendors
from runtime.bounded_cache import BoundedCache
from runtime.kubernetes.errors import KubeApiError
from runtime.telemetry.spans import Span
from scheduler.answering import extender_protocol
from scheduler.answering.bind_calls import BindCalls
from scheduler.answering.extender_protocol import FilterRequest, encode_filter_reply
from scheduler.answering.pod_guard import PodGuard
from scheduler.answering.records import Records
from scheduler.bind.bind_request import ANSWER_AFTER, BindRequest
from scheduler.bind.binder import Binder
from scheduler.cluster.claims import Claims, to_mark
from scheduler.cluster.cluster_api import ClusterApi, get_version
from scheduler.log_fields import to_log_fields
from scheduler.publish.full_attempts import FullAttempts
from scheduler.publish.node_states import NodeStates
from schemas.codec.trace_context import NO_TRACE, Trace
from schemas.events import Event, PodRef
from schemas.ids import count_microseconds
from schemas.json_types import Json


def encode_decision(request: FilterRequest, decision: Decision, error: str) -> bytes:
    """Encode the chosen node, why none fits, or the ``error``."""
    if error:
        return encode_filter_reply(error=error)
    if decision.chosen is None:
        return encode_filter_reply(failed=decision.list_failed_nodes())
    # HAMi names exactly one node and leaves the refused ones out once a node fits.
    return request.hand_back([decision.chosen])


def simulate_nodes(pod: Json, nodes: Mapping[str, Json], policy: SchedulingPolicy, vendors: Vendors) -> bytes:
    """Answer as HAMi does where kube-scheduler sends whole nodes (docs/decisions/0009)."""
    columns = ClusterColumns(vendors)
    for node in nodes.values():
        columns.apply_node(node)
    answer = decide(columns, pod, list(nodes), policy)
    if isinstance(answer, NotOurs):
        return encode_filter_reply(nodes=list(nodes.values()))
    if isinstance(answer, Failed):
        return encode_filter_reply(error=answer.error)
    if answer.chosen is None:
        return encode_filter_reply(failed=answer.list_failed_nodes())
    return encode_filter_reply(nodes=[nodes[answer.chosen]])


log = logging.getLogger(__name__)

WRITING: Final = "an earlier decision about this pod is still being written into it"
MAX_REMEMBERED_ATTEMPTS: Final = 100_000
"""Pods whose latest attempt is remembered for their bind; a bind of any other pod is an attempt of its own."""


class Scheduler:
    """Answers filter and bind calls. While `api.find_problem` is not empty, every answer is that text as its Error.

    columns: kept up to date by `Observer`, and by the reservations made here. claims: shared with the `Observer`.
    states: its task runs beside the calls. epoch: of the revisions of node states; None: this moment.
    accept_scheduler: is given each pod that kube-scheduler asks about.
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
        epoch: int | None = None,
        accept_scheduler: Callable[[Json], None] = lambda _: None,
    ) -> None:
        self._accept_scheduler = accept_scheduler
        self._identity, self._policy, self._columns, self._api = identity, policy, columns, api
        self._claims, self._clock = claims, clock
        self._guard = PodGuard(columns, api, claims)
        self._binds = BindCalls(api, self._guard, binder, records, clock, bind_timeout)
        self._records, self._events, self._metrics = records, records.events, records.metrics
        self._klog = records.klog
        self._full_attempts = FullAttempts()
        self._attempts: BoundedCache[str, AttemptRef] = BoundedCache(MAX_REMEMBERED_ATTEMPTS)
        # In the epoch of its predecessor a revision meant another state.
        life = Life(identity, count_microseconds(clock()) if epoch is None else epoch)
        self.states = NodeStates(life, columns, self._events, clock, self._metrics, api.find_problem)

    async def filter(self, request: FilterRequest, trace: Trace = NO_TRACE) -> bytes:
        """Answer POST /filter. trace: the caller's, if it has one."""
        started_at = self._clock()
        # HAMi waits until kube-scheduler gives up; an Error at once lets it put the pod back into its queue.
        if problem := await self._find_obstacle(request):
            self._metrics.decisions.labels("failed").inc()
            return encode_filter_reply(error=problem)
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

    async def _find_obstacle(self, request: FilterRequest) -> str:
        if problem := self._guard.find_problem(request.pod["metadata"]["uid"]):
            return problem
        self._accept_scheduler(request.pod)
        # A cluster file need not hold the pod; without this, the patch and the bind would not find it.
        self._api.note_offered(request.pod)
        return await self._guard.find_contradiction(request.pod)

    def _decide(self, request: FilterRequest) -> Decision | NotOurs | Failed:
        """Decide, with the states that the decision refers to in the spool."""
        uid = request.pod["metadata"]["uid"]
        own_use = self._columns.get_pod_use(uid)
        # Released first: a verdict follows from the state alone, and what the pod itself holds counts in none.
        release(self._columns, uid)
        answer: Decision | NotOurs | Failed | None = None
        try:
            answer = decide(self._columns, request.pod, request.node_names, self._policy)
        finally:
            if own_use and not isinstance(answer, Decision):
                self._columns.hold(uid, own_use)
        if isinstance(answer, Decision):
            # Before the reservation changes a state, and before another call refers to one.
            self.states.write_changed()
        return answer

    def simulate(self, request: FilterRequest) -> bytes:
        """Answer for nodes that were sent whole, with all devices free; nothing is kept or recorded."""
        return simulate_nodes(request.pod, request.nodes or {}, self._policy, self._columns.vendors)

    async def _fail(self, attempt: AttemptRef, request: FilterRequest, failed: Failed) -> bytes:
        self._metrics.decisions.labels("failed").inc()
        ended_at = max(self._clock(), attempt.started_at)
        circumstances = self._records.describe_circumstances(request.pod, self._columns.vendors)
        offered = len(request.node_names)
        failure = event_builder.build_failure(attempt, failed, offered, ended_at, circumstances)
        self._events.write([failure], attempt.trace)
        self._klog.log_failure(attempt, failed, ended_at)
        log.debug("filter of %s: %s", attempt.pod, failed.error, extra=to_log_fields(attempt))
        await self._events.flush()
        return encode_filter_reply(error=failed.error)

    async def _conclude(self, attempt: AttemptRef, request: FilterRequest, decision: Decision) -> bytes:
        if decision.chosen is None:
            self._guard.release_claim(attempt.pod)
            error = ""
        else:
            # There was no await since `decide`, and there is none before `reserve`: no other call takes these devices.
            self._claims.begin(attempt.pod.uid)
            reserve(self._columns, decision, request.pod)
            # Reserved first: calls that are answered during the patch already see these devices as taken.
            error = await self._annotate(attempt.pod, decision)
        ended_at = max(self._clock(), attempt.started_at)
        epoch, circumstances = (
            self.states.life.epoch,
            self._records.describe_circumstances(request.pod, self._columns.vendors),
        )
        events: Iterable[Event]
        if full := self._find_unchanged(attempt, decision, circumstances):
            events = [event_builder.build_unchanged(attempt, full, ended_at)]
        else:
            events = event_builder.build_events(
                attempt, decision, ended_at, error, epoch=epoch, circumstances=circumstances
            )
        self._events.write(events, attempt.trace)
        self._klog.log_decision(attempt, decision, ended_at, error)
        chosen = error or decision.chosen or "no node fits"
        log.debug("filter of %s: %s", attempt.pod, chosen, extra=to_log_fields(attempt))
        self._metrics.count(decision, is_placed=bool(decision.chosen and not error))
        await self._events.flush()
        return encode_decision(request, decision, error)

    def _find_unchanged(
        self, attempt: AttemptRef, decision: Decision, circumstances: event_builder.Circumstances
    ) -> AttemptRef | None:
        """Find the pod's attempt that this one repeats; None, and note it, where it has to be published in full."""
        if decision.chosen is not None:
            self._full_attempts.forget(attempt.pod.uid)
            return None
        digest = digest_refusals(decision, circumstances)
        # Another leader may have published attempts meanwhile, and of a lost record nobody would have the content.
        validity = self._api.get_term(), self._columns.registration_changes, self._events.losses
        if (full := self._full_attempts.find(attempt, digest, validity)) is None:
            self._full_attempts.put(attempt, digest, validity)
        return full

    async def _annotate(self, pod: PodRef, decision: Decision) -> str:
        """Write the decision into the pod; returns why that failed, or nothing.

        Where it fails, the reservation is given up.
        """
        written = {**decision.annotations, **build_times(decision.containers, self._columns.vendors, self._clock())}
        mark = to_mark({"metadata": {"annotations": written}})
        # Remains where the call is cancelled: then neither line below sets it.
        error = "it was not done"
        term, cached_pod = self._api.get_term(), self._api.get_pod_seen(pod.namespace, pod.name)
        try:
            # On the version that was decided about: another leader, or an earlier call whose request is late, may have
            # written into the pod or bound it since.
            seen = get_version(cached_pod or {"metadata": pod.model_dump()})
            with self._guard.occupied(pod.uid, WRITING):
                await self._api.patch_pod(seen, written, decision.labels)
            # If this scheduler lost its lead while it wrote, the new leader may have decided otherwise by now.
            error = self._api.find_problem() or (
                "" if self._api.get_term() == term else "another scheduler led meanwhile"
            )
        except KubeApiError as failure:
            error = str(failure)
        finally:
            # In `finally`, because a client that gives up cancels this call between any two awaits.
            if error:
                self._guard.release_claim(pod, mark)
            else:
                self._claims.stand(pod.uid, mark)
        return error

    def _begin(self, pod: Json, started_at: datetime, trace: Trace) -> tuple[AttemptRef, Span]:
        metadata = pod["metadata"]
        ref = PodRef(namespace=metadata["namespace"], name=metadata["name"], uid=metadata["uid"])
        # Which attempt is a pod's latest follows from when it began, also where the clock was set back since the last.
        if before := self._attempts.get(ref.uid):
            started_at = max(started_at, before.started_at + timedelta(microseconds=1))
        attempt, span = self._begin_span("filter", AttemptRef.start(self._identity, ref, started_at), started_at, trace)
        self._attempts.put(ref.uid, attempt)
        return attempt, span

    def _begin_span(
        self, name: str, attempt: AttemptRef, started_at: datetime, trace: Trace
    ) -> tuple[AttemptRef, Span]:
        """Begin a span; return the attempt with its trace, which its records get."""
        began_ns = 1_000 * count_microseconds(started_at)
        span = self._records.tracing.begin(name, trace, to_log_fields(attempt), kind="server", began_ns=began_ns)
        return attempt._replace(trace=span.trace) if span.trace else attempt, span

    async def bind(self, request: BindRequest, trace: Trace = NO_TRACE) -> bytes:
        """Answer POST /bind. trace: the caller's, if it has one."""
        started_at = self._clock()
        pod = PodRef(namespace=request.namespace, name=request.name, uid=request.uid)
        if problem := self._guard.find_problem(request.uid):
            self._metrics.binds.labels("failed").inc()
            return extender_protocol.encode_bind_reply(problem)
        # Pods without devices have no attempt on record, so their binds have none either.
        if not self._is_ours(request):
            return extender_protocol.encode_bind_reply(await self._binds.bind(request, None, started_at))
        # Not remembered where another leader, or this scheduler before a restart, answered the filter.
        attempt = self._attempts.get(request.uid) or AttemptRef.start(self._identity, pod, started_at)
        # A caller without a trace: the bind belongs to that of the filter.
        attempt, span = self._begin_span("bind", attempt, started_at, trace or attempt.trace)
        error = "the bind was cut off"
        try:
            error = await self._binds.bind(request, attempt, started_at)
        finally:
            span.end(error)
        return extender_protocol.encode_bind_reply(error)

    async def close(self) -> None:
        """End the binds that are under way."""
        await self._binds.close()

    def _is_ours(self, request: BindRequest) -> bool:
        pod = self._api.get_pod_seen(request.namespace, request.name)
        # An unknown pod may have asked for devices: its bind fails, and that belongs to its attempt.
        return pod is None or any(vendor_request.asks for vendor_request in list_requests(pod, self._columns.vendors))
