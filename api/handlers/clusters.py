"""Answers requests about whole clusters."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from api.http.errors import json_response
from api.http.query_params import NoQuery
from api.index.client import OpenSearch
from api.index.clusters import CLUSTERS_ALIASES, clusters_found, clusters_query
from schemas.answers.clusters import Clusters


@dataclass(frozen=True, slots=True)
class ClusterHandlers:
    index: OpenSearch

    async def clusters(self, request: Request, _: Annotated[NoQuery, Query()]) -> Response:
        """The clusters that the index has records of, by name, and which of them paths without a cluster are about."""
        answer = await self.index.search(CLUSTERS_ALIASES, clusters_query())
        items = clusters_found(answer, request.app.state.default_cluster)
        return json_response(200, Clusters(items=items))
