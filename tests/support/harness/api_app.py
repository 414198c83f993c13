"""The whole application without a network: memory is filled by hand, OpenSearch is a function."""

import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, Final

import httpx
import orjson
from opensearchpy import AsyncOpenSearch, Connection
from opensearchpy.exceptions import ConnectionError as NoConnectionError
from starlette.applications import Starlette

from api.answers.object_api import Objects
from api.app import create_app
from api.authority.reviewer import Reviewer
from api.memory.alert_memory import AlertMemory
from api.settings import Settings
from runtime.http.server_tls import Certificates
from runtime.opensearch.client import OrjsonSerializer
from runtime.telemetry.spans import NO_TRACING, Tracing
from schemas.codec.chunking import split
from schemas.codec.records import encode, encode_value
from schemas.documents.attempts import build_attempt_document
from schemas.events import AlertChanged, AttemptSummarized, PodRef, build_pod_key
from tests.support.builders.events import STARTED, a_summary
from tests.support.harness.over_http import OverHttp

PROXY_NAME: Final = "login-proxy"
"""Common name of the authenticating proxy's certificate."""
SETTINGS = Settings(
    node_pools="a100=gpu-a100-*,t4=t4-*", kafka_bootstrap_servers="127.0.0.1:1", opensearch_url="http://127.0.0.1:2"
)
NEEDED_QUERIES: Final = {
    "/refusals": "?device=GPU-1",
    "/comparison": "?nodes=n1,n2",
    "/attempts/{attempt_id}/comparison": "?with=f00",
}
"""Parameters that a path can't be asked without, by how its template ends; the last entry that matches counts."""


def with_needed_query(template: str, path: str) -> str:
    """Complete ``path``, which the template makes, with the parameters that it can't be asked without."""
    return path + next((query for end, query in reversed(NEEDED_QUERIES.items()) if template.endswith(end)), "")


POD = "/api/v1/namespaces/llm/pods/deepseek-a/schedulerlog"
Answering = Callable[[httpx.Request], httpx.Response]
SlowlyAnswering = Callable[[httpx.Request], Awaitable[httpx.Response]]


def answer_nothing(_: httpx.Request) -> httpx.Response:
    return httpx.Response(200, json={"hits": {"total": {"value": 0}, "hits": []}, "docs": []})


def refuse(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("connection refused", request=request)


def hold(*summaries: AttemptSummarized) -> Answering:
    """Build an index that finds these, whatever is asked."""

    def answer(request: httpx.Request) -> httpx.Response:
        documents = [
            (summary.attempt_id, orjson.loads(encode_value(build_attempt_document(summary, ""))))
            for summary in summaries
        ]
        hits = [
            {"_index": "i", "_id": name, "_source": source, "sort": [1, name], "fields": {"pod": [source["pod"]]}}
            for name, source in documents
        ]
        return httpx.Response(200, json={"hits": {"total": {"value": len(hits)}, "hits": hits}, "docs": []})

    return answer


def index_of(answering: Answering | SlowlyAnswering) -> AsyncOpenSearch:
    """Connect a client of OpenSearch whose network is ``answering``."""

    class Answers(Connection):  # type: ignore[misc]
        async def perform_request(
            self, method: str, url: str, params: Any = None, body: Any = None, *_: Any, ignore: Any = (), **__: Any
        ) -> tuple[int, Any, str]:
            try:
                answer = answering(httpx.Request(method, f"http://index{url}", params=params, content=body))
                response = answer if isinstance(answer, httpx.Response) else await answer
            except httpx.HTTPError as error:
                raise NoConnectionError("N/A", str(error), error) from None
            kind = response.headers.get("content-type")
            if response.status_code >= 300 and response.status_code not in ignore:
                self._raise_error(response.status_code, response.text, kind)
            return response.status_code, response.headers, response.text

        async def close(self) -> None:
            """Close nothing: nothing is open."""

    return AsyncOpenSearch(["http://index"], connection_class=Answers, max_retries=0, serializer=OrjsonSerializer())


class Caller:
    def __init__(
        self,
        answering: Answering | SlowlyAnswering = answer_nothing,
        reviewer: Reviewer | None = None,
        certificates: Certificates | None = None,
        objects: Objects | None = None,
        tracing: Tracing = NO_TRACING,
        *,
        is_over_http: bool = False,
    ) -> None:
        # Who has certificates to show may be the API server.
        settings = SETTINGS.model_copy(update={"api_aggregated": bool(reviewer), "api_proxy_names": PROXY_NAME})
        self.app: Starlette = create_app(
            settings, index_of(answering), tracing, reviewer=reviewer, certificates=certificates, objects=objects
        )
        in_process = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        transport = OverHttp(self.app) if is_over_http else in_process
        self.client = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    def remember(self, *summaries: AttemptSummarized, following: bool = True) -> None:
        for part in (part for summary in summaries for part in split(summary)):
            taken = self.app.state.latest.add(part, encode(part).value, time.time())
            waits = self.app.state.waits
            waits.read_attempt(0, sum(waits.offsets[:1]), taken, build_pod_key(part.cluster, part.pod))
        self.app.state.topic.replayed = self.app.state.pods_topic.replayed = True
        # For as long as the test takes: on a busy machine that may be longer than an API relies on Kafka's last answer.
        answered_at = float("inf" if following else "-inf")
        self.app.state.topic.answered_at = self.app.state.pods_topic.answered_at = answered_at
        self.app.state.topic.trouble = "" if following else "Kafka does not answer"

    def remember_pods(self, *pods: str, **fields: Any) -> None:
        """Remember an attempt of each pod, named with its namespace."""
        for number, pod in enumerate(pods):
            namespace, _, name = pod.partition("/")
            self.remember(
                a_summary(
                    pod=PodRef(namespace=namespace, name=name, uid=f"uid-{pod}"),
                    attempt_id=f"{number:032x}",
                    started_at=STARTED + timedelta(seconds=number),
                    **fields,
                )
            )

    def publish(self, *alerts: AlertChanged, evaluated_until: datetime | None = None) -> None:
        """Publish alerts, evaluated until then, as the API's consumer reads them from Kafka."""
        latest: AlertMemory = self.app.state.alerts
        for alert in alerts:
            latest.put(alert)
        latest.is_caught_up, latest.evaluated_until = True, evaluated_until

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.client.get(path, headers=headers)
