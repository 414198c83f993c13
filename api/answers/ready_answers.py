"""Cache of answers about pods in memory, as sent, until the pod's latest attempt is another one.

Almost every reader repeats this request, and most of its cost lies in the layers that it passes through. So the HTTP
protocol asks ``ReadyAnswers`` first, and sends a ready answer without the application: no task, no middleware, no
router. ``ReadyAnswers.answer`` alone keeps the promises of these layers: it checks the caller's right before it looks
anything up, and accepts only a right that the gate would grant without a question to the API server; it counts and
traces the request like every other. All other requests go to the application, and ``AnswerRecorder`` stores its
answers.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final
from urllib.parse import unquote

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.answers.attempt_lookup import AttemptLookup, StoredAttempt
from api.authority.redacted_answer import ON_REDACTION_STATE
from api.authority.rights import Right, get_pod
from api.http.cluster import AGGREGATED, ROOT
from api.http.json_protocol import Ready
from api.http.request_spans import trace_answered
from api.index.attempts.attempt_queries import PodName
from api.memory.latest_attempts import CachedAttempt
from api.memory.lru import Lru
from api.metrics import Metrics
from engine.summaries.foreign_namespaces import KnownNamespaces
from runtime.telemetry.spans import Tracing

SHARE_OF_MEMORY: Final = 4
"""Divisor of the attempts' memory: ready answers take at most a quarter of it."""

KnowsRight = Callable[[Scope, str, Right], bool]
"""Predicate: true if it is known, without waiting, that the sender of the request has the right in the cluster."""

_RECORDED: Final = "noted_answer"
"""Entry of a request's state with its ``_RecordedAnswer``."""
_PATH: Final = re.compile(
    # Names as Kubernetes has them: the application refuses all others.
    rf"(?:{ROOT}(?:/clusters/([-a-z0-9.]+))?|{re.escape(AGGREGATED)})"
    r"/namespaces/([-a-z0-9.]+)/pods/([-a-z0-9.]+)/schedulerlog".encode()
)


@dataclass(frozen=True, slots=True)
class _ReadyEntry:
    """Answer to one path.

    recency: identifies the attempt without keeping its records in memory.
    route: route of the request, which metrics and spans name.
    revision: revision of the namespaces that the answer was searched for.
    """

    recency: tuple[float, int, str]
    route: Any
    answer: Ready
    revision: int


class ReadyAnswers:
    """Ready answers by path. max_count, max_bytes: bounds of the cache."""

    def __init__(
        self,
        attempts: AttemptLookup,
        namespaces: KnownNamespaces,
        knows_right: KnowsRight,
        home_cluster: str,
        metrics: Metrics,
        tracing: Tracing,
        max_count: int,
        max_bytes: int,
    ) -> None:
        self._attempts, self.namespaces = attempts, namespaces
        self._knows_right, self._home_cluster = knows_right, home_cluster
        self._metrics, self._tracing = metrics, tracing
        self._entries: Lru[bytes, _ReadyEntry] = Lru(max_count, max_bytes)
        """Answers by the path as sent, because links in an answer begin like the path of the request."""

    def answer(self, path: bytes, scope: Scope) -> Ready | None:
        """Answer GET of this path and query; None if the application has to answer."""
        started = perf_counter()
        match = _PATH.fullmatch(path)
        if match is None:
            return None
        cluster, namespace, name = (group.decode() for group in match.groups(b""))
        pod = PodName(cluster or self._home_cluster, namespace, name)
        if not self._knows_right(scope, pod.cluster, get_pod(namespace, name)):
            return None
        entry = self._entries.peek(path)
        if (
            entry is None
            or entry.revision != self.namespaces.revision
            or b"if-none-match" in dict(scope["headers"])
            or not self._attempts.check_latest(pod, entry.recency)
        ):
            return None
        if self._tracing.is_on:
            parameters = {"namespace": namespace, "name": name} | ({"cluster": cluster} if cluster else {})
            request = {"method": "GET", "path": unquote(path.decode()), "route": entry.route, "path_params": parameters}
            trace_answered(self._tracing, {**scope, **request}, 200)
        self._metrics.count(entry.route.path, 200)
        self._metrics.observe_request(entry.route.path, perf_counter() - started)
        return entry.answer

    def keep(self, path: bytes, recorded: "_RecordedAnswer") -> None:
        attempt, messages = recorded.attempt, recorded.messages
        # Only a complete answer, in one piece.
        if attempt and len(messages) == 2 and messages[0]["status"] == 200:
            answer = Ready.from_parts(messages[0]["headers"], messages[1]["body"])
            entry = _ReadyEntry(attempt.recency, recorded.route, answer, recorded.revision)
            self._entries.put(path, entry, len(answer.body), attempt.started_at)


class _RecordedAnswer:
    """Sender that records an answer. ``attempt``: its attempt in memory; None if the answer must not be cached."""

    def __init__(self, send: Send, revision: int) -> None:
        self._send, self.revision = send, revision
        self.messages: list[Message] = []
        self.attempt: CachedAttempt | None = None
        self.route: Any = None

    async def __call__(self, message: Message) -> None:
        self.messages.append(message)
        await self._send(message)

    def forbid_caching(self) -> None:
        self.attempt = None


class AnswerRecorder:
    """ASGI middleware outside of all that adds headers: stores answers whose handler calls ``allow_caching``."""

    def __init__(self, app: ASGIApp, ready: ReadyAnswers) -> None:
        self._app, self._ready = app, ready

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_plain = scope["type"] == "http" and scope["method"] == "GET" and not scope["query_string"]
        path: bytes = scope.get("raw_path", b"") if is_plain else b""
        if not _PATH.fullmatch(path):
            await self._app(scope, receive, send)
            return
        recorded = _RecordedAnswer(send, self._ready.namespaces.revision)
        scope.setdefault("state", {}).update({_RECORDED: recorded, ON_REDACTION_STATE: recorded.forbid_caching})
        await self._app(scope, receive, recorded)
        self._ready.keep(path, recorded)


def allow_caching(request: Request, attempt: StoredAttempt) -> None:
    """Allow to cache the answer to the request: it follows only from this attempt and is the same for every reader."""
    recorded: _RecordedAnswer | None = request.scope["state"].get(_RECORDED)
    if recorded and isinstance(attempt, CachedAttempt):
        recorded.attempt, recorded.route = attempt, request.scope["route"]
