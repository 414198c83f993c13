"""Handlers of requests with watch=true: the changes of a pod, of attempts or of pending pods as they happen."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from api.answers.attempt_lookup import AttemptLookup, StoredAttempt
from api.authority.access import get_access
from api.authority.rights import Right, get_pod, list_pods
from api.authority.streams import iterate_while_allowed, wait_for_refusal
from api.http.caller_wait import CallerWait
from api.http.cluster import AGGREGATED, Cluster
from api.http.errors import UnavailableError
from api.http.pending_query import PendingQuery
from api.http.query_params import SchedulerlogQuery, SearchQuery
from api.http.watch_query import EVENT_STREAM, LINES, WatchParameters, parse_offsets, wants_event_stream
from api.index.attempts.attempt_queries import PodName
from api.memory.change_log import Change, ChangeLog, Key
from api.memory.latest_attempts import CachedAttempt
from api.memory.topic_follower import TopicState
from api.memory.wait_log import State, WaitLog
from api.watch.events import Watch, iterate_events, subscribe
from api.watch.shared_events import SharedEvents
from api.watch.streams import EventStream, Streams
from api.watch.views import ViewName
from schemas.codec.records import encode_value

_SECONDS: Final = (1800, 3600)
"""Range of the durations of watches without a time: random, so that they do not all return at once."""
_AGGREGATED_POD_SECONDS: Final = 50
"""Duration of a forwarded watch of a pod: the API server ends forwarded requests after a minute, except lists."""
_INDEX_SECONDS: Final = 5.0
"""Time limit for an attempt in the index, which shows it about a second after the topic."""
_LIST_FILTERS: Final = ("namespace", "workload", "queue", "obstacle", "reason")


@dataclass(frozen=True, slots=True)
class WatchHandlers:
    attempts: AttemptLookup
    log: ChangeLog
    waits: WaitLog
    pods_topic: TopicState
    shared: SharedEvents
    streams: Streams

    async def watch_pod(
        self, request: Request, cluster: Cluster, namespace: str, name: str, query: SchedulerlogQuery
    ) -> Response:
        """Watch the pod: its latest attempt, and every later one."""
        pod = PodName(cluster.name, namespace, name)
        return await self._answer(request, cluster, pod, get_pod(namespace, name), "pod", query, ())

    async def watch_attempts(self, request: Request, cluster: Cluster, query: SearchQuery) -> Response:
        """Watch attempts: the latest of the pods in memory, and every later one."""
        key: Key = tuple(filter(None, (cluster.name, query.namespace, query.namespace and query.pod)))
        right, filters = list_pods(query.namespace), (*_LIST_FILTERS, "pod", "status", "scheduler")
        return await self._answer(request, cluster, key, right, "attempts", query, filters)

    async def watch_pending(self, request: Request, cluster: Cluster, query: PendingQuery) -> Response:
        """Watch waiting pods: all of them, and every change."""
        key: Key = tuple(filter(None, (cluster.name, query.namespace)))
        return await self._answer(request, cluster, key, list_pods(query.namespace), "pending", query, _LIST_FILTERS)

    async def _answer(
        self,
        request: Request,
        cluster: Cluster,
        key: Key,
        right: Right,
        view: ViewName,
        query: WatchParameters,
        filters: Collection[str],
    ) -> Response:
        access = get_access(request)
        await access.require(cluster, right)
        query.refuse_with_watch(filters)
        since, is_sse = parse_offsets(request, query), wants_event_stream(request)
        if request.method == "HEAD":
            return Response(media_type=EVENT_STREAM if is_sse else LINES)
        log = self._choose_log(view)
        self.streams.refuse_more(access.caller_name)
        wanted = query.model_dump(include={*filters} - {"namespace"}, exclude_none=True)
        watch = Watch(
            view,
            cluster,
            is_sse,
            is_sse or query.allow_watch_bookmarks,
            _choose_seconds(query, cluster, view),
            is_for_all=right == list_pods(),
            filters=wanted,
        )
        subscription = await subscribe(log, key, since, watch)
        try:
            initial = await self._list_initial(key, view) if since is None and query.send_initial_events else None
        except BaseException:
            log.unsubscribe(subscription)
            raise

        async def iterate_allowed() -> AsyncGenerator[bytes]:
            events = iterate_events(log, self.shared, watch, subscription, initial, self._find)
            if not access.is_checked:
                async for batch in events:
                    yield batch
                return
            async with aclosing(
                iterate_while_allowed(events, wait_for_refusal(access, cluster, right))
            ) as allowed_events:
                async for batch in allowed_events:
                    yield batch

        def close() -> None:
            log.unsubscribe(subscription)

        return EventStream(self.streams, access.caller_name, iterate_allowed(), close, is_sse=is_sse)

    def _choose_log(self, view: ViewName) -> ChangeLog | WaitLog:
        """Choose the log that the view reads. Raises ``UnavailableError`` while this process does not follow it."""
        now = time.monotonic()
        if not self.attempts.topic.is_following(now):
            raise _to_behind_error("attempts")
        if view != "pending":
            return self.log
        if not self.pods_topic.is_following(now):
            raise _to_behind_error("pods")
        return self.waits

    async def _list_initial(self, key: Key, view: ViewName) -> Sequence[State]:
        """List what is there before the first change."""
        if view == "pod":
            latest = await self.attempts.find_latest(PodName(*key))
            return [_to_cached(latest)] if latest else []
        return self.waits.list_waiting(*key) if view == "pending" else self.attempts.memory.list_attempts(*key)

    async def _find(self, change: Change) -> CachedAttempt | None:
        """Find the change's attempt in the index."""
        until = time.monotonic() + _INDEX_SECONDS
        # A watch has been open for much longer than a caller waits for an answer.
        with CallerWait(_INDEX_SECONDS):
            while time.monotonic() < until:
                if attempt := await self.attempts.find_by_id(change.attempt.cluster, change.attempt.attempt_id):
                    return _to_cached(attempt)
                await asyncio.sleep(_INDEX_SECONDS / 10)
        return None


def _to_behind_error(topic: str) -> UnavailableError:
    return UnavailableError(
        f"this process does not follow the topic of {topic} now, so it can't watch changes",
        "Try again; GET /readyz shows when it does.",
    )


def _to_cached(attempt: StoredAttempt) -> CachedAttempt:
    """Convert an attempt into the form that memory has."""
    if isinstance(attempt, CachedAttempt):
        return attempt
    summary = attempt.read_summary()
    value = encode_value(summary)
    started_at, version, attempt_id = attempt.recency
    return CachedAttempt(summary.cluster, attempt_id, version, started_at, (value,), status=summary.status)


def _choose_seconds(query: WatchParameters, cluster: Cluster, view: ViewName) -> float:
    seconds = query.timeout_seconds or random.uniform(*_SECONDS)  # noqa: S311 - no secret depends on it
    return min(seconds, _AGGREGATED_POD_SECONDS) if cluster.base == AGGREGATED and view == "pod" else seconds
