"""Spans by OpenTelemetry's SDK, sent by OTLP over HTTP from a thread. Imported only where a collector is named.

Spans never hold anything up: more than 2,048 that wait are dropped, and the SDK logs it.
"""

import os
import re
from socket import gethostname
from threading import Thread
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.semconv._incubating.attributes.messaging_attributes import (
    MESSAGING_DESTINATION_NAME,
    MESSAGING_OPERATION_NAME,
    MESSAGING_OPERATION_TYPE,
    MESSAGING_SYSTEM,
    MessagingOperationTypeValues,
)
from opentelemetry.semconv.attributes.service_attributes import (
    SERVICE_INSTANCE_ID,
    SERVICE_NAME,
    SERVICE_NAMESPACE,
    SERVICE_VERSION,
)
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from runtime.cli.installation import VERSION
from runtime.telemetry.spans import NO_ATTRIBUTES, NOTHING, Attributes, Kind, Subject
from schemas.codec.trace_context import NO_TRACE, Trace

CLOSE_SECONDS: Final = 2.0
_ATTRIBUTES: Final = {"attempt": "schedulerlog.attempt.id", "cluster": "k8s.cluster.name"}
_PROCESS: Final = {SERVICE_NAMESPACE: "schedulerlog", SERVICE_VERSION: VERSION}
_OPERATION_TYPES: Final[dict[Kind, str]] = {
    "producer": MessagingOperationTypeValues.SEND.value,
    "consumer": MessagingOperationTypeValues.PROCESS.value,
}
_TRACE_ID: Final = re.compile("[0-9a-f]{32}")


class _AttemptIds(RandomIdGenerator):
    """A trace has the id of its attempt, so that either is found by the other."""

    next_trace_id = 0

    def generate_trace_id(self) -> int:
        return self.next_trace_id or super().generate_trace_id()


class OtlpSpan:
    """Span that is sent when it has ended."""

    def __init__(self, span: Span) -> None:
        self._span = span
        context = span.get_span_context()
        parent = f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
        self.trace = Trace(parent.encode(), context.trace_state.to_header().encode())

    def describe(self, name: str, subject: Subject = NOTHING, attributes: Attributes = NO_ATTRIBUTES) -> None:
        if name:
            self._span.update_name(name)
        self._span.set_attributes(
            {**_to_attributes(subject), **{key: value for key, value in attributes.items() if value}}
        )

    def end(self, error: str = "") -> None:
        if error:
            self._span.set_status(Status(StatusCode.ERROR, error[:500]))
        self._span.end()


class OtlpTracing:
    """``Tracing`` for one thread. ``exporter`` replaces the exporter to the endpoint."""

    is_on = True

    def __init__(self, endpoint: str, service: str, exporter: SpanExporter | None = None) -> None:
        # The environment's name comes before ours, as OpenTelemetry's own programs have it.
        name = {} if os.environ.get("OTEL_SERVICE_NAME") else {SERVICE_NAME: service}
        self._ids = _AttemptIds()
        self._provider = TracerProvider(
            resource=Resource.create({**_PROCESS, **name, SERVICE_INSTANCE_ID: gethostname()}),
            id_generator=self._ids,
            shutdown_on_exit=False,
        )
        sent_to = exporter or OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces")
        self._provider.add_span_processor(BatchSpanProcessor(sent_to))
        self._tracer = self._provider.get_tracer("schedulerlog", VERSION)
        self._propagator = TraceContextTextMapPropagator()

    def begin(
        self, name: str, parent: Trace = NO_TRACE, subject: Subject = NOTHING, *, kind: Kind, began_ns: int = 0
    ) -> OtlpSpan:
        # Never the context of the thread: spans of other calls are open meanwhile.
        carrier = {"traceparent": parent.parent.decode(), "tracestate": parent.state.decode()} if parent else {}
        context = self._propagator.extract(carrier, Context())
        attempt = subject.get("attempt", "")
        self._ids.next_trace_id = int(attempt, 16) if _TRACE_ID.fullmatch(attempt) else 0
        span = self._tracer.start_span(
            name,
            context,
            SpanKind[kind.upper()],
            _to_attributes(subject) | _describe_message(name, kind),
            start_time=began_ns or None,
        )
        return OtlpSpan(span)

    def close(self) -> None:
        """Send the waiting spans, for at most ``CLOSE_SECONDS``."""
        # The SDK tries a collector that is away for ten seconds and longer, which no stop may take.
        sending = Thread(target=self._provider.shutdown, name="last spans", daemon=True)
        sending.start()
        sending.join(CLOSE_SECONDS)


def _describe_message(name: str, kind: Kind) -> dict[str, str]:
    """Describe the topic of a span about records, whose name is that of the operation and the topic."""
    if kind not in _OPERATION_TYPES:
        return {}
    operation, _, topic = name.partition(" ")
    return {
        MESSAGING_SYSTEM: "kafka",
        MESSAGING_OPERATION_NAME: operation,
        MESSAGING_OPERATION_TYPE: _OPERATION_TYPES[kind],
        MESSAGING_DESTINATION_NAME: topic,
    }


def _to_attributes(subject: Subject) -> dict[str, str]:
    """Convert the subject to attributes with OpenTelemetry's names."""
    attributes = {_ATTRIBUTES[name]: value for name, value in subject.items() if name in _ATTRIBUTES}
    namespace, _, pod = subject.get("pod", "").partition("/")
    return attributes | ({"k8s.namespace.name": namespace, "k8s.pod.name": pod} if pod else {})
