"""Handler of a recorded range of time, the input of ``schedulerlog replay --since``."""

from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response

from api.authority.access import get_access
from api.authority.rights import LIST_NODES, list_pods
from api.handlers.not_found import to_no_states_error
from api.http.cluster import Cluster
from api.http.errors import BadRequestError, to_json_response
from api.http.param_types import parse_time
from api.http.query_params import RecordingQuery, refuse_repeated
from api.index.reading.client import OpenSearch
from api.index.reading.pages import resolve_range
from api.index.recordings import TooManyPodsError, read_recording
from schemas.codec.records import format_rfc3339
from schemas.indices import NODE_STATES


@dataclass(frozen=True, slots=True)
class RecordingHandlers:
    index: OpenSearch

    async def get_recording(self, request: Request, cluster: Cluster, query: RecordingQuery) -> Response:
        """Return the pods that wanted devices in a range of time, and the nodes that registered some.

        It names the pods of all namespaces: the caller needs the right to list nodes and all pods.
        """
        refuse_repeated(request)
        access = get_access(request)
        await access.require(cluster, LIST_NODES)
        await access.require(cluster, list_pods())
        now = datetime.now(UTC)
        resolve_range(query.since, query.until, now)
        until = min(parse_time(query.until, now), now) if query.until else now
        # A longer range has no states of nodes for its beginning, of which each day is read.
        since = max(parse_time(query.since, now), until - NODE_STATES.retention)
        try:
            recording = await read_recording(self.index, cluster.name, since, until) if since < until else None
        except TooManyPodsError as error:
            raise BadRequestError(str(error), "Give a shorter range: a later since, or an earlier until.") from None
        if recording is None:
            raise to_no_states_error(
                f"of cluster {cluster.name} between {format_rfc3339(since)} and {format_rfc3339(until)}"
            )
        return to_json_response(200, recording)
