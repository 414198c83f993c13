"""Handler of capacity: counts the pods of a shape that start now, on the present devices."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from api.handlers.simulation import POD_EXAMPLE, SimulationHandlers
from api.http.cluster import Cluster
from api.http.errors import BadRequestError, to_json_response
from api.http.query_params import Query, refuse_repeated
from engine.capacity.added_nodes import AdditionError, parse_additions
from engine.capacity.starts import plan_starts
from engine.simulation.setting import SimulationSetting
from engine.simulation.verdict import PodRejectedError

MAX_COUNT = 100_000
MAX_TEXT = 1_000


class CapacityQuery(Query):
    count: int | None = Field(
        None, ge=1, le=MAX_COUNT, description="Pods that are wanted; without it, as many as the workload makes."
    )
    add_node: str = Field(
        "",
        max_length=MAX_TEXT,
        description="Empty nodes to add for the question, as `like:NODE=COUNT`; several are divided by commas.",
    )


@dataclass(frozen=True, slots=True)
class CapacityHandlers:
    simulation: SimulationHandlers

    async def count_starts(self, request: Request, cluster: Cluster, query: CapacityQuery) -> Response:
        """Count the pods of a shape that start now, and tell what the others wait for and what would take them.

        The body is one Pod or workload with a pod template, as YAML or JSON. It is judged as a simulation judges it.
        The API sees no pods' objects: `next_end` is null, and what pods hold of CPU and memory is not counted. It
        writes nothing.
        """
        refuse_repeated(request)
        workloads = await self.simulation.read_workloads(request, cluster, None)
        if len(workloads) > 1:
            raise BadRequestError(f"body: describes {len(workloads)} workloads", "Ask about one at a time.")
        columns = self.simulation.require_columns(cluster)
        described, notes = await self.simulation.describe_cluster(cluster, columns, workloads, [])
        template, setting = workloads[0], SimulationSetting(datetime.now(UTC), cluster.name, notes=notes)
        try:
            additions = parse_additions(query.add_node)
            async with self.simulation.devices.lock:
                plan = await asyncio.to_thread(
                    plan_starts, described, template, query.count or template.replicas, additions, setting
                )
        except AdditionError as error:
            raise BadRequestError(f"add_node: {error}", "GET /api/v1/nodes lists the nodes.") from None
        except PodRejectedError as error:
            raise BadRequestError(f"body: {error}", POD_EXAMPLE) from None
        return to_json_response(200, plan)
