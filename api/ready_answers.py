"""Answers about pods in memory, kept as they were sent until the pod's latest attempt is another one.

The middleware stands behind the gate: who asks is known, and each caller's right is asked for as the handler does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from api.attempt_lookup import AttemptLookup, StoredAttempt
from api.authority.access import Access
from api.authority.rights import get_pod
from api.http.cluster import Cluster
from api.http.errors import ApiError
from api.index.attempt_queries import PodName
from api.memory.latest_attempts import CachedAttempt
from api.memory.lru import Lru

SHARE_OF_MEMORY: Final = 4
"""Answers take at most a quarter of what the attempts in memory may take."""

Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class _Answer:
    """route: that of the request, which the metrics name.

    recency: of the attempt, which it names without keeping its records in memory.
    """

    cluster: Cluster
    pod: PodName
    recency: tuple[float, int, str]
    route: Any
    headers: Headers
    body: bytes


class ReadyAnswers:
    """Path to the answer to GET without parameters. max_count, max_bytes: how much is kept."""

    def __init__(self, attempts: AttemptLookup, max_count: int, max_bytes: int) -> None:
        self._attempts = attempts
        self._kept: Lru[str, _Answer] = Lru(max_count, max_bytes)

    def keep(
        self, request: Request, cluster: Cluster, pod: PodName, attempt: StoredAttempt, response: Response
    ) -> None:
        """Keep what was answered, where the same may be answered again: a whole answer from memory."""
        scope = request.scope
        is_plain = scope["method"] == "GET" and not scope["query_string"]
        if is_plain and isinstance(attempt, CachedAttempt) and response.status_code == 200:
            headers, body = tuple(response.raw_headers), bytes(response.body)
            answer = _Answer(cluster, pod, attempt.recency, scope.get("route"), headers, body)
            self._kept.put(scope["path"], answer, len(body), attempt.started_at)

    async def answer_to(self, scope: Scope) -> _Answer | None:
        """The answer that is still right, for a caller who may read the pod; None where the handler has to answer."""
        if scope["type"] != "http" or scope["method"] != "GET" or scope["query_string"]:
            return None
        kept = self._kept.peek(scope["path"])
        if kept is None or b"if-none-match" in dict(scope["headers"]):
            return None
        if not await _may_read(scope["state"]["access"], kept) or not self._attempts.has(kept.pod, kept.recency):
            return None
        return kept


async def _may_read(access: Access, kept: _Answer) -> bool:
    try:
        return await access.allows(kept.cluster, get_pod(kept.pod.namespace, kept.pod.name))
    except ApiError:
        # The handler answers why that is not known.
        return False


class AnswersFromMemory:
    """Wraps ``app``, which answers what is not ready."""

    def __init__(self, app: ASGIApp, ready: ReadyAnswers) -> None:
        self._app, self._ready = app, ready

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if answer := await self._ready.answer_to(scope):
            scope["route"] = answer.route
            # A list of its own: what wraps this adds headers to it.
            await send({"type": "http.response.start", "status": 200, "headers": list(answer.headers)})
            await send({"type": "http.response.body", "body": answer.body})
        else:
            await self._app(scope, receive, send)
