"""Answers requests about pods by their state, and about what a device refused."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from api.authority.access import access_of
from api.authority.rights import list_pods
from api.handlers.listing import answer_page, item_of
from api.handlers.watching import WatchHandlers
from api.http.cluster import Cluster, RequestedCluster
from api.http.continue_token import encode_token
from api.http.errors import json_response
from api.http.pagination import TOTAL_HEADER, next_page_headers, requested_position, token_scope
from api.http.param_types import parse_time
from api.http.query_params import PendingQuery, PodsQuery, RefusalsQuery, WaitingFilters, refuse_repeated
from api.index import occupancy_queries
from api.index.blocked_workloads import blocked_of, blocked_query
from api.index.client import OpenSearch
from api.index.device_refusals import RefusalsPosition, read_refusals
from api.index.page_query import first_page_range
from api.index.waiting_pods import (
    MAX_WORKLOADS,
    PodsPosition,
    WorkloadsPosition,
    pod_waiting,
    pods_query,
    reason_counts,
    waiting_filters,
    workload_order,
    workload_waiting,
    workloads_behind,
    workloads_query,
)
from schemas.answers.waiting import DeviceRefusals, Pending, PodsWaiting, PodWaiting, WorkloadBlocked
from schemas.codec.records import rfc3339
from schemas.indices import OBSERVATIONS, POD_STATES


@dataclass(frozen=True, slots=True)
class WaitingHandlers:
    index: OpenSearch
    watching: WatchHandlers

    async def pending(
        self, request: Request, cluster: RequestedCluster, query: Annotated[PendingQuery, Query()]
    ) -> Response:
        """The pods that wait now, by workload: how many, since when, and for which reasons; in pages.

        A pod waits if its latest attempt was refused or has no bind result, and no later observation shows it placed or
        gone. Schedulers try a waiting pod every few minutes: one that was not tried since `since` is left out. A
        workload whose number of pods changes between two pages may be on both, or on neither.
        """
        refuse_repeated(request)
        if query.watch:
            return await self.watching.pending(request, cluster, query)
        await access_of(request).require(cluster, list_pods(query.namespace))
        scope = token_scope(access_of(request).caller_name, "pending", query, cluster=cluster.name)
        position = requested_position(query.continue_, scope, WorkloadsPosition)
        since = position.since if position else _resolved(query.since)
        shown = position.shown if position else 0
        filters = waiting_filters(cluster.name, _values(query), since)
        # One more, whose presence shows that there is a next page.
        size = min(shown + query.limit + 1, MAX_WORKLOADS)
        answer = await self.index.search(POD_STATES.alias, workloads_query(filters, size))
        behind = workloads_behind(answer, position.last if position else None)
        page = behind[: query.limit]
        token = None
        if len(behind) > len(page):
            last = workload_order(page[-1])
            token = encode_token(scope, WorkloadsPosition(since=since, shown=shown + len(page), last=last))
        # A workload without pods has neither a queue nor reasons of attempts.
        is_first = position is None and query.queue is None and query.reason is None
        counted = answer.get("aggregations", {})
        total = counted.get("workloads", {}).get("value", 0)
        body = Pending.model_validate(
            {
                "pods": answer["hits"]["total"]["value"],
                "reasons": reason_counts(counted.get("reasons", {})),
                "total": total,
                "items": [workload_waiting(bucket, _pods(cluster, bucket["examples"])) for bucket in page],
                "blocked": await self._blocked(cluster, query, since) if is_first else [],
                "continue": token,
            }
        )
        return json_response(200, body, next_page_headers(request, token) | {TOTAL_HEADER: str(total)})

    async def _blocked(self, cluster: Cluster, query: PendingQuery, since: str) -> list[WorkloadBlocked]:
        body = blocked_query(cluster.name, query.model_dump(include={"namespace", "workload"}), since)
        return blocked_of(await self.index.search(OBSERVATIONS.alias, body))[: query.limit]

    async def pods(self, request: Request, cluster: RequestedCluster, query: Annotated[PodsQuery, Query()]) -> Response:
        """Pods by state, in pages: `placed` (on a node now), `ended` (no longer there), or `waiting` (not placed yet).

        Of those that wait the one that waits longest comes first.
        """
        refuse_repeated(request)
        await access_of(request).require(cluster, list_pods(query.namespace))
        if query.state == "waiting":
            return await self._waiting(request, cluster, query)
        values = query.model_dump(include={"namespace", "workload", "queue", "node"}) | {"devices": query.device}
        filters = partial(occupancy_queries.placement_filters, values, has_ended=query.state == "ended")
        _, response = await answer_page(self.index, request, cluster, occupancy_queries.PLACEMENTS_LIST, query, filters)
        return response

    async def _waiting(self, request: Request, cluster: Cluster, query: PodsQuery) -> Response:
        scope = token_scope(access_of(request).caller_name, "waiting pods", query, cluster=cluster.name)
        position = requested_position(query.continue_, scope, PodsPosition)
        since = position.since if position else _resolved(query.since or PendingQuery.model_fields["since"].default)
        filters = waiting_filters(cluster.name, _values(query), since)
        answer = await self.index.search(
            POD_STATES.alias, pods_query(filters, position.sort if position else None, query.limit)
        )
        hits = answer["hits"]["hits"]
        page, total = hits[: query.limit], answer["hits"]["total"]["value"]
        token = None
        if len(hits) > len(page):
            token = encode_token(scope, PodsPosition(since=since, sort=tuple(page[-1]["sort"])))
        items = _pods(cluster, {"hits": {"hits": page}})
        body = PodsWaiting.model_validate({"total": total, "items": items, "continue": token})
        return json_response(200, body, next_page_headers(request, token) | {TOTAL_HEADER: str(total)})

    async def refusals(
        self, request: Request, cluster: RequestedCluster, query: Annotated[RefusalsQuery, Query()]
    ) -> Response:
        """The attempts that a device refused, latest first, with the reason and the numbers behind it.

        The device records of its nodes are read one by one, as many as a page needs but at most 500; `read_records`
        says how many. Of retries that changed nothing, only the first has device records.
        """
        refuse_repeated(request)
        await access_of(request).require(cluster, list_pods(query.namespace))
        scope = token_scope(access_of(request).caller_name, "refusals", query, cluster=cluster.name)
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


def _resolved(since: str) -> str:
    return rfc3339(parse_time(since, datetime.now(UTC)))


def _values(query: WaitingFilters) -> dict[str, str | None]:
    """Field of the documents to the value that is asked for."""
    return query.model_dump(include={"namespace", "workload", "queue"}) | {"reasons": query.reason}


def _pods(cluster: Cluster, answer: dict[str, Any]) -> list[PodWaiting]:
    """The pods of a search's hits. Raises ``UnreadableError``."""
    return [item_of(hit, partial(pod_waiting, cluster)) for hit in answer["hits"]["hits"]]
