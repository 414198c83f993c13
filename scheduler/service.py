"""The scheduler as a whole: asked by kube-scheduler, watching the cluster, telling the spool.

Deciding and reserving happen between two awaits, so on one event loop no other call comes between them: two calls can
never book one device twice. Nothing here waits for Kafka; an answer leaves when its events are in the spool.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final

from hami.annotations import ASSIGNED_TIME
from hami.vendors import Vendors
from kube.errors import KubeApiError
from scheduler.bind.bind_journal import BindEnd, BindJournal, OpenBind
from scheduler.bind.binder import Binder, BindResult
from scheduler.cluster.claims import Claims, Mark, mark_of
from scheduler.cluster.cluster_api import ClusterApi
from scheduler.devices.cluster_state import ClusterColumns
from scheduler.http import extender_protocol
from scheduler.http.extender_protocol import BindRequest, FilterRequest, Json, filter_reply
from scheduler.judge.decide import decide
from scheduler.judge.decision import Decision, Failed, NotOurs, SchedulingPolicy
from scheduler.judge.request import container_requests
from scheduler.judge.reservation import release, reserve
from scheduler.klog.writer import Klog, NoKlog
from scheduler.metrics import Metrics
from scheduler.publish import event_builder
from scheduler.publish.event_builder import AttemptRef
from scheduler.publish.spool.frames import Entry, EntryKind
from scheduler.publish.spool.spool import Spool
from schemas.codec.records import UnencodableError, encode
from schemas.events import DevicesJudged, Event, NodeEvent, PodObserved, PodRef
from schemas.ids import microseconds
from schemas.topics import DECISIONS, NODES, PODS, Topic

log = logging.getLogger(__name__)

MAX_REMEMBERED_ATTEMPTS: Final = 100_000
"""Pods whose latest attempt is known to a later bind; beyond them a bind is an attempt of its own."""


class EventWriter:
    """Writes events into the spool."""

    def __init__(self, spool: Spool, clock: Callable[[], datetime], metrics: Metrics) -> None:
        self._spool, self._clock, self._metrics = spool, clock, metrics

    def write(self, told: Iterable[Event]) -> None:
        written = microseconds(self._clock())
        entries = [entry for event in told if (entry := self._entry(event, written))]
        self._spool.append(entries)

    async def settle(self) -> None:
        """Return when everything told so far is durable."""
        await self._spool.settle()

    def _entry(self, event: Event, written: int) -> Entry | None:
        topic = _topic_of(event)
        try:
            record = encode(event)
        except UnencodableError:
            log.exception("an event about %s is lost", event.key)
            self._metrics.unencodable.inc()
            return None
        if isinstance(event, DevicesJudged):
            return Entry(EntryKind.DETAIL, topic.name, record, written, len(event.verdict))
        return Entry(EntryKind.VERDICT, topic.name, record, written)


def _topic_of(event: Event) -> Topic:
    if isinstance(event, NodeEvent):
        return NODES
    return PODS if isinstance(event, PodObserved) else DECISIONS


class Scheduler:
    """Answers filter and bind. `columns` is kept up to date by `Observer`, and by the reservations made here.

    `claims` is the Observer's too. While `api.problem` says that nothing can be decided, every answer is that Error.
    """

    def __init__(
        self,
        name: str,
        policy: SchedulingPolicy,
        columns: ClusterColumns,
        api: ClusterApi,
        claims: Claims,
        binder: Binder,
        teller: EventWriter,
        clock: Callable[[], datetime],
        metrics: Metrics,
        klog: Klog | None = None,
        open_binds: BindJournal | None = None,
    ) -> None:
        self._open_binds = BindJournal(None) if open_binds is None else open_binds
        self._klog = klog or NoKlog()
        self._name, self._policy, self._columns, self._api = name, policy, columns, api
        self._claims, self._binder, self._teller, self._clock, self._metrics = claims, binder, teller, clock, metrics
        self._attempts: OrderedDict[str, AttemptRef] = OrderedDict()

    async def filter(self, asked: FilterRequest) -> bytes:
        """The reply to POST /filter."""
        started = self._clock()
        if problem := self._problem(asked.pod["metadata"]["uid"]):
            self._metrics.decisions.labels("failed").inc()
            return filter_reply(error=problem)
        self._api.offered(asked.pod)
        answer = decide(self._columns, asked.pod, asked.node_names, self._policy)
        if isinstance(answer, NotOurs):
            self._metrics.decisions.labels("not_ours").inc()
            return asked.hand_back(asked.node_names)
        attempt = self._attempt(asked.pod, started)
        if isinstance(answer, Failed):
            self._metrics.decisions.labels("failed").inc()
            ended = self._clock()
            self._teller.write([event_builder.failure_of(attempt, answer, len(asked.node_names), ended)])
            self._klog.failed(attempt, answer, ended)
            await self._teller.settle()
            return filter_reply(error=answer.error)
        return await self._conclude(attempt, asked, answer)

    def simulate(self, asked: FilterRequest) -> bytes:
        """The reply on empty cards of the nodes that were sent whole: nothing is kept, nothing is told."""
        return simulated(asked.pod, asked.nodes or {}, self._policy, self._columns.vendors)

    def _problem(self, uid: str) -> str:
        """Why nothing can be decided about the pod now; kube-scheduler tries again later."""
        if self._claims.is_writing(uid):
            return "an earlier decision about this pod is still being written into it"
        return self._api.problem()

    async def _conclude(self, attempt: AttemptRef, asked: FilterRequest, decision: Decision) -> bytes:
        if decision.chosen is None:
            self._let_go(attempt.pod)
            error = ""
        else:
            self._claims.begin(attempt.pod.uid)
            reserve(self._columns, decision, asked.pod)
            error = await self._annotate(attempt.pod, decision)
        ended = self._clock()
        self._teller.write(event_builder.events_of(attempt, decision, ended, error))
        self._klog.decided(attempt, decision, ended, error)
        self._metrics.count(decision, is_placed=bool(decision.chosen and not error))
        await self._teller.settle()
        return _reply(asked, decision, error)

    async def _annotate(self, pod: PodRef, decision: Decision) -> str:
        """Write the decision into the pod; why not, where that fails. The reservation stands or falls with it."""
        written = {**decision.annotations, ASSIGNED_TIME: str(int(self._clock().timestamp()))}
        mark = mark_of({"metadata": {"annotations": written}})
        error = "it was not done"
        try:
            await self._api.patch_pod(pod.namespace, pod.name, pod.uid, written, decision.labels)
            # Who lost the lead meanwhile must not have the last word.
            error = self._api.problem()
        except KubeApiError as failure:
            error = str(failure)
        finally:
            if error:
                self._let_go(pod, mark)
            else:
                self._claims.stand(pod.uid, mark)
        return error

    def _let_go(self, pod: PodRef, *marks: Mark) -> None:
        """Free what the pod holds, whatever annotations of an earlier decision still say."""
        known = self._api.known_pod(pod.namespace, pod.name)
        self._claims.let_go(pod.uid, *marks, *([mark_of(known)] if known else []))
        release(self._columns, pod.uid)

    def _attempt(self, pod: Json, started_at: datetime) -> AttemptRef:
        metadata = pod["metadata"]
        ref = PodRef(namespace=metadata["namespace"], name=metadata["name"], uid=metadata["uid"])
        attempt = AttemptRef.of(self._name, ref, started_at)
        self._attempts[ref.uid] = attempt
        self._attempts.move_to_end(ref.uid)
        if len(self._attempts) > MAX_REMEMBERED_ATTEMPTS:
            self._attempts.popitem(last=False)
        return attempt

    async def bind(self, asked: BindRequest) -> bytes:
        """The reply to POST /bind."""
        started, ref = self._clock(), PodRef(namespace=asked.namespace, name=asked.name, uid=asked.uid)
        if problem := self._api.problem():
            self._metrics.binds.labels("failed").inc()
            return extender_protocol.bind_reply(problem)
        bind = OpenBind(self._attempts.get(asked.uid) or AttemptRef.of(self._name, ref, started), asked.node, started)
        is_ours = self._is_ours(asked)
        if is_ours:
            await self._open_binds.open(bind)
        outcome = await self._binder.bind(asked, started)
        self._metrics.binds.labels("failed" if outcome.error else "bound").inc()
        if outcome.error and not outcome.is_unsure:
            self._let_go(ref)
        if is_ours:
            await self._conclude_bind(bind, outcome)
        return extender_protocol.bind_reply(outcome.error)

    async def _conclude_bind(self, bind: OpenBind, outcome: BindResult) -> None:
        end = BindEnd(outcome.error, self._clock())
        self._klog.bound(bind.attempt, bind.node, end.error, end.ended_at)
        if outcome.is_unsure:
            self._open_binds.leave_unresolved(bind)
            return
        self._open_binds.record_end(bind, end)
        self._teller.write([event_builder.bind_of(bind.attempt, bind.node, end.error, bind.started_at, end.ended_at)])
        await self._teller.settle()
        self._open_binds.done(bind)

    def _is_ours(self, asked: BindRequest) -> bool:
        pod = self._api.known_pod(asked.namespace, asked.name)
        return pod is None or any(request.asks for request in container_requests(pod, self._columns.vendors))


def _reply(asked: FilterRequest, decision: Decision, error: str) -> bytes:
    if error:
        return filter_reply(error=error)
    if decision.chosen is None:
        return filter_reply(failed=decision.failed_nodes())
    return asked.hand_back([decision.chosen])


def simulated(pod: Json, nodes: Mapping[str, Json], policy: SchedulingPolicy, vendors: Vendors) -> bytes:
    """What HAMi answers where kube-scheduler sends whole nodes (docs/decisions/0009)."""
    columns = ClusterColumns(vendors)
    for node in nodes.values():
        columns.apply_node(node)
    answer = decide(columns, pod, list(nodes), policy)
    if isinstance(answer, NotOurs):
        return filter_reply(nodes=list(nodes.values()))
    if isinstance(answer, Failed):
        return filter_reply(error=answer.error)
    if answer.chosen is None:
        return filter_reply(failed=answer.failed_nodes())
    return filter_reply(nodes=[nodes[answer.chosen]])
