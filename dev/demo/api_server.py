"""Simulates the part of an API server that schedulerlog uses: objects once, events of schedulers as they come, and the
events that schedulerlog writes."""

import json
import re
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
KINDS: Final = {"/api/v1/pods": "Pod", "/api/v1/nodes": "Node", "/apis/batch/v1/jobs": "Job"}
"""Kinds that this server has, by the path of all their objects."""
GROUPS: Final = {
    "groups": [
        {"name": group, "preferredVersion": {"version": "v1"}, "versions": [{"version": "v1"}]}
        for group in ("batch", "events.k8s.io")
    ]
}
_NAMESPACED: Final = re.compile("/namespaces/([^/]+)(/[^/]+)")
"""Namespace in a path, and the plural of the kind after it."""
_NAME: Final = "metadata.name="
POLL_SECONDS: Final = 0.2
BOOKMARK_SECONDS: Final = 60.0
"""Seconds between bookmarks, as of the real server, whose readers take a longer silence for a broken watch."""


class SimulatedApiServer:
    """Lists the objects of the cluster file and those that come later, and keeps the events that are written to it."""

    def __init__(self, cluster: ClusterFile) -> None:
        self._cluster = cluster
        self._changed = threading.Condition()
        self._events: list[Json] = []
        self._objects: dict[str, Json] = {}
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

    def put_object(self, body: Json) -> None:
        """Keep an object that is not in the cluster file, in place of an earlier one of its UID."""
        self._objects[body["metadata"]["uid"]] = body

    def find_creation(self, uid: str) -> str:
        """Find the time at which the object was created: now, where it was not put yet."""
        created = self._objects.get(uid, {}).get("metadata", {}).get("creationTimestamp")
        return str(created or f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")

    def read(self, path: str, field_selector: str = "") -> Json | None:
        """Read the list or the object at a path; None where this server has neither.

        A selector by name selects; others are not read, as if each object met them.
        """
        if path == "/apis":
            return GROUPS
        in_namespace = _NAMESPACED.search(path)
        collection = _NAMESPACED.sub(r"\2", path)
        if collection == EVENTS:
            return {"items": self._events, "metadata": {"resourceVersion": str(len(self._events))}}
        collection, _, name = (collection, "", "") if collection in KINDS else collection.rpartition("/")
        if collection not in KINDS:
            return None
        items = [
            object_
            for object_ in [*self._cluster.read_objects(), *self._objects.values()]
            if object_["kind"] == KINDS[collection]
            and (not in_namespace or object_["metadata"]["namespace"] == in_namespace[1])
        ]
        if name := name or (field_selector.removeprefix(_NAME) if field_selector.startswith(_NAME) else ""):
            items = [object_ for object_ in items if object_["metadata"]["name"] == name]
        if path.endswith(f"/{name}"):
            return items[0] if items else None
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
            selector = query.get("fieldSelector", [""])[0]
            if (listing := server.written.get(url.path) or server.read(url.path, selector)) is None:
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
