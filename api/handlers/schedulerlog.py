"""Answers the requests: looks the attempt up, lets the pure code write the bytes, adds headers."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from api.attempt_lookup import Attempts, Known
from api.handlers.health import Alive, Readiness
from api.handlers.listing import read_page
from api.handlers.not_found import unknown_pod
from api.http.continue_token import Position, seal
from api.http.errors import ExpiredError, json_response
from api.http.pagination import TOTAL, next_page, position_of, question
from api.http.query_params import HistoryQuery, InNamespace, NoQuery, PodName, SchedulerlogQuery, SearchQuery, once
from api.index import attempt_reader, history
from api.index.attempt_queries import SEARCHED, SearchPosition, searched
from api.index.client import IndexDownError, OpenSearch
from api.index.episodes import HistoryPosition
from api.index.query_dsl import first_page
from api.metrics import CONTENT_TYPE, Metrics
from schemas.answers.attempts import History, Paging, Search
from schemas.events import AttemptSummarized
from summaries.answer import Chosen, choose, detail, schedulerlog_json


class NodePosition(Position):
    """Behind this node the next page begins, as long as this attempt is the pod's latest."""

    attempt_id: str
    version: int
    after: str


@dataclass(frozen=True, slots=True)
class Endpoints:
    attempts: Attempts
    index: OpenSearch
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
        return _answer(request, known.summary(), query, tag)

    async def _with_devices(self, request: Request, known: Known, query: SchedulerlogQuery) -> Response:
        # Without an ETag: the devices may come into the index, or leave it, without a new attempt.
        summary = known.summary()
        try:
            rows, note = await attempt_reader.devices_of_nodes(
                self.index, known.whole_id, summary.started_at, query.node
            )
            if known.whole_id != known.attempt_id:
                note = " ".join(filter(None, (attempt_reader.REPEATED.format(known.whole_id), note)))
            devices = [row.model_dump() for row in rows]
        except IndexDownError as error:
            devices, note = None, f"OpenSearch does not answer: {error}"
        return _answer(request, summary, query, None, {"devices": devices, "devices_note": note})

    async def history(
        self, request: Request, namespace: InNamespace, name: PodName, query: Annotated[HistoryQuery, Query()]
    ) -> Response:
        """The pod's attempts, latest first; those in a row with the same verdicts are one episode."""
        once(request)
        asked = {"at": "history", "namespace": namespace, "name": name}
        position = position_of(query.continue_, asked, HistoryPosition)
        newest = self.attempts.fresh(namespace, name)
        page = await history.history(
            self.index, (namespace, name), query.limit, position, newest.summary() if newest else None
        )
        if not page.episodes and position is None:
            raise unknown_pod(namespace, name)
        token = seal(asked, page.following) if page.following else None
        body = History.model_validate(
            {"namespace": namespace, "name": name, "episodes": page.episodes, "continue": token}
        )
        return json_response(200, body, next_page(request, token))

    async def search(self, request: Request, query: Annotated[SearchQuery, Query()]) -> Response:
        """Attempts of all pods, latest first. The index shows an attempt about a second after it was decided."""
        once(request)
        asked = question("schedulerlogs", query)
        place = position_of(query.continue_, asked, SearchPosition)
        place = place or first_page(SearchPosition, query.since, query.until, datetime.now(UTC))
        page = await read_page(self.index, SEARCHED, searched(query, place), place, query.limit)
        token = seal(asked, page.following) if page.following else None
        found = await attempt_reader.items(self.index, page.hits)
        body = Search.model_validate({"total": page.total, "items": found, "continue": token})
        return json_response(200, body, next_page(request, token) | {TOTAL: str(page.total)})

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


def _answer(
    request: Request,
    summary: AttemptSummarized,
    query: SchedulerlogQuery,
    tag: str | None,
    devices: dict[str, object] | None = None,
) -> Response:
    asked = {"at": "schedulerlog", "pod": str(summary.pod), "node": sorted(query.node), "status": query.status}
    chosen = _chosen(summary, query, position_of(query.continue_, asked, NodePosition))
    token = None
    if chosen.last is not None:
        token = seal(asked, NodePosition(attempt_id=summary.attempt_id, version=summary.version, after=chosen.last))
    beside = _beside(summary, chosen.total, token, devices) if query.detail else None
    headers = {TOTAL: str(chosen.total), "Cache-Control": "no-cache"} | next_page(request, token)
    headers |= {"ETag": tag} if tag else {}
    return Response(schedulerlog_json(summary, chosen, beside), headers=headers, media_type="application/json")


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
