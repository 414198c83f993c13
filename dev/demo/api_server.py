"""Simulates the part of an API server that the readers and the writer of events use: pods and nodes once, events of
schedulers as they come, and the events that schedulerlog writes."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import yaml

from dev.demo.cluster_file import ClusterFile
from schemas.json_types import Json

EVENTS: Final = "/apis/events.k8s.io/v1/events"
KINDS: Final = {"/api/v1/pods": "Pod", "/api/v1/nodes": "Node"}
POLL_SECONDS: Final = 0.2
BOOKMARK_SECONDS: Final = 60.0
"""Seconds between bookmarks, as of the real server, whose readers take a longer silence for a broken watch."""


class SimulatedApiServer:
    """Lists the objects of the cluster file, and keeps the events that are written to it."""

    def __init__(self, cluster: ClusterFile) -> None:
        self._cluster = cluster
        self._changed = threading.Condition()
        self._events: list[Json] = []
        self.written: dict[str, Json] = {}
        """Events that schedulerlog has written, by their path; no reader of events gets them."""
        self.is_stopped = False

    def write_event(self, pod: Json, scheduler: str, reason: str, note: str) -> None:
        """Write an event about a pod, as kube-scheduler does."""
        reference = {key: pod["metadata"][key] for key in ("namespace", "name", "uid")}
        with self._changed:
            version = len(self._events) + 1
            name = f"{reference['name']}.{version}"
            metadata = {"namespace": reference["namespace"], "name": name, "uid": name, "resourceVersion": str(version)}
            self._events.append(
                {
                    "metadata": metadata, "regarding": {"kind": "Pod", **reference}, "reason": reason, "note": note,
                    "type": "Normal" if reason == "Scheduled" else "Warning", "reportingController": scheduler,
                    "eventTime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
                }
            )  # fmt: skip
            self._changed.notify_all()

    def create_event(self, collection: str, body: Json) -> Json | None:
        """Create an event of schedulerlog; None if there is one of the name."""
        path = f"{collection}/{body['metadata']['name']}"
        if path in self.written:
            return None
        body["metadata"] |= {"namespace": collection.split("/")[-2], "uid": path, "resourceVersion": "1"}
        self.written[path] = body
        return body

    def patch_event(self, path: str, change: Json) -> Json | None:
        """Merge a change into an event of schedulerlog; None if there is none."""
        if path not in self.written:
            return None
        event = _merge(self.written[path], change)
        event["metadata"]["resourceVersion"] = str(int(event["metadata"]["resourceVersion"]) + 1)
        self.written[path] = event
        return event

    def list_written(self) -> Json:
        """List the events of schedulerlog."""
        return {"items": list(self.written.values()), "metadata": {"resourceVersion": "1"}}

    def list_objects(self, path: str) -> Json | None:
        """List the objects at a path; None for a kind that this server does not have."""
        if path == EVENTS:
            return {"items": self._events, "metadata": {"resourceVersion": str(len(self._events))}}
        if path not in KINDS:
            return None
        items = [object_ for object_ in self._cluster.read_objects() if object_["kind"] == KINDS[path]]
        return {"items": items, "metadata": {"resourceVersion": "1"}}

    def watch_events(self, path: str, version: int) -> Iterator[Json | None]:
        """Yield the events after the version as they come, a bookmark after a minute of silence, and None meanwhile."""
        bookmark_at = time.monotonic() + BOOKMARK_SECONDS
        while not self.is_stopped:
            with self._changed:
                if not (news := self._events[version:] if path == EVENTS else []):
                    self._changed.wait(POLL_SECONDS)
            version += len(news)
            yield from ({"type": "ADDED", "object": event} for event in news)
            if news or time.monotonic() < bookmark_at:
                yield None
                continue
            bookmark_at = time.monotonic() + BOOKMARK_SECONDS
            yield {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}}


def _merge(present: Json, change: Json) -> Json:
    """Return the object after a JSON merge patch."""
    merged = dict(present)
    for name, value in change.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge(merged.get(name) or {}, value) if isinstance(value, dict) else value
    return merged


@contextmanager
def serving(server: SimulatedApiServer, kubeconfig: Path) -> Iterator[None]:
    """Serve on a free port of 127.0.0.1, which ``kubeconfig`` names."""

    class ApiRequestHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query = parse_qs(url.query)
            if "labelSelector" in query:
                self._answer(server.list_written(), 404)
                return
            if (listing := server.written.get(url.path) or server.list_objects(url.path)) is None:
                self._answer(None, 404)
                return
            self._begin(200)
            if "watch" not in query:
                self.wfile.write(json.dumps(listing).encode())
                return
            try:
                for event in server.watch_events(url.path, int(query["resourceVersion"][0])):
                    self.wfile.write(json.dumps(event).encode() + b"\n" if event else b"")
                    self.wfile.flush()
            except OSError:
                return  # The reader has ended.

        def do_POST(self) -> None:
            self._answer(server.create_event(self.path, self._read_body()), 409)

        def do_PATCH(self) -> None:
            self._answer(server.patch_event(self.path, self._read_body()), 404)

        def _read_body(self) -> Json:
            body: Json = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            return body

        def _answer(self, body: Json | None, status_without: int) -> None:
            self._begin(200 if body else status_without)
            self.wfile.write(json.dumps(body or {"kind": "Status", "code": status_without}).encode())

        def _begin(self, status: int) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing: the demo's screen is for answers."""

    with ThreadingHTTPServer(("127.0.0.1", 0), ApiRequestHandler) as http:
        http.daemon_threads = True
        _write_kubeconfig(kubeconfig, http.server_port)
        threading.Thread(target=http.serve_forever, args=(POLL_SECONDS,), daemon=True).start()
        try:
            yield
        finally:
            server.is_stopped = True
            http.shutdown()


def _write_kubeconfig(path: Path, port: int) -> None:
    cluster = {"name": "demo", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    context = {"name": "demo", "context": {"cluster": "demo", "user": "demo"}}
    user: Json = {"name": "demo", "user": {}}
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "demo", "clusters": [cluster], "contexts": [context],
        "users": [user],
    }  # fmt: skip
    path.write_text(yaml.safe_dump(config))
