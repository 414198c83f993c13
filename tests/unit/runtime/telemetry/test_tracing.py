"""Spans, as the SDK hands them to its exporter."""

import sys
import threading

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from runtime.errors import SettingError
from runtime.telemetry.logs import identify_subject
from runtime.telemetry.otlp import OtlpTracing
from runtime.telemetry.spans import NO_TRACING
from runtime.telemetry.tracing import TracingSettings, tracing
from schemas.codec.trace_context import NO_TRACE, Trace

PARENT = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
STATE = b"rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"
EXAMPLE = Trace(PARENT, STATE)
NOT_SAMPLED = Trace(PARENT[:-1] + b"0", STATE)
ATTEMPT = "6f97a54de6fbb9e27ee3a1dc8d608d38"


def test_without_a_collector_the_callers_trace_is_passed_on_and_no_span_is_made() -> None:
    with tracing(TracingSettings(), "worker") as spans:
        assert spans is NO_TRACING
        assert not spans.is_on
        span = spans.begin("fold", EXAMPLE, kind="consumer")
        span.end()
        assert span.trace == EXAMPLE


def test_a_trace_without_a_caller_has_the_id_of_its_attempt() -> None:
    exporter = InMemorySpanExporter()
    spans = OtlpTracing("", "schedulerlog-scheduler", exporter)
    judged = spans.begin(
        "filter", NO_TRACE, identify_subject(attempt=ATTEMPT, pod="llm/web"), kind="server", began_ns=17_000
    )
    spans.begin("publish", judged.trace, kind="producer").end()
    judged.end("no node is known")
    spans.close()
    publish, judge = exporter.get_finished_spans()
    assert judge.context.trace_id == publish.context.trace_id == int(ATTEMPT, 16)
    assert judge.parent is None
    assert publish.parent is not None
    assert publish.parent.span_id == judge.context.span_id
    assert (judge.start_time, judge.status.description) == (17_000, "no node is known")
    assert judge.attributes == {
        "schedulerlog.attempt.id": ATTEMPT, "k8s.namespace.name": "llm", "k8s.pod.name": "web",
    }  # fmt: skip
    assert judge.resource.attributes["service.name"] == "schedulerlog-scheduler"


def test_what_the_caller_does_not_sample_is_not_sent_and_keeps_its_trace() -> None:
    exporter = InMemorySpanExporter()
    spans = OtlpTracing("", "schedulerlog-worker", exporter)
    span = spans.begin("fold", NOT_SAMPLED, identify_subject(attempt=ATTEMPT), kind="consumer")
    span.end()
    spans.close()
    assert exporter.get_finished_spans() == ()
    assert (span.trace.id, span.trace.parent[-2:], span.trace.state) == (EXAMPLE.id, b"00", STATE)


def test_a_span_keeps_what_the_callers_tracing_wants_to_find_again() -> None:
    exporter = InMemorySpanExporter()
    spans = OtlpTracing("", "schedulerlog-scheduler", exporter)
    judged = spans.begin("filter", EXAMPLE, kind="server")
    judged.end()
    spans.close()
    (span,) = exporter.get_finished_spans()
    assert span.context.trace_state.to_header() == STATE.decode()
    assert (judged.trace.id, judged.trace.state) == (EXAMPLE.id, STATE)
    assert judged.trace.parent != EXAMPLE.parent


def test_an_attempt_whose_id_is_no_trace_id_gets_one() -> None:
    exporter = InMemorySpanExporter()
    spans = OtlpTracing("", "schedulerlog-worker", exporter)
    traces = [spans.begin("fold", NO_TRACE, identify_subject(attempt="a1"), kind="consumer").trace for _ in range(2)]
    spans.close()
    assert len({trace.id for trace in traces}) == 2


def test_a_collector_that_is_away_holds_up_neither_a_span_nor_the_end(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.telemetry.otlp.CLOSE_SECONDS", 0.05)
    # The SDK's thread draws the time to its next try from `random`, beside which hypothesis calls a later test flaky.
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1.5")
    others = set(threading.enumerate())
    # Port 1 refuses connections; the SDK tries for longer than anybody who stops a process waits.
    with tracing(TracingSettings(otlp_endpoint="http://127.0.0.1:1"), "worker") as spans:
        spans.begin("fold", kind="consumer").end()
    left = {thread.name: thread for thread in set(threading.enumerate()) - others}
    assert "last spans" in left, "the end waited for the SDK"
    left["last spans"].join()
    assert all(record.name.startswith("opentelemetry") for record in caplog.records)


def test_a_collector_without_open_telemetry_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "runtime.telemetry.otlp")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    settings = TracingSettings(otlp_endpoint="http://127.0.0.1:4318")
    with pytest.raises(SettingError, match=r"pip install 'schedulerlog\[otel\]'"), tracing(settings, "worker"):
        pass


def test_a_span_of_records_has_what_the_conventions_for_messaging_ask_for() -> None:
    exporter = InMemorySpanExporter()
    tracing = OtlpTracing("", "schedulerlog-worker", exporter)
    tracing.begin("fold schedulerlog.decisions", kind="consumer").end()
    tracing.begin("publish schedulerlog.decisions", kind="producer").end()
    tracing.close()
    folded, published = exporter.get_finished_spans()
    # By OpenTelemetry's semantic conventions for Kafka.
    assert folded.attributes == {
        "messaging.system": "kafka", "messaging.operation.name": "fold", "messaging.operation.type": "process",
        "messaging.destination.name": "schedulerlog.decisions",
    }  # fmt: skip
    assert published.attributes is not None
    assert published.attributes["messaging.operation.type"] == "send"
    process = folded.resource.attributes
    assert (process["service.namespace"], process["service.name"]) == ("schedulerlog", "schedulerlog-worker")
    assert process["service.instance.id"]
