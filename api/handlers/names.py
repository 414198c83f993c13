"""Handler of names: what a search field completes, and what an unknown name was probably meant to be."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from api.authority.access import filter_readable_namespaces, get_access
from api.authority.rights import LIST_NODES
from api.handlers.not_found import UnknownNameError
from api.http.cluster import Cluster
from api.http.errors import ApiError, NotFoundError, on_api_error, to_json_response
from api.http.query_params import Query, refuse_repeated
from api.memory.known_names import KnownName, KnownNames, find_matches, find_similar, write_question
from schemas.answers.nodes import NameMatched, Names

_MAX_CHECKED: Final = 1_000
"""Matches whose namespaces are checked: of thousands the first are shown."""


class NamesQuery(Query):
    q: str = Field(
        "",
        max_length=320,
        description="Part of a name: of a pod, a workload (`job/train`), a node or a namespace.",
    )
    limit: int = Field(12, ge=1, le=50, description="Number of names.")


@dataclass(frozen=True, slots=True)
class NameHandlers:
    names: KnownNames

    async def find_names(self, request: Request, cluster: Cluster, query: NamesQuery) -> Response:
        """Find pods, workloads, nodes and namespaces whose name contains a text; without any, those named alike.

        The names are those that the API has in memory. A caller sees the nodes with the right to list them, and only
        namespaces whose pods the caller may list.
        """
        refuse_repeated(request)
        names = await asyncio.to_thread(self.names.list_names, cluster.name)
        matches = await asyncio.to_thread(find_matches, names, query.q)
        readable = await select_readable(request, cluster, matches[:_MAX_CHECKED])
        are_similar = not readable
        if are_similar:
            namespace, _, name = query.q.strip().partition("/")
            similar = [
                *await asyncio.to_thread(find_similar, names, namespace, name or namespace),
                *await asyncio.to_thread(find_similar, names, "", namespace),
            ]
            readable = await select_readable(request, cluster, similar)
        items = [
            NameMatched(kind=name.kind, namespace=name.namespace, name=name.name, text=name.text)
            for name in readable[: query.limit]
        ]
        return to_json_response(200, Names(items=items, are_similar=are_similar and bool(items)))

    async def answer_unknown(self, request: Request, error: UnknownNameError) -> Response:
        """Answer that a name is unknown, with readable names that are similar to it."""
        cluster = Cluster(error.cluster)
        names = await asyncio.to_thread(self.names.list_names, cluster.name)
        similar = await asyncio.to_thread(find_similar, names, error.namespace, error.name)
        try:
            question = write_question((await select_readable(request, cluster, similar))[:3])
        except ApiError:
            question = ""
        return await on_api_error(request, NotFoundError(error.error, question + error.next_step))


async def select_readable(request: Request, cluster: Cluster, names: Iterable[KnownName]) -> list[KnownName]:
    """Select the names that the caller may read, in their order."""
    access, listed = get_access(request), list(names)
    spaces = {name.name if name.kind == "namespace" else name.namespace for name in listed}
    readable = await filter_readable_namespaces(access, cluster, spaces)
    sees_nodes = await access.allows(cluster, LIST_NODES)
    return [
        name for name in listed if (sees_nodes if name.kind == "node" else (name.namespace or name.name) in readable)
    ]
