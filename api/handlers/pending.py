"""Handler of pods that wait now: by workload, by obstacle or one by one; as JSON, rows or CSV."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from api.authority.access import get_access
from api.authority.rights import list_pods
from api.handlers.pending_rows import to_row
from api.handlers.waiting_page import PendingList, PodSelection
from api.handlers.watching import WatchHandlers
from api.http.cluster import Cluster
from api.http.errors import to_json_response
from api.http.pagination import TOTAL_HEADER, derive_token_scope, encode_token, link_next_page, parse_position
from api.http.param_types import parse_time
from api.http.pending_query import PendingQuery, choose_format
from api.http.query_params import refuse_repeated
from api.http.tables import CSV, to_csv
from api.index.waiting.waiting_groups import (
    MAX_GROUPS,
    GroupName,
    GroupsPosition,
    build_groups_query,
    parse_layers,
    parse_reason_counts,
    rank_group,
    skip_groups,
    to_waiting_layer,
    to_waiting_obstacle,
    to_waiting_workload,
)
from api.index.waiting.waiting_pods import build_blocked_query, parse_blocked
from schemas.answers.waiting import Pending, PendingLayers, PendingObstacles, PendingRow, PodsWaiting, WorkloadBlocked
from schemas.codec.records import encode_value, format_rfc3339
from schemas.indices import OBSERVATIONS, POD_STATES

Answers = Pending | PendingObstacles | PendingLayers | PodsWaiting
_OF_ATTEMPTS: Final = ("queue", "reasons", "pools", "models", "obstacle", "layer")


@dataclass(frozen=True, slots=True)
class PendingHandlers:
    waiting: PendingList
    watching: WatchHandlers

    async def list_pending(self, request: Request, cluster: Cluster, query: PendingQuery) -> Response:
        """List the pods that wait now by workload, in pages: their number, the beginning of the wait, and the reasons.

        With `group_by=obstacle`, pods with the same request and the same obstacle are one row; with `group_by=layer`,
        the pods that one layer holds (queue, gate, nodes, bind, start) are one row; with `group_by=pod`, each pod, with
        its main obstacle, the node that lacks least, and the GPU-hours of its wait. A pod waits if its latest attempt
        was refused or has no bind result, and no later observation shows it placed or deleted; or if no scheduler tries
        it: it has a gate, its group or a claim is missing, its kubelet refused it. `layers` counts the pods by the
        layer that holds them: queue, gate, nodes, bind, start. Schedulers try a waiting pod every few minutes, so the
        list leaves out pods whose latest attempt was before `since`. A group whose number of pods changes between two
        pages may be on both, or on neither.
        """
        refuse_repeated(request)
        if query.watch:
            return await self.watching.watch_pending(request, cluster, query)
        await get_access(request).require(cluster, list_pods(query.namespace))
        scope = derive_token_scope(get_access(request).caller_name, "pending", query, cluster=cluster.name)
        if query.group_by == "pod":
            body: Answers = await self.waiting.read_page(cluster, scope, query.continue_, _select_pods(query))
        else:
            body = await self._list_groups(cluster, scope, query, query.group_by)
        return _to_response(request, query, body)

    async def _list_groups(
        self, cluster: Cluster, scope: dict[str, Any], query: PendingQuery, group_by: GroupName
    ) -> Pending | PendingObstacles | PendingLayers:
        order = query.order
        position = parse_position(query.continue_, scope, GroupsPosition)
        moment = datetime.fromisoformat(position.at) if position else datetime.now(UTC)
        since = position.since if position else format_rfc3339(parse_time(query.since, moment))
        count_before = position.shown if position else 0
        # One more group, whose presence shows that there is a next page.
        size = min(count_before + query.limit + 1, MAX_GROUPS)
        body = build_groups_query(
            _select_pods(query).build_query(cluster.name, since, moment), group_by, order, moment, size
        )
        answer = await self.waiting.index.search(POD_STATES.alias, body)
        behind = skip_groups(answer, order, position.last if position else None)
        page = behind[: query.limit]
        token = None
        if len(behind) > len(page):
            last = rank_group(page[-1], order)
            next_one = GroupsPosition(since=since, at=format_rfc3339(moment), shown=count_before + len(page), last=last)
            token = encode_token(scope, next_one)
        examples = await self.waiting.convert_hits(
            cluster, [bucket["examples"]["hits"]["hits"] for bucket in page], moment
        )
        groups = list(zip(page, examples, strict=True))
        counted = answer.get("aggregations", {})
        total = counted.get("total", {}).get("value", 0)
        shared = {
            "pods": answer["hits"]["total"]["value"],
            "layers": parse_layers(counted.get("layers", {}), moment),
            "total": total,
            "continue": token,
        }
        if group_by == "obstacle":
            return PendingObstacles.model_validate(
                shared | {"items": [to_waiting_obstacle(bucket, pods, moment) for bucket, pods in groups]}
            )
        if group_by == "layer":
            return PendingLayers.model_validate(
                shared | {"items": [to_waiting_layer(bucket, pods, moment) for bucket, pods in groups]}
            )
        return Pending.model_validate(
            shared
            | {
                "obstacles": parse_reason_counts(counted.get("obstacles", {})),
                "reasons": parse_reason_counts(counted.get("reasons", {})),
                "items": [to_waiting_workload(bucket, pods, moment) for bucket, pods in groups],
                "blocked": await self._list_blocked(cluster, query, since) if position is None else [],
            }
        )

    async def _list_blocked(self, cluster: Cluster, query: PendingQuery, since: str) -> list[WorkloadBlocked]:
        # A workload without pods has no attempts, and so no queue, reasons or wait.
        if query.format or query.min_wait or any(_select_pods(query).values[field] for field in _OF_ATTEMPTS):
            return []
        body = build_blocked_query(cluster.name, query.model_dump(include={"namespace", "workload"}), since)
        return parse_blocked(await self.waiting.index.search(OBSERVATIONS.alias, body))[: query.limit]


def _select_pods(query: PendingQuery) -> PodSelection:
    values = query.model_dump(include={"namespace", "workload", "queue", "obstacle", "layer"})
    values |= {"reasons": query.reason, "pools": query.pool, "models": query.model}
    order = query.order if query.group_by == "pod" else "wait"
    return PodSelection(values, query.since, query.min_wait, order, query.limit)


def _to_response(request: Request, query: PendingQuery, body: Answers) -> Response:
    """Write the page in the requested format; the next page and the total are in headers as well."""
    headers = link_next_page(request, body.continue_) | {TOTAL_HEADER: str(body.total), "Vary": "Accept"}
    wanted = choose_format(request, query)
    if wanted == "json":
        return to_json_response(200, body, headers)
    rows = [to_row(item) for item in body.items]
    if wanted == "flat":
        return Response(encode_value(rows), 200, headers, "application/json")
    columns = list(PendingRow.model_fields)
    text = to_csv(columns, ([getattr(row, column) for column in columns] for row in rows))
    return Response(text, 200, headers, f"{CSV}; charset=utf-8")
