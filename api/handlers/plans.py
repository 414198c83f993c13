"""Handlers of plans on the cluster's own objects: drain of a node, moves after which a pod starts, nodes to add."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from api.answers.object_lists import ObjectLists
from api.answers.pod_case import build_objects
from api.authority.access import get_access
from api.authority.rights import LIST_NODES, list_pods
from api.handlers.simulation import POD_EXAMPLE, SimulationHandlers
from api.handlers.waiting_page import PendingList, PodSelection
from api.http.cluster import Cluster
from api.http.errors import BadRequestError, NotFoundError, ObjectsNotReadError, UnavailableError, to_json_response
from api.http.pagination import derive_token_scope
from api.http.param_types import NodeInPath
from api.http.query_params import MAX_ITEMS, NoQuery, Query, refuse_repeated
from engine.capacity.defragment import MAX_WANTED, plan_defragmentation
from engine.capacity.drain import NodeMissingError, plan_drain
from engine.capacity.purchase import plan_purchase
from engine.cases.judging import build_case_cluster
from engine.simulation.cluster import SimulationCluster
from engine.simulation.setting import SimulationSetting
from engine.simulation.verdict import PodRejectedError
from engine.snapshot import kinds
from engine.snapshot.needed_kinds import list_simulated
from engine.snapshot.snapshot import Key
from schemas.answers.diagnosis import InBothLanguages

_HELD: Final = ("queue", "gate")
"""Layers in which a pod waits for no node."""
_SINCE: Final = "1h"
"""Age of the latest record of a pod up to which it counts as waiting, as in lists."""
_MAX_PAGES: Final = 10


class MovesQuery(Query):
    count: int | None = Field(
        None, ge=1, le=MAX_WANTED, description="Pods that are wanted; without it, as many as the workload makes."
    )


@dataclass(frozen=True, slots=True)
class PlanHandlers:
    lists: ObjectLists
    simulation: SimulationHandlers
    waiting: PendingList
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Lock of plans: one of a large cluster takes seconds of CPU."""

    async def plan_drain(self, request: Request, cluster: Cluster, node: NodeInPath, _: NoQuery) -> Response:
        """Plan the drain of a node: where each of its pods goes, which wait, and which disruption budgets keep.

        It reads nodes, all pods and disruption budgets of the API's own cluster, writes nothing, and needs the right
        to list nodes and all pods.
        """
        refuse_repeated(request)
        described = await self._read_cluster(request, cluster, "drain")
        setting = SimulationSetting(datetime.now(UTC), cluster.name)
        try:
            async with self.lock:
                plan = await asyncio.to_thread(plan_drain, described, node, setting)
        except NodeMissingError:
            raise NotFoundError(
                f"the node {node} does not exist", f"GET {cluster.base}/nodes lists the nodes."
            ) from None
        return to_json_response(200, plan)

    async def plan_moves(self, request: Request, cluster: Cluster, query: MovesQuery) -> Response:
        """Plan the fewest pods to move to other nodes so that the pods of the body start; budgets are respected.

        The body is one Pod or workload with a pod template, as YAML or JSON. It needs the rights of a drain's plan.
        """
        refuse_repeated(request)
        workloads = await self.simulation.read_workloads(request, cluster, None)
        if len(workloads) > 1:
            raise BadRequestError(f"body: describes {len(workloads)} workloads", "Ask about one at a time.")
        described = await self._read_cluster(request, cluster, "defragment")
        (template,), setting = workloads, SimulationSetting(datetime.now(UTC), cluster.name)
        try:
            async with self.lock:
                plan = await asyncio.to_thread(
                    plan_defragmentation, described, template, query.count or template.replicas, setting
                )
        except PodRejectedError as error:
            raise BadRequestError(f"body: {error}", POD_EXAMPLE) from None
        return to_json_response(200, plan)

    async def plan_purchase(self, request: Request, cluster: Cluster, _: NoQuery) -> Response:
        """Plan nodes to add so that waiting pods start: how many of which kind, and pods that no node would help.

        Kinds are those of the cluster's nodes. Pods that a queue or a gate holds wait for no node. It needs the rights
        of a drain's plan.
        """
        refuse_repeated(request)
        described = await self._read_cluster(request, cluster, "buy")
        held = await self._list_held(request, cluster)
        setting = SimulationSetting(datetime.now(UTC), cluster.name)
        async with self.lock:
            plan = await asyncio.to_thread(plan_purchase, described, setting, held)
        return to_json_response(200, plan)

    async def _list_held(self, request: Request, cluster: Cluster) -> dict[Key, InBothLanguages]:
        """List the pods that a queue or a gate holds, by namespace and name, with the reason."""
        held: dict[Key, InBothLanguages] = {}
        scope = derive_token_scope(get_access(request).caller_name, "purchase", NoQuery(), cluster=cluster.name)
        for layer in _HELD:
            token: str | None = None
            for _ in range(_MAX_PAGES):
                selection = PodSelection({"layer": layer}, _SINCE, limit=MAX_ITEMS)
                page = await self.waiting.read_page(cluster, scope, token, selection)
                held |= {(pod.namespace, pod.name): pod.obstacle.sentence for pod in page.items if pod.obstacle}
                if not (token := page.continue_):
                    break
        return held

    async def _read_cluster(self, request: Request, cluster: Cluster, command: str) -> SimulationCluster:
        """Read the cluster's objects for a caller who may list its nodes and pods. Raises ``UnavailableError``.

        ``command``: makes the same plan at a terminal.
        """
        access, changes = get_access(request), self.simulation.changes
        await access.require(cluster, LIST_NODES)
        await access.require(cluster, list_pods())
        if cluster.name != changes.home_cluster or not changes.objects.is_connected:
            cause = f"This API does not read the objects of cluster {cluster.name}"
            raise ObjectsNotReadError(cause, f"Ask `schedulerlog {command}` with a kubeconfig of that cluster.")
        read = await asyncio.gather(*map(self.lists.read, list_simulated(await self.lists.read_versions())))
        objects = build_objects(read)
        if missing := objects.unread & {kinds.NODE, kinds.POD}:
            cause = f"the API could not list all of {', '.join(sorted(missing))}"
            next_step = "Give its service account the right (deploy/kustomize/components/diagnosis/nodes)."
            raise UnavailableError(cause, next_step)
        return await asyncio.to_thread(build_case_cluster, objects)
