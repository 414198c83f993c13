"""Answers requests about whole clusters: which there are, their nodes, and their schedulers."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from api.authority.access import filter_readable_namespaces, get_access
from api.authority.rights import LIST_NODES
from api.handlers.redaction import lock_without_others
from api.http.cluster import Cluster
from api.http.errors import to_json_response
from api.http.pagination import TOTAL_HEADER, derive_token_scope, encode_token, link_next_page, parse_position
from api.http.query_params import NodesQuery, NoQuery, refuse_repeated
from api.index.clusters import (
    CLUSTERS_ALIASES,
    build_clusters_query,
    build_schedulers_query,
    parse_clusters,
    parse_schedulers,
)
from api.index.nodes import node_list
from api.index.nodes.node_list import NodeRecords, NodesPosition
from api.index.nodes.occupancy_queries import decode_placement
from api.index.reading.client import OpenSearch
from engine.hami.node_lock import EXPIRES_AFTER
from schemas.answers.clusters import Clusters
from schemas.answers.nodes import NodeListed, Nodes, Schedulers
from schemas.codec.records import format_rfc3339
from schemas.documents.observations import Observed
from schemas.indices import ATTEMPTS, OBSERVATIONS, OCCUPANCY
from schemas.placements import PodPlacement


@dataclass(frozen=True, slots=True)
class ClusterHandlers:
    index: OpenSearch

    async def clusters(self, request: Request, _: NoQuery) -> Response:
        """The clusters that the index has records of, by name, and which of them paths without a cluster are about."""
        answer = await self.index.search(CLUSTERS_ALIASES, build_clusters_query())
        found = parse_clusters(answer, request.app.state.default_cluster)
        access = get_access(request)
        access.allow_every_caller()
        return to_json_response(200, Clusters(items=[cluster for cluster in found if await access.knows(cluster.name)]))

    async def nodes(self, request: Request, cluster: Cluster, query: NodesQuery) -> Response:
        """All nodes, by name: registrations, problems, lock, pods, and what is free of their devices.

        What is free is what the registered devices have beyond the amounts of the placements that last.
        """
        refuse_repeated(request)
        await get_access(request).require(cluster, LIST_NODES)
        now = datetime.now(UTC)
        scope = derive_token_scope(get_access(request).caller_name, "nodes", query, cluster=cluster.name)
        position = parse_position(query.continue_, scope, NodesPosition)
        body = node_list.build_nodes_query(cluster.name, position.after if position else None, query.limit)
        answer = await self.index.search(OBSERVATIONS.alias, body)
        observed = node_list.parse_nodes(answer, now)
        names = list(observed)[: query.limit]
        token = encode_token(scope, NodesPosition(after=names[-1])) if len(observed) > len(names) else None
        items = await self._listed(cluster, {name: observed[name] for name in names}, now)
        holders = {item.lock.pod.partition("/")[0] for item in items if item.lock}
        readable = await filter_readable_namespaces(get_access(request), cluster, holders)
        items = [lock_without_others(item, readable) for item in items]
        total = node_list.parse_total(answer)
        page = Nodes.model_validate({"total": total, "items": items, "continue": token})
        return to_json_response(200, page, link_next_page(request, token) | {TOTAL_HEADER: str(total)})

    async def _listed(self, cluster: Cluster, observed: dict[str, list[Observed]], now: datetime) -> list[NodeListed]:
        if not observed:
            return []
        names = list(observed)
        answer = await self.index.search(OCCUPANCY.alias, node_list.build_placements_query(cluster.name, names))
        placements: dict[str, list[PodPlacement]] = defaultdict(list)
        for hit in answer["hits"]["hits"]:
            placement = decode_placement(hit)
            placements[placement.node].append(placement)
        since = format_rfc3339(now - EXPIRES_AFTER)
        locks = node_list.parse_locks(
            await self.index.search(ATTEMPTS.alias, node_list.build_locks_query(cluster.name, names, since))
        )
        return [
            node_list.to_listed_node(cluster, name, NodeRecords(events, placements[name], locks.get(name)), now)
            for name, events in observed.items()
        ]

    async def schedulers(self, request: Request, cluster: Cluster, _: NoQuery) -> Response:
        """The schedulers of the cluster: version, settings in force, and what changed of both in the last 30 days."""
        refuse_repeated(request)
        await get_access(request).require(cluster, LIST_NODES)
        answer: dict[str, Any] = await self.index.search(OBSERVATIONS.alias, build_schedulers_query(cluster.name))
        return to_json_response(200, Schedulers(items=parse_schedulers(answer)))
