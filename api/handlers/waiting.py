"""Answers requests about pods by their state, and about what a device refused."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from api.authority.access import get_access
from api.authority.rights import list_pods
from api.handlers.listing import answer_page
from api.handlers.waiting_page import AskedPods, WaitingPods
from api.http.cluster import Cluster
from api.http.errors import to_json_response
from api.http.pagination import TOTAL_HEADER, derive_token_scope, encode_token, link_next_page, parse_position
from api.http.pending_query import PendingQuery
from api.http.query_params import PodsQuery, RefusalsQuery, refuse_repeated
from api.index.attempts.device_refusals import RefusalsPosition, read_refusals
from api.index.nodes import occupancy_queries
from api.index.reading.client import OpenSearch
from api.index.reading.pages import resolve_range
from schemas.answers.waiting import DeviceRefusals


@dataclass(frozen=True, slots=True)
class WaitingHandlers:
    index: OpenSearch
    waiting: WaitingPods

    async def pods(self, request: Request, cluster: Cluster, query: PodsQuery) -> Response:
        """Pods by state, in pages: `placed` (on a node now), `ended` (no longer there), or `waiting` (not placed yet).

        Of those that wait the one that waits longest comes first.
        """
        refuse_repeated(request)
        await get_access(request).require(cluster, list_pods(query.namespace))
        if query.state == "waiting":
            values = query.model_dump(include={"namespace", "workload", "queue"}) | {"reasons": query.reason}
            scope = derive_token_scope(get_access(request).caller_name, "waiting pods", query, cluster=cluster.name)
            asked = AskedPods(values, query.since or PendingQuery.model_fields["since"].default, limit=query.limit)
            body = await self.waiting.pods(cluster, scope, query.continue_, asked)
            headers = link_next_page(request, body.continue_) | {TOTAL_HEADER: str(body.total)}
            return to_json_response(200, body, headers)
        values = query.model_dump(include={"namespace", "workload", "queue", "node"}) | {"devices": query.device}
        filters = partial(occupancy_queries.build_placement_filters, values, has_ended=query.state == "ended")
        _, response = await answer_page(self.index, request, cluster, occupancy_queries.PLACEMENTS_LIST, query, filters)
        return response

    async def refusals(self, request: Request, cluster: Cluster, query: RefusalsQuery) -> Response:
        """The attempts that a device refused, latest first, with the reason and the numbers behind it.

        The device records of its nodes are read one by one, as many as a page needs but at most 500; `read_records`
        says how many. Of retries that changed nothing, only the first has device records.
        """
        refuse_repeated(request)
        await get_access(request).require(cluster, list_pods(query.namespace))
        scope = derive_token_scope(get_access(request).caller_name, "refusals", query, cluster=cluster.name)
        position = parse_position(query.continue_, scope, RefusalsPosition)
        if position is None:
            since, until = resolve_range(query.since, query.until, datetime.now(UTC))
            position = RefusalsPosition(sort=None, since=since, until=until)
        values = {"namespace": query.namespace, "pod": query.pod, "reasons": query.reason}
        page = await read_refusals(self.index, cluster, query.device, values, position, query.limit)
        token = encode_token(scope, page.next_position) if page.next_position else None
        # A record has the refusals of all devices: the reason asked for may be that of another one.
        items = [item for item in page.items if query.reason in (None, item.reason)]
        body = DeviceRefusals.model_validate({"items": items, "read_records": page.read_records, "continue": token})
        return to_json_response(200, body, link_next_page(request, token))
