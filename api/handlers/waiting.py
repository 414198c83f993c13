"""Answers requests about pods by their state, and about what a device refused."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from api.handlers.listing import answer_page
from api.http.cluster import Cluster, RequestedCluster
from api.http.continue_token import encode_token
from api.http.errors import json_response
from api.http.pagination import TOTAL_HEADER, next_page_headers, requested_position, token_scope
from api.http.param_types import parse_time
from api.http.query_params import PendingQuery, PodsQuery, RefusalsQuery, WaitingFilters, refuse_repeated
from api.index import occupancy_queries
from api.index.client import OpenSearch
from api.index.device_refusals import RefusalsPosition, read_refusals
from api.index.page_query import first_page_range
from api.index.waiting_pods import WaitingPods, blocked_of, blocked_query, pending, read_waiting_pods
from schemas.answers.waiting import DeviceRefusals, PodsWaiting, PodWaiting, WorkloadBlocked
from schemas.codec.records import rfc3339
from schemas.indices import OBSERVATIONS


@dataclass(frozen=True, slots=True)
class WaitingHandlers:
    index: OpenSearch

    async def pending(
        self, request: Request, cluster: RequestedCluster, query: Annotated[PendingQuery, Query()]
    ) -> Response:
        """The pods that wait now, by workload: how many, since when, and for which reasons.

        A pod waits if its latest attempt was refused or has no bind result, and no later observation shows it placed or
        gone. Schedulers try a waiting pod every few minutes: one that was not tried since `since` is left out.
        """
        refuse_repeated(request)
        waiting = await self._waiting(cluster, query, query.since)
        # A workload without pods has neither a queue nor reasons of attempts.
        asked_otherwise = query.queue is not None or query.reason is not None
        blocked = [] if asked_otherwise else await self._blocked(cluster, query)
        return json_response(200, pending(waiting, blocked, query.limit))

    async def _blocked(self, cluster: Cluster, query: PendingQuery) -> list[WorkloadBlocked]:
        since = rfc3339(parse_time(query.since, datetime.now(UTC)))
        body = blocked_query(cluster.name, query.model_dump(include={"namespace", "workload"}), since)
        return blocked_of(await self.index.search(OBSERVATIONS.alias, body))

    async def pods(self, request: Request, cluster: RequestedCluster, query: Annotated[PodsQuery, Query()]) -> Response:
        """Pods by state: `placed` (on a node now), `ended` (no longer there), or `waiting` (not placed yet).

        `placed` and `ended` list placements in pages; `waiting` lists at most `limit` pods, the longest wait first.
        """
        refuse_repeated(request)
        if query.state == "waiting":
            waiting = await self._waiting(cluster, query, query.since or PendingQuery.model_fields["since"].default)
            items = waiting.pods[: query.limit]
            return json_response(
                200,
                PodsWaiting(total=len(waiting.pods), items=items, complete=waiting.is_complete),
                {TOTAL_HEADER: str(len(waiting.pods))},
            )
        values = query.model_dump(include={"namespace", "workload", "queue", "node"}) | {"devices": query.device}
        filters = partial(occupancy_queries.placement_filters, values, has_ended=query.state == "ended")
        _, response = await answer_page(self.index, request, cluster, occupancy_queries.PLACEMENTS_LIST, query, filters)
        return response

    async def _waiting(self, cluster: Cluster, query: WaitingFilters, since: str) -> WaitingPods:
        earliest = rfc3339(parse_time(since, datetime.now(UTC)))
        found = await read_waiting_pods(self.index, cluster, query.namespace, earliest)
        return WaitingPods([pod for pod in found.pods if _is_wanted(pod, query)], found.is_complete)

    async def refusals(
        self, request: Request, cluster: RequestedCluster, query: Annotated[RefusalsQuery, Query()]
    ) -> Response:
        """The attempts that a device refused, latest first, with the reason and the numbers behind it.

        The device records of its nodes are read one by one, as many as a page needs but at most 500; `read_records`
        says how many. Of retries that changed nothing, only the first has device records.
        """
        refuse_repeated(request)
        scope = token_scope("refusals", query, cluster=cluster.name)
        position = requested_position(query.continue_, scope, RefusalsPosition)
        if position is None:
            since, until = first_page_range(query.since, query.until, datetime.now(UTC))
            position = RefusalsPosition(sort=None, since=since, until=until)
        values = {"namespace": query.namespace, "pod": query.pod, "reasons": query.reason}
        page = await read_refusals(self.index, cluster, query.device, values, position, query.limit)
        token = encode_token(scope, page.next_position) if page.next_position else None
        # A record has the refusals of all devices: the reason asked for may be that of another one.
        items = [item for item in page.items if query.reason in (None, item.reason)]
        body = DeviceRefusals.model_validate({"items": items, "read_records": page.read_records, "continue": token})
        return json_response(200, body, next_page_headers(request, token))


def _is_wanted(pod: PodWaiting, query: WaitingFilters) -> bool:
    return (
        query.workload in (None, pod.workload)
        and query.queue in (None, pod.queue)
        and (query.reason is None or query.reason in pod.reasons)
    )
