"""Handlers of a recorded cluster as a file of Kubernetes objects, for `python -m scheduler simulate`."""

from dataclasses import dataclass
from datetime import UTC, datetime

import orjson
from starlette.requests import Request
from starlette.responses import Response

from api.answers.attempt_lookup import AttemptLookup
from api.authority.access import get_access
from api.authority.rights import LIST_NODES
from api.handlers.attempt_rights import find_readable_attempt
from api.handlers.not_found import to_no_states_error
from api.http.cluster import Cluster
from api.http.param_types import AttemptInPath, parse_time
from api.http.query_params import ClusterFileQuery, NoQuery, refuse_repeated
from api.index.nodes.cluster_states import ClusterStates, read_states_at, read_states_of_attempt
from api.index.reading.client import OpenSearch
from engine.hami.cluster_objects import build_cluster_objects
from schemas.codec.records import format_rfc3339


@dataclass(frozen=True, slots=True)
class ClusterFileHandlers:
    attempts: AttemptLookup
    index: OpenSearch

    async def write_cluster_at(self, request: Request, cluster: Cluster, query: ClusterFileQuery) -> Response:
        """Write the cluster's devices with their use at one time, as YAML for `scheduler simulate`."""
        refuse_repeated(request)
        await get_access(request).require(cluster, LIST_NODES)
        now = datetime.now(UTC)
        moment = parse_time(query.at, now) if query.at else now
        states = await read_states_at(self.index, cluster.name, query.scheduler, moment)
        if not states.states:
            raise to_no_states_error(f"of cluster {cluster.name} at {format_rfc3339(moment)}")
        return _to_file(states, f"Cluster {cluster.name} at {format_rfc3339(moment)}")

    async def write_cluster_of_attempt(
        self,
        request: Request,
        cluster: Cluster,
        attempt_id: AttemptInPath,
        _: NoQuery,
    ) -> Response:
        """Write the devices that an attempt judged, as it saw them, as YAML for `scheduler simulate`."""
        refuse_repeated(request)
        await get_access(request).require(cluster, LIST_NODES)
        attempt = await find_readable_attempt(self.attempts, request, cluster, attempt_id)
        summary = attempt.read_summary()
        states = await read_states_of_attempt(self.index, summary, attempt.original_id)
        if not states.states:
            raise to_no_states_error(f"that attempt {attempt_id} judged")
        return _to_file(states, f"Cluster {cluster.name} as attempt {attempt.attempt_id} of pod {summary.pod} found it")


def _to_file(states: ClusterStates, title: str) -> Response:
    written = build_cluster_objects(states.states, states.without_devices)
    notes = [
        f"{title}. Memory, cores and slots in use are held by one pod on each node.",
        "Quotas, taints and other vendors' devices are not part of it.",
        *(f"Left out: {note}" for note in written.left_out),
        *(f"Missing in the index: {state_id}" for state_id in states.missing),
    ]
    # JSON is YAML, and is written a hundred times faster; names have no line breaks that could end a comment.
    lines = [f"# {note}".encode() for note in notes]
    documents = [orjson.dumps(object_, option=orjson.OPT_INDENT_2) for object_ in written.objects]
    return Response(b"\n---\n".join([b"\n".join(lines), *documents]) + b"\n", media_type="application/yaml")
