"""Handler of simulations: places pods that do not exist yet, by the filters and the fit, on the present devices."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import orjson
from pydantic import Field
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from api.answers.change_search import ChangeSearch
from api.answers.creation_objects import CreationObjects, read_creation_objects
from api.answers.object_lists import ObjectLists
from api.authority.access import get_access
from api.authority.remembered import BusyError, Remembered, TimedAnswer
from api.authority.rights import get_pod
from api.http.cluster import Cluster
from api.http.errors import BadRequestError, TooLargeError, UnavailableError
from api.http.param_types import NamespaceName, find_namespace_problem
from api.http.query_params import Query, refuse_repeated
from api.memory.cluster_devices import ClusterDevices
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.manifests import ManifestError
from engine.simulation.cluster import SimulationCluster, build_live_cluster
from engine.simulation.node_changes import find_node_changes
from engine.simulation.proved_changes import ProvedChanges, find_changes, needs_other_nodes
from engine.simulation.quotas import limits_shares
from engine.simulation.setting import Note, SimulationSetting
from engine.simulation.simulate import PlacedPods, answer_placement, place_workloads
from engine.simulation.verdict import PodOutcome, PodRejectedError
from engine.simulation.workloads import PodTemplate, read_workloads
from engine.snapshot import kinds
from runtime.kubernetes.errors import KubeApiError
from runtime.kubernetes.object_fields import get_text
from runtime.kubernetes.resources import NODES
from runtime.settings.names import find_subdomain_problem
from schemas.json_types import Json

MAX_BODY_BYTES: Final = 64 * 1024
"""Maximum length of a body, far above any pod that people write; YAML of this length takes half a second."""
MAX_COUNT: Final = 100
"""Limit of the pods that are placed one after the other while the devices are locked."""
MAX_NODES: Final = 1_000
"""Limit of the nodes whose objects are read."""
NODES_SECONDS: Final = 10.0
"""Time for which nodes are remembered: people change a pod and ask again."""
POD_EXAMPLE: Final = (
    "Send an object of kind Pod or a workload with a pod template, as `kubectl get pod NAME -o yaml` writes it."
)

NodeObjects = tuple[list[Json], bool]
"""Node objects, and whether they are all that there are."""


class SimulationQuery(Query):
    namespace: NamespaceName | None = Field(
        None, description="Namespace that the pods must have; in the aggregated API, that of the path."
    )
    count: int | None = Field(
        None, ge=1, le=MAX_COUNT, description="Pods to place one after the other; without it, one of each workload."
    )


class _Placed(NamedTuple):
    placement: PlacedPods
    changes: ProvedChanges
    """Changes that need no other source than the devices and the nodes."""


def _create_remembered_nodes() -> Remembered[str, NodeObjects]:
    return Remembered(max_answers=1, max_questions=1)


@dataclass(frozen=True, slots=True)
class SimulationHandlers:
    devices: ClusterDevices
    changes: ChangeSearch
    lists: ObjectLists
    nodes: Remembered[str, NodeObjects] = field(default_factory=_create_remembered_nodes)

    async def simulate(self, request: Request, cluster: Cluster, query: SimulationQuery) -> Response:
        """Simulate the scheduling of a pod that does not exist: its node, or why it would wait and what would help.

        The body is a Pod, a workload with a pod template (Job, Deployment, …) or a List of them, as YAML or JSON. Where
        the API sees the nodes' objects, kube-scheduler's filters judge them first; the fit then judges the devices of
        the nodes that pass, and of nodes that have registered devices before. LimitRanges, classes and quotas of the
        pod's namespace are judged before, where the API may read them. What other pods hold of CPU and memory is not
        counted. It writes nothing.
        """
        refuse_repeated(request)
        workloads = await self.read_workloads(request, cluster, query.namespace)
        columns = self.require_columns(cluster)
        unknown = list[str]()
        described, notes = await self.describe_cluster(cluster, columns, workloads, unknown)
        setting = SimulationSetting(datetime.now(UTC), cluster.name, notes=notes)
        try:
            async with self.devices.lock:
                placed = await asyncio.to_thread(_simulate_pods, described, workloads, query.count, setting)
        except PodRejectedError as error:
            raise BadRequestError(f"body: {error}", POD_EXAMPLE) from None
        changes = await self._find_changes(request, cluster, columns, placed, setting, unknown)
        body = await asyncio.to_thread(answer_placement, placed.placement, changes, setting)
        return Response(orjson.dumps(body), 200, {"Cache-Control": "no-store"}, "application/json")

    async def read_workloads(
        self, request: Request, cluster: Cluster, namespace_of_path: str | None
    ) -> list[PodTemplate]:
        """Read the workloads of the body, and require the right to read such pods. Raises ``BadRequestError``."""
        access = get_access(request)
        # The sender of a body may learn what is wrong with it; all else is for callers who may read such a pod.
        access.allow_every_caller()
        workloads = await asyncio.to_thread(_parse_workloads, await _read_body(request))
        for namespace, name in dict.fromkeys(map(_get_names, workloads)):
            if namespace_of_path not in (None, namespace):
                # The API server allowed a request about the namespace of the path.
                cause = f"body: the pod has namespace {namespace}, but the request is about {namespace_of_path}"
                raise BadRequestError(
                    cause, f"Write metadata.namespace: {namespace_of_path}, or ask about {namespace}."
                )
            await access.require(cluster, get_pod(namespace, name))
        return workloads

    def require_columns(self, cluster: Cluster) -> ClusterColumns:
        """Return the present devices of a cluster. Raises ``UnavailableError`` while they are not known."""
        columns = self.devices.find_columns(cluster.name)
        if columns is None:
            raise UnavailableError(
                f"the devices of cluster {cluster.name} are not known (yet)",
                "Try again in a few seconds; GET /readyz names late parts, GET /api/v1/clusters lists clusters.",
            )
        return columns

    async def describe_cluster(
        self, cluster: Cluster, columns: ClusterColumns, workloads: Sequence[PodTemplate], unknown: list[str]
    ) -> tuple[SimulationCluster, tuple[Note, ...]]:
        """Describe the cluster by its devices, its nodes' objects and those that decide about new pods.

        What the API server refuses is in the notes, what no source has in ``unknown``.
        """
        lost = await self.changes.filter_present_nodes(cluster, self.devices.lost.get(cluster.name, ()), unknown)
        # A lost node may have registered again in the meantime.
        offered = tuple(dict.fromkeys((*columns.node_names, *lost)))
        (nodes, are_all), created = await asyncio.gather(
            self._read_nodes(cluster), self._read_creation(cluster, workloads)
        )
        quotas = [entry for entry in created.objects if entry.get("kind") == kinds.RESOURCE_QUOTA]
        if not created.has_quotas:
            unknown.append("quotas")
        elif limits_shares(quotas, columns.vendors):
            unknown.append("quotas of shares")
        objects = [*nodes, *created.objects]
        withheld = self.devices.get_withheld(cluster.name)
        described = await asyncio.to_thread(build_live_cluster, columns, objects, offered, withheld, has_nodes=are_all)
        return described, created.describe_unread()

    async def _read_creation(self, cluster: Cluster, workloads: Sequence[PodTemplate]) -> CreationObjects:
        """Read what decides about new pods; nothing where this cluster has no API server here."""
        if cluster.name != self.changes.home_cluster or not self.changes.objects.is_connected:
            return CreationObjects()
        return await read_creation_objects(self.lists, workloads)

    async def _read_nodes(self, cluster: Cluster) -> NodeObjects:
        """Read the node objects; none where this cluster has no API server here, or it refuses."""
        objects = self.changes.objects
        if cluster.name != self.changes.home_cluster or not objects.is_connected:
            return [], False

        async def ask() -> TimedAnswer[NodeObjects]:
            page = await objects.read_page(NODES.build_collection_path(), limit=MAX_NODES)
            items = [{"apiVersion": "v1", "kind": "Node", **item} for item in page.get("items", ())]
            return TimedAnswer((items, not get_text(page, "metadata", "continue")), NODES_SECONDS)

        try:
            return await self.nodes.get(cluster.name, ask)
        except (KubeApiError, BusyError):
            return [], False

    async def _find_changes(
        self,
        request: Request,
        cluster: Cluster,
        columns: ClusterColumns,
        placed: _Placed,
        setting: SimulationSetting,
        unknown: list[str],
    ) -> ProvedChanges:
        """Add the changes of devices with their holders, as the caller may see them."""
        verdict = placed.placement.verdict
        attempt = verdict.attempt
        is_refused = verdict.outcome is PodOutcome.REFUSED
        if attempt is None or not is_refused or len(placed.placement.verdicts) > 1:
            return replace(placed.changes, unknown=tuple(unknown))
        proved, names = await self.changes.find_changes(
            request, cluster, attempt, columns, self.devices.lock, setting.now, unknown
        )
        if placed.changes.of_nodes:
            proved = proved._replace(items=[item for item in proved.items if not needs_other_nodes(item)])
        return replace(placed.changes, of_devices=proved, names=names, unknown=tuple(unknown))


def _simulate_pods(
    cluster: SimulationCluster, workloads: Sequence[PodTemplate], count: int | None, setting: SimulationSetting
) -> _Placed:
    """Place the pods; afterwards the devices are as before."""
    with place_workloads(cluster, workloads, count, setting) as placement:
        verdict = placement.verdict
        if verdict.outcome is not PodOutcome.REFUSED:
            return _Placed(placement, ProvedChanges())
        if len(placement.verdicts) > 1:
            return _Placed(placement, find_changes(placement.cluster, verdict, setting))
        return _Placed(placement, ProvedChanges(of_nodes=find_node_changes(placement.cluster, verdict, setting)))


async def _read_body(request: Request) -> bytes:
    """Read the body. Raises ``TooLargeError``."""
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > MAX_BODY_BYTES:
                raise TooLargeError(f"the body is longer than {MAX_BODY_BYTES // 1024} KiB", POD_EXAMPLE)
            parts.append(part)
    except ClientDisconnect:
        raise BadRequestError("the body ended before it was whole", POD_EXAMPLE) from None
    return b"".join(parts)


def _parse_workloads(body: bytes) -> list[PodTemplate]:
    """Parse the workloads, which get the namespace ``default`` if they have none. Raises ``BadRequestError``."""
    try:
        workloads = read_workloads(body, Path("body"))
    except ManifestError as error:
        raise BadRequestError(str(error), POD_EXAMPLE) from None
    for workload in workloads:
        namespace, name = _get_names(workload)
        for key, value, problem in (
            ("namespace", namespace, find_namespace_problem(namespace)), ("name", name, find_subdomain_problem(name)),
        ):  # fmt: skip
            if problem:
                raise BadRequestError(f"body: metadata.{key} {value[:80]!a} {problem}", POD_EXAMPLE)
    return workloads


def _get_names(workload: PodTemplate) -> tuple[str, str]:
    metadata = workload.pod["metadata"]
    return metadata["namespace"], metadata["name"]
