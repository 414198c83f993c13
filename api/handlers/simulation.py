"""Handler of simulations: places a pod that does not exist yet, by the scheduler's own fit on the present devices."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic import Field
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from api.answers.change_search import ChangeSearch
from api.authority.access import get_access
from api.authority.rights import get_pod
from api.http.cluster import Cluster
from api.http.errors import BadRequestError, TooLargeError, UnavailableError, to_json_response
from api.http.param_types import NamespaceName, find_namespace_problem
from api.http.query_params import Query, refuse_repeated
from api.memory.cluster_devices import ClusterDevices
from engine.diagnosis.tree import diagnose_simulated
from engine.fit import manifests
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.identity import Identity
from engine.fit.judge.decision import SchedulingPolicy
from engine.fit.simulate import simulate_on
from engine.suggestions.answer import ProvedSuggestions, build_suggestions
from engine.summaries.answer import build_detail, encode_schedulerlog
from engine.summaries.fold import summarize
from runtime.settings.object_names import find_subdomain_problem
from schemas.answers.simulation import Simulation
from schemas.codec.records import encode_value
from schemas.events import AttemptEvent, AttemptSummarized

MAX_BODY_BYTES: Final = 64 * 1024
"""Maximum length of a body, far above any pod that people write; YAML of this length takes half a second."""
_SCHEDULER: Final = "hami-scheduler"
"""Scheduler name shown for simulated attempts."""
_EXAMPLE: Final = "Send one object of kind Pod as YAML or JSON, as `kubectl get pod NAME -o yaml` writes it."


class SimulationQuery(Query):
    namespace: NamespaceName | None = Field(
        None, description="Namespace that the pod must have; in the aggregated API, that of the path."
    )


@dataclass(frozen=True, slots=True)
class SimulationHandlers:
    devices: ClusterDevices
    changes: ChangeSearch

    async def simulate(self, request: Request, cluster: Cluster, query: SimulationQuery) -> Response:
        """Simulate the scheduling of a pod that does not exist: its node, or why it would wait and what would help.

        The body is one Pod, as YAML or JSON. The trial offers every node with devices as it is now, and every node that
        has registered devices before; it ignores quotas, taints and the other conditions of kube-scheduler. It writes
        nothing.
        """
        refuse_repeated(request)
        access = get_access(request)
        # The sender of a body may learn what is wrong with it; all else is for callers who may read such a pod.
        access.allow_every_caller()
        pod = await asyncio.to_thread(_parse_pod, await _read_body(request))
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        if query.namespace not in (None, namespace):
            # The API server allowed a request about the namespace of the path.
            cause = f"body: the pod has namespace {namespace}, but the request is about {query.namespace}"
            raise BadRequestError(cause, f"Write metadata.namespace: {query.namespace}, or ask about {namespace}.")
        await access.require(cluster, get_pod(namespace, name))
        columns = self.devices.find_columns(cluster.name)
        if columns is None:
            raise UnavailableError(
                f"the devices of cluster {cluster.name} are not known (yet)",
                "Try again in a few seconds; GET /readyz names late parts, GET /api/v1/clusters lists clusters.",
            )
        now, unknown = datetime.now(UTC), ["quotas"]
        lost = await self.changes.filter_present_nodes(cluster, self.devices.lost.get(cluster.name, ()), unknown)
        async with self.devices.lock:
            events = await asyncio.to_thread(_try_pod, columns, lost, pod, cluster.name, now)
        if not events:
            nothing = Simulation(node=None, schedulerlog=None, diagnosis=None, suggestions=None)
            return to_json_response(200, nothing, {"Cache-Control": "no-store"})
        return await self._answer(request, cluster, columns, summarize(events), now, unknown)

    async def _answer(
        self,
        request: Request,
        cluster: Cluster,
        columns: ClusterColumns,
        attempt: AttemptSummarized,
        now: datetime,
        unknown: list[str],
    ) -> Response:
        changes, names = ProvedSuggestions([], [], fits=True), dict[str, str]()
        if not attempt.chosen:
            changes, names = await self.changes.find_changes(
                request, cluster, attempt, columns, self.devices.lock, now, unknown
            )
        diagnosis = diagnose_simulated(attempt, now, changes.excluded_by)
        body = {
            "node": attempt.chosen,
            "schedulerlog": orjson.Fragment(encode_schedulerlog(attempt, additions={"detail": build_detail(attempt)})),
            "diagnosis": orjson.Fragment(encode_value(diagnosis)),
            "suggestions": orjson.Fragment(encode_value(build_suggestions(attempt, "", now, changes, names, unknown))),
        }
        return Response(orjson.dumps(body), 200, {"Cache-Control": "no-store"}, "application/json")


def _try_pod(
    columns: ClusterColumns, lost: Sequence[str], pod: Mapping[str, Any], cluster: str, now: datetime
) -> list[AttemptEvent]:
    # A lost node may have registered again in the meantime.
    offered = tuple(dict.fromkeys((*columns.node_names, *lost)))
    return simulate_on(columns, offered, pod, Identity(cluster, _SCHEDULER), SchedulingPolicy(), now)


async def _read_body(request: Request) -> bytes:
    """Read the body. Raises ``TooLargeError``."""
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > MAX_BODY_BYTES:
                raise TooLargeError(f"the body is longer than {MAX_BODY_BYTES // 1024} KiB", _EXAMPLE)
            parts.append(part)
    except ClientDisconnect:
        raise BadRequestError("the body ended before it was whole", _EXAMPLE) from None
    return b"".join(parts)


def _parse_pod(body: bytes) -> Mapping[str, Any]:
    """Parse the pod, which gets the namespace ``default`` if it has none. Raises ``BadRequestError``."""
    try:
        pods = manifests.parse(body, Path("body")).pods
    except manifests.ManifestError as error:
        raise BadRequestError(str(error), _EXAMPLE) from None
    if len(pods) != 1:
        raise BadRequestError(f"body: describes {len(pods)} pods, write exactly one object of kind Pod", _EXAMPLE)
    ((namespace, name), pod) = next(iter(pods.items()))
    for field, value, problem in (
        ("namespace", namespace, find_namespace_problem(namespace)), ("name", name, find_subdomain_problem(name)),
    ):  # fmt: skip
        if problem:
            raise BadRequestError(f"body: metadata.{field} {value[:80]!a} {problem}", _EXAMPLE)
    return pod
