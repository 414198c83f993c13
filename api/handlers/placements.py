"""Answers requests about placements: findings, where pods ran, what was observed, and nodes at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from api.answers.attempt_lookup import AttemptLookup
from api.authority.access import filter_readable_namespaces, get_access
from api.authority.rights import get_node, get_pod, list_pods
from api.handlers.listing import P, Shown, answer_page, as_they_are
from api.handlers.not_found import no_attempt_of_pod, node_not_observed, pod_never_observed
from api.handlers.redaction import (
    findings_shown,
    observation_with_texts,
    occupancy_without_others,
    texts_shown,
)
from api.http.cluster import Cluster
from api.http.errors import NotFoundError, to_json_response
from api.http.param_types import NamespaceInPath, NodeInPath, PodInPath, parse_time
from api.http.query_params import (
    FindingsQuery,
    NodeOccupancyQuery,
    NodeQuery,
    PodFindingsQuery,
    RangeQuery,
    refuse_repeated,
)
from api.index import findings, observations
from api.index.attempts.attempt_queries import PodName
from api.index.nodes import occupancy_queries
from api.index.nodes.node_occupancy import describe_occupancy
from api.index.reading.client import OpenSearch
from api.index.reading.pages import ListDefinition
from schemas.documents.observations import Observed
from schemas.events import NodeRegistered
from schemas.indices import OBSERVATIONS, OCCUPANCY
from schemas.json_types import Json


@dataclass(frozen=True, slots=True)
class PlacementHandlers:
    attempts: AttemptLookup
    index: OpenSearch

    async def findings(self, request: Request, cluster: Cluster, query: FindingsQuery) -> Response:
        """Attempts and placements that can't be right, latest first, each with the numbers and lines that prove it.

        Its time (`found_at`) is that of the event which the finding is about.
        """
        refuse_repeated(request)
        await get_access(request).require(cluster, list_pods(query.namespace))
        values = query.model_dump(include={"namespace", "pod", "node", "device", "finding", "scheduler"})
        filters = partial(findings.build_finding_filters, values)
        shown = partial(findings_shown, get_access(request), cluster)
        _, response = await answer_page(self.index, request, cluster, findings.FINDINGS_LIST, query, filters, shown)
        return response

    async def findings_of_pod(
        self,
        request: Request,
        cluster: Cluster,
        namespace: NamespaceInPath,
        name: PodInPath,
        query: PodFindingsQuery,
    ) -> Response:
        """What can't be right about this pod's attempts and placements, latest first. An empty list is good news."""
        refuse_repeated(request)
        await get_access(request).require(cluster, get_pod(namespace, name))
        values = {"namespace": namespace, "pod": name, "finding": query.finding}
        filters = partial(findings.build_finding_filters, values)
        return await self._answer_page_of_pod(
            request,
            cluster,
            (namespace, name),
            findings.FINDINGS_LIST,
            query,
            filters,
            no_attempt_of_pod,
            partial(findings_shown, get_access(request), cluster),
        )

    async def occupancy_of_pod(
        self,
        request: Request,
        cluster: Cluster,
        namespace: NamespaceInPath,
        name: PodInPath,
        query: RangeQuery,
    ) -> Response:
        """Where the pod ran, latest first: node, devices with memory, cores and slots, from when until when.

        `since` and `until` keep only the placements that overlap the range. `pod_uid` distinguishes pods that had the
        same name one after the other.
        """
        refuse_repeated(request)
        await get_access(request).require(cluster, get_pod(namespace, name))
        filters = partial(occupancy_queries.build_placement_filters, {"namespace": namespace, "pod": name})
        return await self._answer_page_of_pod(
            request, cluster, (namespace, name), occupancy_queries.PLACEMENTS_LIST, query, filters, pod_never_observed
        )

    async def observations_of_pod(
        self,
        request: Request,
        cluster: Cluster,
        namespace: NamespaceInPath,
        name: PodInPath,
        query: RangeQuery,
    ) -> Response:
        """What the cluster reported of the pod, latest first: phase, node and conditions, one item for each change."""
        refuse_repeated(request)
        await get_access(request).require(cluster, get_pod(namespace, name))
        filters = partial(observations.build_pod_observation_filters, {"namespace": namespace, "pod": name})
        shown = partial(texts_shown, get_access(request), cluster, namespace, with_texts=observation_with_texts)
        return await self._answer_page_of_pod(
            request,
            cluster,
            (namespace, name),
            observations.POD_OBSERVATIONS_LIST,
            query,
            filters,
            pod_never_observed,
            shown,
        )

    async def node(self, request: Request, cluster: Cluster, node: NodeInPath, query: NodeQuery) -> Response:
        """The node's state at one time: devices, capacity, conditions and problems, with when and by whom reported."""
        refuse_repeated(request)
        await get_access(request).require(cluster, get_node(node))
        # Resolved once: "2h" has to mean the same time in every search of this answer.
        at = _requested_time(query.at)
        latest = await self._latest_observations(cluster, node, at)
        if not latest:
            await self._require_record_of(cluster, node, at)
        return to_json_response(200, observations.describe_node_state(cluster, node, at, latest))

    async def occupancy_of_node(
        self,
        request: Request,
        cluster: Cluster,
        node: NodeInPath,
        query: NodeOccupancyQuery,
    ) -> Response:
        """Which pods held which devices of the node: at one time (`at`, by default now), or over a range in pages."""
        refuse_repeated(request)
        await get_access(request).require(cluster, get_node(node))
        if query.has_range:
            return await self._placements_on_node(request, cluster, node, query)
        at = _requested_time(query.at)
        body = occupancy_queries.build_placements_on_node_query(cluster.name, node, query.device, at)
        answer = await self.index.search(OCCUPANCY.alias, body)
        placements = [occupancy_queries.decode_placement(hit) for hit in answer["hits"]["hits"]]
        # The registrations among them have the totals of each device, and the devices that no pod holds.
        latest = await self._latest_observations(cluster, node, at)
        if not placements and not latest:
            await self._require_record_of(cluster, node, at)
        registered = [
            device
            for event in latest
            if isinstance(event, NodeRegistered)
            for device in observations.iterate_registered_devices(event)
        ]
        cordoned = observations.is_cordoned(observations.find_latest_status(latest))
        occupancy = describe_occupancy(cluster, node, at, placements, registered, query.device, cordoned=cordoned)
        readable = await filter_readable_namespaces(
            get_access(request), cluster, {pod.namespace for pod in occupancy.pods}
        )
        return to_json_response(200, occupancy_without_others(occupancy, readable))

    async def _placements_on_node(
        self, request: Request, cluster: Cluster, node: str, query: NodeOccupancyQuery
    ) -> Response:
        # Every placement has its pod's name.
        await get_access(request).require(cluster, list_pods())
        filters = partial(occupancy_queries.build_placement_filters, {"node": node, "devices": query.device})
        page, response = await answer_page(
            self.index, request, cluster, occupancy_queries.PLACEMENTS_LIST, query, filters, node=node
        )
        # Asked only where the list is empty: most lists need no second search.
        if not page.total:
            await self._require_record_of(cluster, node, None)
        return response

    async def _latest_observations(self, cluster: Cluster, node: str, at: datetime) -> list[Observed]:
        answer = await self.index.search(
            OBSERVATIONS.alias, observations.build_node_observations_query(cluster.name, node, at)
        )
        return observations.parse_latest_observations(answer, at)

    async def _require_record_of(self, cluster: Cluster, node: str, at: datetime | None) -> None:
        """Raise ``NotFoundError`` unless anything is recorded of the node, by the time ``at`` if given.

        An idle node and one that does not exist both have no placements: only the first gets an empty answer.
        """
        aliases = f"{OBSERVATIONS.alias},{OCCUPANCY.alias}"
        answer = await self.index.search(aliases, observations.build_first_observation_query(cluster.name, node))
        first = observations.parse_first_observed_at(answer)
        if first is None or (at is not None and first > at):
            raise node_not_observed(node, at, first)

    async def _answer_page_of_pod(
        self,
        request: Request,
        cluster: Cluster,
        pod: tuple[str, str],
        definition: ListDefinition[P],
        query: RangeQuery,
        filters: Callable[[P], list[Json]],
        not_found: Callable[[str, str], NotFoundError],
        shown: Shown = as_they_are,
    ) -> Response:
        """A page of a list about ``pod`` (namespace and name).

        Raises the error that ``not_found`` makes where the list is empty and no attempt of the pod is recorded either.
        """
        namespace, name = pod
        page, response = await answer_page(
            self.index, request, cluster, definition, query, filters, shown, pod=f"{namespace}/{name}"
        )
        # An attempt without placements is a pending pod, which is no error.
        if not page.total and await self.attempts.latest(PodName(cluster.name, namespace, name)) is None:
            raise not_found(namespace, name)
        return response


def _requested_time(text: str | None) -> datetime:
    now = datetime.now(UTC)
    return parse_time(text, now) if text else now
