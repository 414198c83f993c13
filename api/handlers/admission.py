"""Handler of changes that would admit most of the waiting pods, each proved by the scheduler's own fit."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from api.authority.access import get_access
from api.authority.rights import list_pods
from api.http.cluster import Cluster
from api.http.errors import to_json_response
from api.http.param_types import NamespaceName, TimeText, parse_time
from api.http.query_params import Query, refuse_repeated
from api.index.nodes.last_registrations import read_unregistered_for
from api.index.reading.client import OpenSearch
from api.index.waiting.waiting_requests import read_waiting_requests
from api.memory.cluster_devices import ClusterDevices
from engine.suggestions.admission import Judged, build_suggestions_for_many, judge
from schemas.codec.records import format_rfc3339


class AdmissionQuery(Query):
    namespace: NamespaceName | None = Field(None, description="The pods' namespace; without it, all namespaces.")
    since: TimeText = Field(
        "1h", description="Only pods that a scheduler tried at this time or later: RFC 3339, or 15m, 2h, 7d ago."
    )


@dataclass(frozen=True, slots=True)
class AdmissionHandlers:
    index: OpenSearch
    devices: ClusterDevices

    async def list_suggestions(self, request: Request, cluster: Cluster, query: AdmissionQuery) -> Response:
        """List the changes that would admit most of the waiting pods, the best one first.

        The trial gives the pods the present devices one after the other, beginning with the longest wait.
        """
        refuse_repeated(request)
        await get_access(request).require(cluster, list_pods(query.namespace))
        now = datetime.now(UTC)
        columns = self.devices.find_columns(cluster.name)
        since = format_rfc3339(parse_time(query.since, now))
        waiting = await read_waiting_requests(self.index, cluster.name, query.namespace, since)
        unknown, judged = ["quotas"], Judged()
        if columns is None:
            unknown.append("devices")
        else:
            unregistered = await read_unregistered_for(self.index, columns, cluster.name, waiting.requests, now)
            if unregistered and unregistered.without:
                unknown.append("registrations")
            async with self.devices.lock:
                judged = await asyncio.to_thread(judge, columns, waiting.requests, unregistered)
        body = build_suggestions_for_many(cluster.name, query.namespace, now, waiting.pods, judged, unknown)
        return to_json_response(200, body, {"Cache-Control": "no-store"})
