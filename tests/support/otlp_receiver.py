"""An OpenTelemetry collector as far as spans need one: takes OTLP over HTTP, and keeps what it gets."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class ReceivedSpan(NamedTuple):
    service: str
    name: str
    trace: str
    id: str
    parent: str
    """Empty for the first of a trace."""
    attributes: dict[str, str]
    state: str
    """W3C's tracestate."""


@dataclass
class Collector:
    url: str
    spans: list[ReceivedSpan] = field(default_factory=list)

    def list_spans(self, trace: str) -> list[ReceivedSpan]:
        return [span for span in self.spans if span.trace == trace]


@contextmanager
def collector() -> Iterator[Collector]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    collector = server.collector = Collector(f"http://127.0.0.1:{server.server_port}")  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/v1/traces":
            self.server.collector.spans += _parse_spans(body)  # type: ignore[attr-defined]
        self.send_response(200 if self.path == "/v1/traces" else 404)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it
        """Log nothing: the tests' output is their own."""


def _parse_spans(body: bytes) -> Iterator[ReceivedSpan]:
    for group in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = _parse_texts(group.resource.attributes)["service.name"]
        for scope in group.scope_spans:
            for span in scope.spans:
                ids = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
                yield ReceivedSpan(service, span.name, *ids, _parse_texts(span.attributes), span.trace_state)


def _parse_texts(attributes: Any) -> dict[str, str]:
    return {attribute.key: attribute.value.string_value for attribute in attributes}
