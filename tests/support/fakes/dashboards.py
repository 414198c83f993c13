"""A stand-in for OpenSearch Dashboards: the HTTP of saved objects, as Dashboards 3.3 was seen to behave.

Lists and versions are written down here once more: the code under test has its own.
"""

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

NEWEST: Final = {
    "index-pattern": (7, 6, 0),
    "search": (7, 9, 3),
    "visualization": (7, 10, 0),
    "dashboard": (7, 9, 3),
}
_META: Final = "kibanaSavedObjectMeta"
STRICT: Final = {
    "search": {"title", "description", "hits", "columns", "sort", "version", _META},
    "visualization": {"title", "visState", "uiStateJSON", "description", "version", "savedSearchRefName", _META},
    "dashboard": {
        "title", "description", "hits", "panelsJSON", "optionsJSON", "version", "timeRestore", "timeFrom", "timeTo",
        "refreshInterval", _META,
    },
}  # fmt: skip
_CHECKED: Final = ("index-pattern", "search")
"""Only references to these are checked by the import."""


@dataclass
class DashboardsStandIn:
    url: str = ""
    stored: dict[tuple[str, str], Any] = field(default_factory=dict)
    imports: list[dict[str, str]] = field(default_factory=list)
    """The headers of each import."""
    asks_for: str = ""
    """With it, user ``admin`` and this password are needed."""
    answer: Any = None
    """Instead of what it would answer to an import."""
    alters: dict[str, Any] = field(default_factory=dict)
    """Attributes that an object gets when it is stored."""
    page: bytes = b""
    """Instead of every answer: a page that is not JSON."""


@contextmanager
def dashboards_stand_in(
    certificate: Path | None = None, key: Path | None = None, asks_for: str = ""
) -> Iterator[DashboardsStandIn]:
    stand_in = DashboardsStandIn(asks_for=asks_for)
    with ThreadingHTTPServer(("127.0.0.1", 0), _build_handler(stand_in)) as server:
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        stand_in.url = f"http{'s' if certificate else ''}://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield stand_in
        finally:
            server.shutdown()
            thread.join()


def _build_handler(stand_in: DashboardsStandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            self._send(*self._check() or _import_objects(stand_in, self.path, dict(self.headers), body))

        def do_GET(self) -> None:
            _, kind, name = self.path.removeprefix("/api").rsplit("/", 2)
            saved = stand_in.stored.get((kind, name))
            self._send(*self._check() or ((200, saved) if saved else (404, {"statusCode": 404, "error": "Not Found"})))

        def _check(self) -> tuple[int, Any] | None:
            wanted = "Basic " + base64.b64encode(f"admin:{stand_in.asks_for}".encode()).decode()
            if stand_in.asks_for and self.headers.get("authorization") != wanted:
                return 401, {"statusCode": 401, "error": "Unauthorized", "message": "Authentication required"}
            return None

        def _send(self, status: int, body: Any) -> None:
            content = stand_in.page or json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the name of the base class
            pass

    return Handler


def _import_objects(stand_in: DashboardsStandIn, path: str, headers: dict[str, str], body: bytes) -> tuple[int, Any]:
    lowered = {name.lower(): value for name, value in headers.items()}
    stand_in.imports.append(lowered)
    if "osd-xsrf" not in lowered:
        return 400, {"statusCode": 400, "message": "Request must contain a osd-xsrf header."}
    if stand_in.answer is not None:
        return 200, stand_in.answer
    name, content = _parse_file(lowered["content-type"], body)
    if not name.endswith(".ndjson"):
        return 400, {"statusCode": 400, "message": f"Invalid file extension {name}"}
    objects = [json.loads(line) for line in content.splitlines() if line.strip()]
    if len({(item["type"], item["id"]) for item in objects}) < len(objects):
        return 400, {"statusCode": 400, "message": "Non-unique import objects detected"}
    for saved in objects:
        version = tuple(int(part) for part in saved["migrationVersion"].get(saved["type"], "0").split("."))
        if version > NEWEST.get(saved["type"], version):
            return 422, {"statusCode": 422, "message": f"Document {saved['id']} belongs to a more recent version"}
    errors = [error for item in objects if (error := _find_error(stand_in, objects, item, "overwrite=true" in path))]
    failed = {(failure["type"], failure["id"]) for failure in errors}
    for saved in objects:
        if (saved["type"], saved["id"]) not in failed:
            stand_in.stored[saved["type"], saved["id"]] = saved | {"attributes": saved["attributes"] | stand_in.alters}
    answer = {"success": not errors, "successCount": len(objects) - len(errors)}
    return 200, answer | ({"errors": errors} if errors else {})


def _parse_file(content_type: str, body: bytes) -> tuple[str, bytes]:
    """Name and content of the field ``file``."""
    boundary = b"--" + content_type.partition("boundary=")[2].encode()
    head, _, content = body.split(boundary)[1].partition(b"\r\n\r\n")
    assert b'name="file"' in head
    return head.decode().partition('filename="')[2].partition('"')[0], content.removesuffix(b"\r\n")


def _find_error(stand_in: DashboardsStandIn, objects: list[Any], item: Any, overwrite: bool) -> Any:
    name = {"type": item["type"], "id": item["id"], "title": item["attributes"].get("title")}
    if item["type"] not in NEWEST:
        return name | {"error": {"type": "unsupported_type"}}
    ids = {*stand_in.stored, *((other["type"], other["id"]) for other in objects)}
    needed = [{"type": ref["type"], "id": ref["id"]} for ref in item["references"] if ref["type"] in _CHECKED]
    if missing := [ref for ref in needed if (ref["type"], ref["id"]) not in ids]:
        return name | {"error": {"type": "missing_references", "references": missing}}
    if (item["type"], item["id"]) in stand_in.stored and not overwrite:
        return name | {"error": {"type": "conflict"}}
    if strangers := set(item["attributes"]) - STRICT.get(item["type"], set(item["attributes"])):
        text = (
            f"mapping set to strict, dynamic introduction of {sorted(strangers)} within [{item['type']}] is not allowed"
        )
        return name | {"error": {"type": "unknown", "message": text, "statusCode": 400}}
    return None
