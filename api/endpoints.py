"""Answers the requests: looks the attempt up, lets the pure code write the bytes, adds headers."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import urlencode

from fastapi import Query, Request
from starlette.responses import Response

from api import histories, reader
from api.attempts import Attempts, Known
from api.episodes import HistoryPosition
from api.errors import BadRequestError, ExpiredError, NotFoundError, json_response
from api.finds import SearchPosition, first_page, question
from api.lru import Lru
from api.metrics import CONTENT_TYPE, Metrics
from api.opensearch import IndexDownError, OpenSearch
from api.queries import HistoryQuery, InNamespace, NoQuery, PodName, SchedulerlogQuery, SearchQuery, once
from api.readiness import Alive, Readiness
from api.tokens import BadToken, Position, seal, unseal
from schemas.answers import History, Paging, Search
from schemas.events import AttemptSummarized
from summaries.answer import Chosen, choose, detail, schedulerlog_json

P = TypeVar("P", bound=Position)

TOTAL: Final = "X-Total-Count"
CONTINUE: Final = "X-Continue"


class NodePosition(Position):
    """Behind this node the next page begins, as long as this attempt is the pod's latest."""

    attempt_id: str
    version: int
    after: str


@dataclass(frozen=True, slots=True)
class Rendered:
    body: bytes
    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class Endpoints:
    attempts: Attempts
    index: OpenSearch
    rendered: Lru[tuple[str, int, str], Rendered]
    metrics: Metrics
    readiness: Callable[[], Any]

    async def schedulerlog(
        self, request: Request, namespace: InNamespace, name: PodName, query: Annotated[SchedulerlogQuery, Query()]
    ) -> Response:
        """What became of the pod's latest scheduling attempt: every node with its verdict, and why."""
        once(request, "node")
        known = await self.attempts.latest(namespace, name)
        if known is None:
            raise unknown_pod(namespace, name)
        if query.detail and query.node:
            return await self._with_devices(request, known, query)
        tag = f'"{known.attempt_id}-{known.version}"'
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers={"ETag": tag})
        key = known.attempt_id, known.version, request.url.query
        found = self.rendered.get(key, time.time())
        if found is None:
            found = _rendered(request, known.summary(), query, tag)
            self.rendered.put(key, found, len(found.body) + len(key[2]), time.time())
        return Response(found.body, headers=found.headers, media_type="application/json")

    async def _with_devices(self, request: Request, known: Known, query: SchedulerlogQuery) -> Response:
        # Neither kept nor tagged: the devices may come into the index, or leave it, without a new attempt.
        summary = known.summary()
        try:
            rows, note = await reader.devices_of_nodes(self.index, known.whole_id, summary.started, query.node)
            if known.whole_id != known.attempt_id:
                note = " ".join(filter(None, (reader.REPEATED.format(known.whole_id), note)))
            devices = [row.model_dump() for row in rows]
        except IndexDownError as error:
            devices, note = None, f"OpenSearch does not answer: {error}"
        found = _rendered(request, summary, query, None, {"devices": devices, "devices_note": note})
        return Response(found.body, headers=found.headers, media_type="application/json")

    async def history(
        self, request: Request, namespace: InNamespace, name: PodName, query: Annotated[HistoryQuery, Query()]
    ) -> Response:
        """The pod's attempts, latest first; those in a row with the same verdicts are one episode."""
        once(request)
        asked = {"at": "history", "namespace": namespace, "name": name}
        position = _position(query.continue_, asked, HistoryPosition)
        newest = self.attempts.fresh(namespace, name)
        page = await histories.history(
            self.index, (namespace, name), query.limit, position, newest.summary() if newest else None
        )
        if not page.episodes and position is None:
            raise unknown_pod(namespace, name)
        token = seal(asked, page.following) if page.following else None
        body = History.model_validate(
            {"namespace": namespace, "name": name, "episodes": page.episodes, "continue": token}
        )
        return json_response(200, body, _next_page(request, token))

    async def search(self, request: Request, query: Annotated[SearchQuery, Query()]) -> Response:
        """Attempts of all pods, latest first. The index shows an attempt about a second after it was decided."""
        once(request)
        place = _position(query.continue_, question(query), SearchPosition) or first_page(query, datetime.now(UTC))
        page = await reader.search(self.index, query, place)
        token = seal(question(query), page.following) if page.following else None
        body = Search.model_validate({"total": page.total, "items": page.items, "continue": token})
        return json_response(200, body, _next_page(request, token) | {TOTAL: str(page.total)})

    async def healthz(self, _: Annotated[NoQuery, Query()]) -> Response:
        """The process is alive."""
        return json_response(200, Alive())

    async def readyz(self, _: Annotated[NoQuery, Query()]) -> Response:
        """Which parts are ready. 200 once the topic was replayed, or while it can't be and OpenSearch answers."""
        found: Readiness = await self.readiness()
        return json_response(200 if found.ready else 503, found)

    async def metrics_text(self, _: Annotated[NoQuery, Query()]) -> Response:
        """Prometheus text."""
        return Response(self.metrics.text(), media_type=CONTENT_TYPE)


def _rendered(
    request: Request,
    summary: AttemptSummarized,
    query: SchedulerlogQuery,
    tag: str | None,
    devices: dict[str, object] | None = None,
) -> Rendered:
    asked = {"at": "schedulerlog", "pod": str(summary.pod), "node": sorted(query.node), "status": query.status}
    chosen = _chosen(summary, query, _position(query.continue_, asked, NodePosition))
    token = None
    if chosen.last is not None:
        token = seal(asked, NodePosition(attempt_id=summary.attempt_id, version=summary.version, after=chosen.last))
    beside = _beside(summary, chosen.total, token, devices) if query.detail else None
    headers = {TOTAL: str(chosen.total), "Cache-Control": "no-cache"} | _next_page(request, token)
    return Rendered(schedulerlog_json(summary, chosen, beside), headers | ({"ETag": tag} if tag else {}))


def _beside(
    summary: AttemptSummarized, total: int, token: str | None, devices: dict[str, object] | None
) -> dict[str, object]:
    paging = Paging.model_validate({"total": total, "continue": token}).model_dump(by_alias=True)
    return {"detail": detail(summary), "paging": paging} | (devices or {"devices": None, "devices_note": ""})


def _chosen(summary: AttemptSummarized, query: SchedulerlogQuery, position: NodePosition | None) -> Chosen:
    if position and (position.attempt_id, position.version) != (summary.attempt_id, summary.version):
        raise ExpiredError(
            "the pod has been tried again since the page before", "Ask for the first page, without continue."
        )
    after = position.after if position else None
    return choose(summary, nodes=query.node or None, status=query.status, after=after, limit=query.limit)


def _position(token: str | None, asked: dict[str, Any], kind: type[P]) -> P | None:
    if token is None:
        return None
    position = unseal(token, asked, kind)
    if isinstance(position, BadToken):
        raise BadRequestError(f"parameter continue: {position.cause}", "Ask for the first page, without continue.")
    return position


def _next_page(request: Request, token: str | None) -> dict[str, str]:
    """Headers that lead to the next page: the token alone, and a link that holds it."""
    if token is None:
        return {}
    kept = [(key, value) for key, value in request.query_params.multi_items() if key != "continue"]
    link = f"{request.url.path}?{urlencode([*kept, ('continue', token)])}"
    return {CONTINUE: token, "Link": f'<{link}>; rel="next"'}


def unknown_pod(namespace: str, name: str) -> NotFoundError:
    pod = f"kubectl -n {namespace} get pod {name}"
    return NotFoundError(
        f"no scheduling attempt of pod {namespace}/{name} is known",
        f"Does the pod exist: `{pod}`. Is it this scheduler's: `{pod} -o jsonpath='{{.spec.schedulerName}}'`. Does it "
        "ask for devices (only such pods are recorded): "
        f"`{pod} -o jsonpath='{{.spec.containers[*].resources.limits}}'`. "
        "Do the scheduler and the worker run: ask the /readyz of each; `python -m pipeline worker` starts a worker.",
    )
