"""Answers about pods in memory, kept as they were sent until the pod's latest attempt is another one.

Almost every reader asks for this path, again and again, and most of what a request costs is what it passes through. So
the HTTP protocol asks ``ReadyAnswers`` first, and sends a ready answer without the application: no task, no middleware,
no router. ``ReadyAnswers.answer`` is the one place that keeps what those promise: the caller's right comes before
anything is looked up, and is one that the gate would grant without a question to the API server; the request is counted
and traced as every other. All other requests go to the application as if this did not exist, and ``NotesAnswers`` keeps
what it sends.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.answers.attempt_lookup import AttemptLookup, StoredAttempt
from api.authority.rights import Right, get_pod
from api.http.cluster import AGGREGATED, ROOT
from api.http.json_protocol import Ready
from api.http.request_spans import trace_answered
from api.index.attempts.attempt_queries import PodName
from api.memory.latest_attempts import CachedAttempt
from api.memory.lru import Lru
from api.metrics import Metrics
from runtime.telemetry.spans import Tracing

SHARE_OF_MEMORY: Final = 4
"""Answers take at most a quarter of what the attempts in memory may take."""

KnowsRight = Callable[[Scope, str, Right], bool]
"""Is it known, without waiting, that who sends the request has the right in the cluster?"""

_NOTED: Final = "noted_answer"
"""The entry of a request's state with its ``_NotedAnswer``."""
_PATH: Final = re.compile(
    # Names as Kubernetes has them: what else is asked for is refused by the application.
    rf"(?:{ROOT}(?:/clusters/([-a-z0-9.]+))?|{re.escape(AGGREGATED)})"
    r"/namespaces/([-a-z0-9.]+)/pods/([-a-z0-9.]+)/schedulerlog".encode()
)


@dataclass(frozen=True, slots=True)
class _Kept:
    """recency: of the attempt, which it names without keeping its records in memory.

    route: that of the request, which metrics and spans name.
    """

    recency: tuple[float, int, str]
    route: Any
    answer: Ready


class ReadyAnswers:
    """max_count, max_bytes: how much is kept."""

    def __init__(
        self,
        attempts: AttemptLookup,
        knows_right: KnowsRight,
        home_cluster: str,
        metrics: Metrics,
        tracing: Tracing,
        max_count: int,
        max_bytes: int,
    ) -> None:
        self._attempts, self._knows_right, self._home_cluster = attempts, knows_right, home_cluster
        self._metrics, self._tracing = metrics, tracing
        self._kept: Lru[bytes, _Kept] = Lru(max_count, max_bytes)
        """By the path as it was sent: what is linked in an answer begins as that does."""

    def answer(self, path: bytes, scope: Scope) -> Ready | None:
        """What is to be sent to GET of this path and query; None where the application has to answer."""
        started = perf_counter()
        found = _PATH.fullmatch(path)
        if found is None:
            return None
        cluster, namespace, name = (group.decode() for group in found.groups(b""))
        pod = PodName(cluster or self._home_cluster, namespace, name)
        if not self._knows_right(scope, pod.cluster, get_pod(namespace, name)):
            return None
        kept = self._kept.peek(path)
        if kept is None or b"if-none-match" in dict(scope["headers"]) or not self._attempts.has(pod, kept.recency):
            return None
        if self._tracing.is_on:
            asked = {"namespace": namespace, "name": name} | ({"cluster": cluster} if cluster else {})
            trace_answered(self._tracing, {**scope, "method": "GET", "route": kept.route, "path_params": asked}, 200)
        self._metrics.count(kept.route.path, 200)
        self._metrics.time(kept.route.path, perf_counter() - started)
        return kept.answer

    def keep(self, path: bytes, noted: "_NotedAnswer") -> None:
        attempt, messages = noted.attempt, noted.messages
        # A whole answer, in one piece.
        if attempt and len(messages) == 2 and messages[0]["status"] == 200:
            answer = Ready.of(messages[0]["headers"], messages[1]["body"])
            self._kept.put(path, _Kept(attempt.recency, noted.route, answer), len(answer.body), attempt.started_at)


class _NotedAnswer:
    """Sends an answer on. ``attempt``: the one in memory that it is about; None where it must not be kept."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.messages: list[Message] = []
        self.attempt: CachedAttempt | None = None
        self.route: Any = None

    async def __call__(self, message: Message) -> None:
        self.messages.append(message)
        await self._send(message)


class NotesAnswers:
    """ASGI middleware around what adds headers: keeps what ``app`` sends, where its handler says ``may_be_kept``."""

    def __init__(self, app: ASGIApp, ready: ReadyAnswers) -> None:
        self._app, self._ready = app, ready

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_plain = scope["type"] == "http" and scope["method"] == "GET" and not scope["query_string"]
        path: bytes = scope.get("raw_path", b"") if is_plain else b""
        if not _PATH.fullmatch(path):
            await self._app(scope, receive, send)
            return
        noted = _NotedAnswer(send)
        scope.setdefault("state", {})[_NOTED] = noted
        await self._app(scope, receive, noted)
        self._ready.keep(path, noted)


def may_be_kept(request: Request, attempt: StoredAttempt) -> None:
    """For the handler: the answer to the request follows from this attempt alone, and is the same for every reader."""
    noted: _NotedAnswer | None = request.scope["state"].get(_NOTED)
    if noted and isinstance(attempt, CachedAttempt):
        noted.attempt, noted.route = attempt, request.scope["route"]
