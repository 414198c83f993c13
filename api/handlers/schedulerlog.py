"""Handlers of scheduling attempts: the latest of a pod, its history, and search over all attempts."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from api.answers.attempt_lookup import AttemptLookup, StoredAttempt
from api.answers.ready_answers import allow_caching
from api.authority.access import get_access
from api.authority.rights import get_pod, list_pods
from api.handlers.attempt_rights import find_readable_attempt, find_readable_latest
from api.handlers.not_found import to_no_attempt_of_pod_error
from api.handlers.redaction import change_episode_texts, change_search_item_texts, redact_attempt, redact_texts
from api.handlers.watching import WatchHandlers
from api.http.cluster import Cluster
from api.http.errors import ExpiredError, to_json_response
from api.http.pagination import TOTAL_HEADER, Position, derive_token_scope, encode_token, link_next_page, parse_position
from api.http.param_types import AttemptInPath, NamespaceInPath, PodInPath
from api.http.query_params import HistoryQuery, PageOfNodes, SchedulerlogQuery, SearchQuery, refuse_repeated
from api.index.attempts.attempt_queries import (
    SEARCH_SOURCE,
    WORKLOADS,
    PodName,
    SearchPosition,
    build_refusal_counts,
    build_search_filters,
    to_node_refusals,
    to_workload,
)
from api.index.attempts.attempt_reader import DEVICES_OF_ORIGINAL, read_devices, read_items
from api.index.attempts.episodes import HistoryPosition
from api.index.attempts.history import read_history
from api.index.reading.client import IndexDownError, OpenSearch
from api.index.reading.pages import build_first_position, read_page
from engine.summaries.answer import NodePage, build_detail, encode_schedulerlog, select_nodes
from engine.summaries.named_pods import hide_pods_in_attempt
from schemas.answers.attempts import History, Paging, Search
from schemas.events import AttemptSummarized, build_pod_key

_REVALIDATED: Final = "no-cache"
"""Cache policy: clients may store the answer, but must ask with If-None-Match before they show it again."""


class NodePosition(Position):
    """Beginning of a page of nodes: after the node ``after`` of this version of this attempt."""

    attempt_id: str
    version: int
    after: str


@dataclass(frozen=True, slots=True)
class SchedulerlogHandlers:
    attempts: AttemptLookup
    index: OpenSearch
    watching: WatchHandlers

    async def get_schedulerlog(
        self,
        request: Request,
        cluster: Cluster,
        namespace: NamespaceInPath,
        name: PodInPath,
        query: SchedulerlogQuery,
    ) -> Response:
        """Get the pod's latest scheduling attempt: every judged node with its verdict and reasons."""
        refuse_repeated(request, "node")
        if query.watch:
            return await self.watching.watch_pod(request, cluster, namespace, name, query)
        pod = PodName(cluster.name, namespace, name)
        attempt = await find_readable_latest(self.attempts, request, cluster, pod)
        response, is_for_every_reader = await self._answer(request, cluster, attempt, query)
        if is_for_every_reader:
            allow_caching(request, attempt)
        return response

    async def get_attempt(
        self,
        request: Request,
        cluster: Cluster,
        attempt_id: AttemptInPath,
        query: PageOfNodes,
    ) -> Response:
        """Get one scheduling attempt by its id, or by the id of a report of it, also if the pod has later attempts.

        The answer has the form of a pod's schedulerlog.
        """
        refuse_repeated(request, "node")
        attempt = await find_readable_attempt(self.attempts, request, cluster, attempt_id)
        return (await self._answer(request, cluster, attempt, query))[0]

    async def _answer(
        self, request: Request, cluster: Cluster, attempt: StoredAttempt, query: PageOfNodes
    ) -> tuple[Response, bool]:
        """Answer, and tell whether the answer is the same for everybody who may read the pod."""
        full_summary = attempt.read_summary()
        is_for_every_reader = not query.detail and hide_pods_in_attempt(full_summary) is full_summary
        summary = await redact_attempt(get_access(request), cluster, full_summary, has_detail=bool(query.detail))
        if query.detail and query.node:
            return await self._with_devices(request, attempt, summary, query), False
        # An answer follows from the attempt, the parameters and the parts hidden from the caller; the parameters are
        # part of the URL by which a client caches.
        etag = f'"{attempt.attempt_id}-{attempt.version}{"-hidden" if summary is not full_summary else ""}"'
        # Searched as a text, because the header may list several tags, and proxies mark them as weak (W/"…").
        if etag in request.headers.get("if-none-match", ""):
            unchanged = Response(status_code=304, headers={"ETag": etag, "Cache-Control": _REVALIDATED})
            return unchanged, is_for_every_reader
        response = _to_response(request, summary, query)
        response.headers["ETag"] = etag
        return response, is_for_every_reader

    async def _with_devices(
        self, request: Request, attempt: StoredAttempt, summary: AttemptSummarized, query: PageOfNodes
    ) -> Response:
        # Without an ETag: the index may gain or lose device records while the attempt stays the same.
        devices: list[dict[str, Any]] | None
        try:
            rows, note = await read_devices(
                self.index, summary.cluster, attempt.original_id, summary.started_at, query.node
            )
        except IndexDownError as error:
            # The devices are an addition; the other parts of the answer do not need the index.
            devices, note = None, f"OpenSearch does not answer: {error}"
        else:
            devices = [row.model_dump() for row in rows]
            if attempt.original_id != attempt.attempt_id:
                note = " ".join(filter(None, (DEVICES_OF_ORIGINAL.format(attempt.original_id), note)))
        return _to_response(request, summary, query, devices, note)

    async def list_episodes(
        self,
        request: Request,
        cluster: Cluster,
        namespace: NamespaceInPath,
        name: PodInPath,
        query: HistoryQuery,
    ) -> Response:
        """List the pod's attempts, latest first. Attempts in a row with equal verdicts and status are one episode."""
        refuse_repeated(request)
        await get_access(request).require(cluster, get_pod(namespace, name))
        pod = PodName(cluster.name, namespace, name)
        scope = derive_token_scope(get_access(request).caller_name, "history", query, **pod._asdict())
        position = parse_position(query.continue_, scope, HistoryPosition)
        # The index shows an attempt about a second late; the history would lack the latest answer.
        cached = self.attempts.find_current_in_memory(pod)
        latest = cached.read_summary() if cached else None
        page = await read_history(self.index, cluster, pod, query.limit, position, latest)
        # A later page may be empty: its episodes may have passed their retention since the page before.
        if not page.episodes and position is None:
            raise to_no_attempt_of_pod_error(*pod)
        token = encode_token(scope, page.next_position) if page.next_position else None
        episodes = await redact_texts(get_access(request), cluster, namespace, page.episodes, change_episode_texts)
        body = History.model_validate({"namespace": namespace, "name": name, "episodes": episodes, "continue": token})
        return to_json_response(200, body, link_next_page(request, token))

    async def search(self, request: Request, cluster: Cluster, query: SearchQuery) -> Response:
        """Search attempts of all pods, latest first. The index shows an attempt about a second after its decision."""
        refuse_repeated(request)
        if query.watch:
            return await self.watching.watch_attempts(request, cluster, query)
        await get_access(request).require(cluster, list_pods(query.namespace))
        scope = derive_token_scope(get_access(request).caller_name, "schedulerlogs", query, cluster=cluster.name)
        position = parse_position(query.continue_, scope, SearchPosition)
        position = position or build_first_position(SearchPosition, query.since, query.until, datetime.now(UTC))
        counted_by = {"workload": WORKLOADS, "node": build_refusal_counts(query.node, query.reason)}
        source = replace(SEARCH_SOURCE, counts=counted_by[query.group_by]) if query.group_by else SEARCH_SOURCE
        page = await read_page(
            self.index, source, build_search_filters(cluster.name, query, position), position, query.limit
        )
        token = encode_token(scope, page.next_position) if page.next_position else None
        read = await read_items(self.index, cluster, page.hits)
        items = await redact_texts(get_access(request), cluster, query.namespace, read, change_search_item_texts)
        counts_by_name: dict[str, Any] = page.counts or {}
        item = {"workloads": to_workload, "nodes": to_node_refusals}
        counted = {
            name: [item[name](bucket) for bucket in counts["buckets"]] for name, counts in counts_by_name.items()
        }
        body = Search.model_validate({"total": page.total, "items": items, "continue": token} | counted)
        return to_json_response(200, body, link_next_page(request, token) | {TOTAL_HEADER: str(page.total)})


def _to_response(
    request: Request,
    summary: AttemptSummarized,
    query: PageOfNodes,
    devices: list[dict[str, Any]] | None = None,
    devices_note: str = "",
) -> Response:
    """Answer one page of the attempt's nodes. With ``detail=full`` it also has ``devices`` and ``devices_note``."""
    scope = {
        "list": "schedulerlog",
        "caller": get_access(request).caller_name,
        "pod": build_pod_key(summary.cluster, summary.pod),
        # The order of the requested nodes does not change the page.
        "node": sorted(query.node),
        "status": query.status,
    }
    chosen = _select_page(summary, query, parse_position(query.continue_, scope, NodePosition))
    token = None
    if chosen.last is not None:
        position = NodePosition(attempt_id=summary.attempt_id, version=summary.version, after=chosen.last)
        token = encode_token(scope, position)
    additions = None
    if query.detail:
        paging = Paging.model_validate({"total": chosen.total, "continue": token}).model_dump(by_alias=True)
        additions = {
            "detail": build_detail(summary, query.node),
            "paging": paging,
            "devices": devices,
            "devices_note": devices_note,
        }
    headers = {TOTAL_HEADER: str(chosen.total), "Cache-Control": _REVALIDATED} | link_next_page(request, token)
    return Response(encode_schedulerlog(summary, chosen, additions), headers=headers, media_type="application/json")


def _select_page(summary: AttemptSummarized, query: PageOfNodes, position: NodePosition | None) -> NodePage:
    """Select a page of nodes. Raises ``ExpiredError`` for the position of another attempt or of an older version."""
    if position and (position.attempt_id, position.version) != (summary.attempt_id, summary.version):
        raise ExpiredError(
            "the pod has a new attempt, or the attempt has new facts, since the page before",
            "Ask for the first page, without continue.",
        )
    after = position.after if position else None
    return select_nodes(summary, nodes=query.node or None, status=query.status, after=after, limit=query.limit)
