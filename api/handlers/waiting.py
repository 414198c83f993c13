"""Handlers of pods by their state, and of refusals by a device."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from api.authority.access import get_access
from api.authority.rights import list_pods
from api.handlers.listing import answer_page
from api.handlers.waiting_page import PendingList, PodSelection
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
    waiting: PendingList

    async def list_pods_by_state(self, request: Request, cluster: Cluster, query: PodsQuery) -> Response:
        """List pods by state, in pages: `placed` (on a node now), `ended` (no longer on it), or `waiting`.

        The longest wait comes first.
        """
        refuse_repeated(request)
        await get_access(request).require(cluster, list_pods(query.namespace))
        if query.state == "waiting":
            values = query.model_dump(include={"namespace", "workload", "queue"}) | {"reasons": query.reason}
            scope = derive_token_scope(get_access(request).caller_name, "waiting pods", query, cluster=cluster.name)
            selection = PodSelection(
                values, query.since or PendingQuery.model_fields["since"].default, limit=query.limit
            )
            body = await self.waiting.read_page(cluster, scope, query.continue_, selection)
            headers = link_next_page(request, body.continue_) | {TOTAL_HEADER: str(body.total)}
            return to_json_response(200, body, headers)
        values = query.model_dump(include={"namespace", "workload", "queue", "node"}) | {"devices": query.device}
        filters = partial(occupancy_queries.build_placement_filters, values, has_ended=query.state == "ended")
        _, response = await answer_page(self.index, request, cluster, occupancy_queries.PLACEMENTS_LIST, query, filters)
        return response

    async def list_refusals(self, request: Request, cluster: Cluster, query: RefusalsQuery) -> Response:
        """List the attempts that a device refused, latest first, with the reason and its numbers.

        A page reads device records of the device's nodes until it is full, at most 500; `read_records` is their number.
        Of retries that changed nothing, only the first has device records.
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
        # A record has the refusals of all devices: the requested reason may belong to another one.
        items = [item for item in page.items if query.reason in (None, item.reason)]
        body = DeviceRefusals.model_validate({"items": items, "read_records": page.read_records, "continue": token})
        return to_json_response(200, body, link_next_page(request, token))
