"""Handlers of requests about clusters, their nodes, and their schedulers."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from api.authority.access import filter_readable_namespaces, get_access
from api.authority.rights import LIST_NODES
from api.handlers.redaction import redact_listed_node
from api.http.cluster import Cluster
from api.http.errors import BadRequestError, to_json_response
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
from api.index.reading.client import OpenSearch
from engine.hami.node_lock import EXPIRES_AFTER
from engine.summaries.node_pools import explain_unknown_pool, find_pool
from engine.summaries.trends import PoolOf
from schemas.answers.nodes import Clusters, NodeListed, Nodes, Schedulers
from schemas.codec.records import format_rfc3339
from schemas.documents.observations import Observed
from schemas.indices import ATTEMPTS, OBSERVATIONS, OCCUPANCY


@dataclass(frozen=True, slots=True)
class ClusterHandlers:
    index: OpenSearch
    pool_of: PoolOf | None = None
    """Pools by the names of nodes; None if no setting defines any."""
    pools: Sequence[str] = ()
    """Names of the pools."""

    async def list_clusters(self, request: Request, _: NoQuery) -> Response:
        """List the clusters with records, by name, and mark the default one of paths without a cluster."""
        answer = await self.index.search(CLUSTERS_ALIASES, build_clusters_query())
        clusters = parse_clusters(answer, request.app.state.default_cluster)
        access = get_access(request)
        access.allow_every_caller()
        return to_json_response(
            200, Clusters(items=[cluster for cluster in clusters if await access.knows(cluster.name)])
        )

    async def list_nodes(self, request: Request, cluster: Cluster, query: NodesQuery) -> Response:
        """List all nodes by name: registrations, problems, lock, pods, and the free part of their devices.

        The free part is the amount of the registered devices without the amounts of the present placements.
        """
        refuse_repeated(request)
        await get_access(request).require(cluster, LIST_NODES)
        now = datetime.now(UTC)
        scope = derive_token_scope(get_access(request).caller_name, "nodes", query, cluster=cluster.name)
        position = parse_position(query.continue_, scope, NodesPosition)
        after = position.after if position else None
        members = await self._list_members(cluster, query.pool) if query.pool else None
        # The index sorts nodes as Python sorts their names, which are ASCII.
        names_left = members and [name for name in members if after is None or name > after][: query.limit + 1]
        body = node_list.build_nodes_query(cluster.name, after, query.limit, names_left)
        answer = await self.index.search(OBSERVATIONS.alias, body)
        observed = node_list.parse_nodes(answer, now)
        names = list(observed)[: query.limit]
        token = encode_token(scope, NodesPosition(after=names[-1])) if len(observed) > len(names) else None
        items = await self._list_page(cluster, {name: observed[name] for name in names}, now)
        holders = {item.lock.pod.partition("/")[0] for item in items if item.lock}
        holders |= {entry.namespace for item in items for entry in item.held}
        readable = await filter_readable_namespaces(get_access(request), cluster, holders)
        items = [redact_listed_node(item, readable) for item in items]
        total = node_list.parse_total(answer) if members is None else len(members)
        page = Nodes.model_validate({"total": total, "items": items, "continue": token})
        return to_json_response(200, page, link_next_page(request, token) | {TOTAL_HEADER: str(total)})

    async def _list_members(self, cluster: Cluster, pool: str) -> list[str]:
        """List the nodes of a pool by name. Raises ``BadRequestError`` for a pool that the setting does not define."""
        if pool not in self.pools:
            raise BadRequestError(*explain_unknown_pool(pool, self.pools))
        names = node_list.parse_names(
            await self.index.search(OBSERVATIONS.alias, node_list.build_names_query(cluster.name))
        )
        return [name for name in names if find_pool(name, self.pool_of)[0] == pool]

    async def _list_page(
        self, cluster: Cluster, observed: dict[str, list[Observed]], now: datetime
    ) -> list[NodeListed]:
        if not observed:
            return []
        names = list(observed)
        since = format_rfc3339(now - EXPIRES_AFTER)
        answer, locked = await asyncio.gather(
            self.index.search(OCCUPANCY.alias, node_list.build_placements_query(cluster.name, names)),
            self.index.search(ATTEMPTS.alias, node_list.build_locks_query(cluster.name, names, since)),
        )
        placements = node_list.parse_placements(answer)
        locks = node_list.parse_locks(locked)
        return [
            node_list.to_listed_node(
                cluster, name, NodeRecords(events, placements.get(name, ()), locks.get(name)), now, self.pool_of
            )
            for name, events in observed.items()
        ]

    async def list_schedulers(self, request: Request, cluster: Cluster, _: NoQuery) -> Response:
        """List the schedulers of the cluster: version, settings in force, and changes of both in the last 30 days."""
        refuse_repeated(request)
        await get_access(request).require(cluster, LIST_NODES)
        answer: dict[str, Any] = await self.index.search(OBSERVATIONS.alias, build_schedulers_query(cluster.name))
        return to_json_response(200, Schedulers(items=parse_schedulers(answer)))
