"""Handlers of placements: findings, the nodes on which pods ran, observations, and nodes at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from api.answers.attempt_lookup import AttemptLookup
from api.authority.access import filter_readable_namespaces, get_access
from api.authority.rights import get_node, get_pod, list_pods
from api.handlers.listing import P, Redact, answer_page, return_unredacted
from api.handlers.not_found import to_no_attempt_of_pod_error, to_unobserved_node_error, to_unobserved_pod_error
from api.handlers.redaction import (
    change_observation_texts,
    redact_findings,
    redact_occupancy,
    redact_texts,
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

    async def list_findings(self, request: Request, cluster: Cluster, query: FindingsQuery) -> Response:
        """List attempts and placements that can't be right, latest first, with the numbers and lines that prove it.

        The time of a finding (`found_at`) is that of its event.
        """
        refuse_repeated(request)
        await get_access(request).require(cluster, list_pods(query.namespace))
        values = query.model_dump(include={"namespace", "pod", "node", "device", "finding", "scheduler"})
        filters = partial(findings.build_finding_filters, values)
        redact = partial(redact_findings, get_access(request), cluster)
        _, response = await answer_page(self.index, request, cluster, findings.FINDINGS_LIST, query, filters, redact)
        return response

    async def list_findings_of_pod(
        self,
        request: Request,
        cluster: Cluster,
        namespace: NamespaceInPath,
        name: PodInPath,
        query: PodFindingsQuery,
    ) -> Response:
        """List what can't be right about the pod's attempts and placements, latest first. Empty is good news."""
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
            to_no_attempt_of_pod_error,
            partial(redact_findings, get_access(request), cluster),
        )

    async def list_placements_of_pod(
        self,
        request: Request,
        cluster: Cluster,
        namespace: NamespaceInPath,
        name: PodInPath,
        query: RangeQuery,
    ) -> Response:
        """List the pod's placements, latest first: node, devices with memory, cores and slots, beginning and end.

        `since` and `until` keep only placements that overlap the range. `pod_uid` distinguishes pods that had the same
        name one after the other.
        """
        refuse_repeated(request)
        await get_access(request).require(cluster, get_pod(namespace, name))
        filters = partial(occupancy_queries.build_placement_filters, {"namespace": namespace, "pod": name})
        return await self._answer_page_of_pod(
            request,
            cluster,
            (namespace, name),
            occupancy_queries.PLACEMENTS_LIST,
            query,
            filters,
            to_unobserved_pod_error,
        )

    async def list_observations_of_pod(
        self,
        request: Request,
        cluster: Cluster,
        namespace: NamespaceInPath,
        name: PodInPath,
        query: RangeQuery,
    ) -> Response:
        """List the cluster's reports about the pod, latest first: phase, node and conditions, one item per change."""
        refuse_repeated(request)
        await get_access(request).require(cluster, get_pod(namespace, name))
        filters = partial(observations.build_pod_observation_filters, {"namespace": namespace, "pod": name})
        redact = partial(redact_texts, get_access(request), cluster, namespace, with_texts=change_observation_texts)
        return await self._answer_page_of_pod(
            request,
            cluster,
            (namespace, name),
            observations.POD_OBSERVATIONS_LIST,
            query,
            filters,
            to_unobserved_pod_error,
            redact,
        )

    async def get_node_state(self, request: Request, cluster: Cluster, node: NodeInPath, query: NodeQuery) -> Response:
        """Describe the node at one time: devices, capacity, conditions and problems, with their times and reporters."""
        refuse_repeated(request)
        await get_access(request).require(cluster, get_node(node))
        # Resolved once: "2h" has to mean the same time in every search of this answer.
        moment = _parse_requested_time(query.at)
        latest = await self._read_latest_observations(cluster, node, moment)
        if not latest:
            await self._require_record_of(cluster, node, moment)
        return to_json_response(200, observations.describe_node_state(cluster, node, moment, latest))

    async def get_occupancy_of_node(
        self,
        request: Request,
        cluster: Cluster,
        node: NodeInPath,
        query: NodeOccupancyQuery,
    ) -> Response:
        """List the pods that held devices of the node: at one time (`at`, by default now), or over a range."""
        refuse_repeated(request)
        await get_access(request).require(cluster, get_node(node))
        if query.has_range:
            return await self._list_placements_on_node(request, cluster, node, query)
        moment = _parse_requested_time(query.at)
        body = occupancy_queries.build_placements_on_node_query(cluster.name, node, query.device, moment)
        answer = await self.index.search(OCCUPANCY.alias, body)
        placements = [occupancy_queries.decode_placement(hit) for hit in answer["hits"]["hits"]]
        # The registrations among them have the totals of each device, and the idle devices.
        latest = await self._read_latest_observations(cluster, node, moment)
        if not placements and not latest:
            await self._require_record_of(cluster, node, moment)
        registered = [
            device
            for event in latest
            if isinstance(event, NodeRegistered)
            for device in observations.iterate_registered_devices(event)
        ]
        cordoned = observations.is_cordoned(observations.find_latest_status(latest))
        occupancy = describe_occupancy(cluster, node, moment, placements, registered, query.device, cordoned=cordoned)
        readable = await filter_readable_namespaces(
            get_access(request), cluster, {pod.namespace for pod in occupancy.pods}
        )
        return to_json_response(200, redact_occupancy(occupancy, readable))

    async def _list_placements_on_node(
        self, request: Request, cluster: Cluster, node: str, query: NodeOccupancyQuery
    ) -> Response:
        # Every placement has its pod's name.
        await get_access(request).require(cluster, list_pods())
        filters = partial(occupancy_queries.build_placement_filters, {"node": node, "devices": query.device})
        page, response = await answer_page(
            self.index, request, cluster, occupancy_queries.PLACEMENTS_LIST, query, filters, node=node
        )
        # Only for an empty list: most lists need no second search.
        if not page.total:
            await self._require_record_of(cluster, node, None)
        return response

    async def _read_latest_observations(self, cluster: Cluster, node: str, moment: datetime) -> list[Observed]:
        answer = await self.index.search(
            OBSERVATIONS.alias, observations.build_node_observations_query(cluster.name, node, moment)
        )
        return observations.parse_latest_observations(answer, moment)

    async def _require_record_of(self, cluster: Cluster, node: str, moment: datetime | None) -> None:
        """Raise ``NotFoundError`` unless the node has a record, until ``moment`` if given.

        Neither an idle node nor a missing one has placements: only the idle one gets an empty answer.
        """
        aliases = f"{OBSERVATIONS.alias},{OCCUPANCY.alias}"
        answer = await self.index.search(aliases, observations.build_first_observation_query(cluster.name, node))
        first = observations.parse_first_observed_at(answer)
        if first is None or (moment is not None and first > moment):
            raise to_unobserved_node_error(cluster.name, node, moment, first)

    async def _answer_page_of_pod(
        self,
        request: Request,
        cluster: Cluster,
        pod: tuple[str, str],
        definition: ListDefinition[P],
        query: RangeQuery,
        filters: Callable[[P], list[Json]],
        not_found: Callable[[str, str, str], NotFoundError],
        redact: Redact = return_unredacted,
    ) -> Response:
        """Answer a page of a list about ``pod`` (namespace and name).

        Raises the error that ``not_found`` builds if the list is empty and the pod has no attempt either.
        """
        namespace, name = pod
        page, response = await answer_page(
            self.index, request, cluster, definition, query, filters, redact, pod=f"{namespace}/{name}"
        )
        # An attempt without placements is a pending pod, which is no error.
        if not page.total and await self.attempts.find_latest(PodName(cluster.name, namespace, name)) is None:
            raise not_found(cluster.name, namespace, name)
        return response


def _parse_requested_time(text: str | None) -> datetime:
    now = datetime.now(UTC)
    return parse_time(text, now) if text else now
