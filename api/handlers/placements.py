"""Answers the requests about placements and what was seen of them: findings, occupancy, nodes, observations."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from api.attempt_lookup import Attempts
from api.handlers.listing import Json, Listing, P, listed
from api.handlers.not_found import unknown_pod, unseen_node, unseen_pod
from api.http.errors import NotFoundError, json_response
from api.http.query_params import (
    FindingsQuery,
    InNamespace,
    NodeName,
    NodeOccupancyQuery,
    NodeQuery,
    PodFindingsQuery,
    PodName,
    RangeQuery,
    moment,
    once,
)
from api.index import findings, observations, occupancy_queries
from api.index.client import OpenSearch
from api.index.node_occupancy import node_occupancy
from schemas.documents.observations import Observed
from schemas.events import NodeRegistered
from schemas.indices import OBSERVATIONS, OCCUPANCY


@dataclass(frozen=True, slots=True)
class Placements:
    attempts: Attempts
    index: OpenSearch

    async def findings(self, request: Request, query: Annotated[FindingsQuery, Query()]) -> Response:
        """Placements that can't be right, latest first, each with the numbers and the lines that prove it.

        A time is that of what was found, not of when somebody noticed.
        """
        once(request)
        asked = query.model_dump(include={"namespace", "pod", "node", "device", "finding", "scheduler"})
        _, answer = await listed(self.index, request, findings.LISTING, query, partial(findings.conditions, asked))
        return answer

    async def findings_of_pod(
        self, request: Request, namespace: InNamespace, name: PodName, query: Annotated[PodFindingsQuery, Query()]
    ) -> Response:
        """What about this pod's attempts and placements can't be right, latest first. None is good news."""
        once(request)
        asked = {"namespace": namespace, "pod": name, "finding": query.finding}
        conditions = partial(findings.conditions, asked)
        return await self._of_pod(request, namespace, name, findings.LISTING, query, conditions, unknown_pod)

    async def occupancy_of_pod(
        self, request: Request, namespace: InNamespace, name: PodName, query: Annotated[RangeQuery, Query()]
    ) -> Response:
        """Where the pod was, latest first: node, devices with memory, cores and slots, from when until when.

        `from` and `to` leave the stays that overlap them. Pods of one name that came one after the other are told
        apart by `pod_uid`.
        """
        once(request)
        conditions = partial(occupancy_queries.conditions, {"namespace": namespace, "pod": name})
        return await self._of_pod(request, namespace, name, occupancy_queries.LISTING, query, conditions, unseen_pod)

    async def observations_of_pod(
        self, request: Request, namespace: InNamespace, name: PodName, query: Annotated[RangeQuery, Query()]
    ) -> Response:
        """What the cluster said of the pod, latest first: phase, node, conditions, each time that something changed."""
        once(request)
        conditions = partial(observations.conditions, {"namespace": namespace, "pod": name})
        return await self._of_pod(request, namespace, name, observations.LISTING, query, conditions, unseen_pod)

    async def node(self, request: Request, node: NodeName, query: Annotated[NodeQuery, Query()]) -> Response:
        """The node as it was known at a time: devices, capacity, conditions, what was wrong; when and by whom said."""
        once(request)
        at = _time(query.at)
        said = await self._said_of(node, at)
        if not said:
            await self._seen_by(node, at)
        return json_response(200, observations.node_state(node, at, said))

    async def occupancy_of_node(
        self, request: Request, node: NodeName, query: Annotated[NodeOccupancyQuery, Query()]
    ) -> Response:
        """Which pods held which devices of the node: at one time (`at`, by default now), or over a range in pages."""
        once(request)
        if query.is_about_a_range:
            return await self._history_of(request, node, query)
        at = _time(query.at)
        answer = await self.index.search(OCCUPANCY.alias, occupancy_queries.at_time(node, query.device, at))
        there = [occupancy_queries.stay(hit) for hit in answer["hits"]["hits"]]
        said = await self._said_of(node, at)
        if not there and not said:
            await self._seen_by(node, at)
        registered = [
            row for each in said if isinstance(each, NodeRegistered) for row in observations.registered_devices(each)
        ]
        return json_response(200, node_occupancy(node, at, there, registered, query.device))

    async def _history_of(self, request: Request, node: str, query: NodeOccupancyQuery) -> Response:
        conditions = partial(occupancy_queries.conditions, {"node": node, "devices": query.device})
        page, answer = await listed(self.index, request, occupancy_queries.LISTING, query, conditions, node=node)
        if not page.total:
            await self._seen_by(node, None)
        return answer

    async def _said_of(self, node: str, at: datetime) -> list[Observed]:
        answer = await self.index.search(OBSERVATIONS.alias, observations.latest_of_node(node, at))
        return observations.said_of_node(answer, at)

    async def _seen_by(self, node: str, at: datetime | None) -> None:
        """Raise unless something is known of the node, or was at that time: nothing and nobody are two answers."""
        answer = await self.index.search(f"{OBSERVATIONS.alias},{OCCUPANCY.alias}", observations.seen_of_node(node))
        first = observations.first_seen(answer)
        if first is None or (at is not None and first > at):
            raise unseen_node(node, at, first)

    async def _of_pod(
        self,
        request: Request,
        namespace: str,
        name: str,
        listing: Listing[P],
        query: RangeQuery,
        conditions: Callable[[P], list[Json]],
        unknown: Callable[[str, str], NotFoundError],
    ) -> Response:
        """A list about a pod. Where it is empty, raise what ``unknown`` makes unless an attempt of the pod is known."""
        page, answer = await listed(self.index, request, listing, query, conditions, pod=f"{namespace}/{name}")
        if not page.total and await self.attempts.latest(namespace, name) is None:
            raise unknown(namespace, name)
        return answer


def _time(asked: str | None) -> datetime:
    now = datetime.now(UTC)
    return moment(asked, now) if asked else now
