"""Spans of what the API is asked, as the SDK hands them to its exporter."""

from collections.abc import Sequence

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from runtime.telemetry.otlp import OtlpTracing
from schemas.events import PodRef
from tests.support.builders.events import a_summary
from tests.support.harness.api_app import POD, Answering, Caller, answer_nothing, refuse

CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
ROUTE = "/api/v1/namespaces/{namespace}/pods/{name}/schedulerlog"


async def collect_spans(*paths: str, answering: Answering = answer_nothing, **headers: str) -> Sequence[ReadableSpan]:
    exporter = InMemorySpanExporter()
    tracing = OtlpTracing("", "schedulerlog-api", exporter)
    caller = Caller(answering, tracing=tracing)
    caller.remember(a_summary(pod=PodRef(namespace="llm", name="in-memory", uid="u")))
    for path in paths:
        await caller.get(path, **headers)
    tracing.close()
    return exporter.get_finished_spans()


async def test_a_request_continues_its_callers_trace_down_to_the_index() -> None:
    search, *more, request = await collect_spans(POD, traceparent=CALLER, tracestate="congo=t61rcWkgMzE")
    assert request.name == f"GET {ROUTE}"
    assert request.parent is not None
    assert f"00-{request.context.trace_id:032x}-{request.parent.span_id:016x}-01" == CALLER
    assert request.attributes == {
        "http.request.method": "GET", "http.route": ROUTE, "http.response.status_code": 404,
        "url.path": POD, "url.scheme": "http",
        "k8s.namespace.name": "llm", "k8s.pod.name": "deepseek-a",
    }  # fmt: skip
    assert request.status.is_ok or request.status.description is None
    assert {span.context.trace_state.to_header() for span in (search, *more, request)} == {"congo=t61rcWkgMzE"}
    for span in (search, *more):
        assert span.parent is not None
        assert span.parent.span_id == request.context.span_id
    assert search.name.startswith("_search schedulerlog-")
    assert search.attributes is not None
    assert search.attributes["db.system.name"] == "opensearch"


async def test_what_memory_answers_has_no_span_of_the_index() -> None:
    [request] = await collect_spans(POD.replace("deepseek-a", "in-memory"))
    assert request.parent is None
    assert request.attributes is not None
    assert request.attributes["http.response.status_code"] == 200


async def test_an_index_that_is_away_is_an_error_of_both_spans() -> None:
    search, request = await collect_spans("/api/v1/schedulerlogs", answering=refuse)
    assert search.status.description is not None
    assert search.status.description.startswith("IndexDownError: ConnectError")
    assert request.status.description == "HTTP 503"


async def test_probes_and_metrics_have_no_spans_and_a_path_without_a_route_has_no_name_of_its_own() -> None:
    [request] = await collect_spans("/healthz", "/metrics", "/no/such/path/of-a-pod")
    assert request.name == "GET"
    assert "of-a-pod" not in str(request.attributes)
