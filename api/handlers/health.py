"""Handlers of liveness, readiness and metrics.

The process is ready once it has replayed the topics of attempts and pods, also while OpenSearch is down: it can answer
the latest pods. While attempts can't be read at all, OpenSearch is enough, because it can answer every pod.
"""

import time
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import Response

from api.authority.access import get_access
from api.authority.rights import PathRight
from api.http.errors import UnavailableError, to_json_response
from api.http.query_params import NoQuery
from api.index.reading.client import IndexProbe
from api.memory.topic_follower import TopicState
from api.metrics import Metrics
from runtime.settings.addresses import without_addresses


class Alive(BaseModel):
    alive: bool = True


class Part(BaseModel):
    model_config = ConfigDict(frozen=True)

    ready: bool
    why_not: str = ""


class TopicPart(Part):
    replayed: bool
    lag_records: int


class Parts(BaseModel):
    model_config = ConfigDict(frozen=True)

    attempts_topic: TopicPart
    pods_topic: TopicPart
    opensearch: Part


class Readiness(BaseModel):
    model_config = ConfigDict(frozen=True)

    ready: bool
    parts: Parts | None


@dataclass(frozen=True, slots=True)
class HealthHandlers:
    topic: TopicState
    pods_topic: TopicState
    index: IndexProbe
    metrics: Metrics

    async def get_health(self, request: Request, _: NoQuery) -> Response:
        """Answer 200 as long as the process runs."""
        get_access(request).allow_every_caller()
        return to_json_response(200, Alive())

    async def get_readiness(self, request: Request, _: NoQuery) -> Response:
        """Tell which parts are ready. 200 once the topics are replayed, or while they can't be and OpenSearch answers.

        The parts name errors, and only callers who may `get` the path `/readyz` see them.
        """
        why_not, now = await self.index.find_problem(), time.monotonic()
        parts = Parts(
            attempts_topic=describe_topic(self.topic, now),
            pods_topic=describe_topic(self.pods_topic, now),
            opensearch=Part(ready=not why_not, why_not=why_not),
        )
        readiness = Readiness(ready=self._is_ready(parts), parts=parts)
        # A kubelet reads only the status; the parts are for people.
        if not await _may_see_parts(request):
            readiness = Readiness(ready=readiness.ready, parts=None)
        return to_json_response(200 if readiness.ready else 503, readiness)

    def _is_ready(self, parts: Parts) -> bool:
        # Before the first try there is no trouble yet. If OpenSearch were enough then, a new process would be ready at
        # once, answer all pods from the index and list none that nobody tried, until its replay ends.
        answers = self.topic.replayed or (bool(self.topic.trouble) and parts.opensearch.ready)
        return answers and self.pods_topic.is_read

    async def write_metrics(self, request: Request, _: NoQuery) -> Response:
        """Write the metrics of this process in Prometheus' text format, or as OpenMetrics."""
        access = get_access(request)
        if not await access.check_right(PathRight("/metrics")):
            raise access.to_forbidden_error(str(PathRight("/metrics")))
        content_type, body = self.metrics.encode(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})


def describe_topic(topic: TopicState, now: float) -> TopicPart:
    """Describe the topic's part of readiness. ``now`` is a time of the monotonic clock, in seconds."""
    following = topic.is_following(now)
    # The log names the brokers.
    why_not = "" if following else without_addresses(topic.trouble) or "not replayed to its end yet"
    return TopicPart(ready=following, why_not=why_not, replayed=topic.replayed, lag_records=topic.lag_records)


async def _may_see_parts(request: Request) -> bool:
    # A kubelet asks without a token, and needs an answer also while the API server can't review callers.
    access = get_access(request)
    access.allow_every_caller()
    try:
        return await access.check_right(PathRight("/readyz"))
    except UnavailableError:
        return False
