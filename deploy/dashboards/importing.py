"""Imports saved objects into OpenSearch Dashboards, and reads each of them back.

Dashboards answers 200 also where it refuses single objects: only the body says whether all of them are there.
"""

import base64
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

import orjson

from deploy.dashboards.saved_objects import SavedObject, ndjson
from runtime.errors import SettingError, UnreachableError
from runtime.http import tls
from runtime.settings.addresses import without_user_info

TIMEOUT_SECONDS: Final = 60.0
_BOUNDARY: Final = "schedulerlog-saved-objects"
_SHOWN_CHARACTERS: Final = 300
# Dashboards fills these in by itself when a pattern is used for the first time.
_FILLED_IN_LATER: Final = {"index-pattern": {"fields"}}
_NEXT_STEP: Final = {
    400: "is that URL one of OpenSearch Dashboards 3?",
    401: "give --username and --password-file",
    403: "the user may not write saved objects: give it a role that may, or another --tenant",
    404: "there is no such path: does the URL lack the base path of Dashboards (server.basePath)?",
    413: "raise savedObjects.maxImportPayloadBytes of Dashboards",
    422: "this Dashboards is older than the objects: 3.0 or newer is needed",
}


class ImportRefusedError(Exception):
    """Dashboards did not take every object; the message names each one with the cause."""


@dataclass(frozen=True, slots=True)
class DashboardsServer:
    """Address and credentials of Dashboards."""

    url: str
    """Without a slash at the end."""
    username: str = ""
    password: str = ""
    tenant: str = ""
    ca_file: Path | None = None

    def headers(self) -> dict[str, str]:
        # Any value will do; without the header every request that writes is refused.
        found = {"osd-xsrf": "true", "accept": "application/json"}
        # A user and password may stand in the URL instead, encoded for it.
        parts = urlsplit(self.url)
        username = self.username or unquote(parts.username or "")
        password = self.password if self.username else unquote(parts.password or "")
        if username:
            pair = base64.b64encode(f"{username}:{password}".encode()).decode()
            found["authorization"] = f"Basic {pair}"
        if self.tenant:
            found["securitytenant"] = self.tenant
        return found


def install(server: DashboardsServer, objects: Sequence[SavedObject]) -> int:
    """Write all objects over those with the same ids, and read them back; returns how many.

    Raises ``UnreachableError``, ``SettingError`` and ``ImportRefusedError``.
    """
    answer = _request(server, "/api/saved_objects/_import?overwrite=true", _multipart(ndjson(objects)))
    if problems := list(_refused(answer, objects)):
        raise ImportRefusedError("\n".join(problems))
    if problems := [problem for object_ in objects if (problem := _difference(server, object_))]:
        raise ImportRefusedError("\n".join(problems))
    return len(objects)


def _refused(answer: Any, objects: Sequence[SavedObject]) -> Iterator[str]:
    """Yield the complaints in the body of a 200, a line each."""
    if not isinstance(answer, dict) or "success" not in answer:
        yield "Dashboards did not answer the import as OpenSearch Dashboards 3 does: is something else at that URL?"
        return
    errors = answer.get("errors") or []
    for error in errors:
        yield f"{error.get('type')} {error.get('id')}: {_cause(error.get('error') or {})}"
    # Without errors as well: an answer that counts fewer objects than were sent.
    if not errors and (not answer["success"] or answer.get("successCount") != len(objects)):
        yield f"Dashboards took {answer.get('successCount')} of {len(objects)} objects and does not say why"


def _cause(error: dict[str, Any]) -> str:
    kind = str(error.get("type"))
    if kind == "missing_references":
        missing = (f"{reference.get('type')} {reference.get('id')}" for reference in error.get("references") or [])
        return f"it needs {', '.join(missing)}, which are not there"
    if kind == "unsupported_type":
        return "this Dashboards does not know objects of this type: is the plugin switched off?"
    if kind == "conflict":
        return "another object has its id and could not be replaced"
    return str(error.get("message") or kind)


def _difference(server: DashboardsServer, wanted: SavedObject) -> str:
    """Describe how the stored object differs from the wanted one; empty where they are equal."""
    name = f"{wanted.type} {wanted.id}"
    found = _request(server, f"/api/saved_objects/{quote(wanted.type)}/{quote(wanted.id, safe='')}")
    attributes = found.get("attributes", {}) if isinstance(found, dict) else {}
    later = _FILLED_IN_LATER.get(wanted.type, set())
    # Through JSON, where a tuple is a list.
    sent: dict[str, Any] = orjson.loads(orjson.dumps(wanted.attributes))
    other = sorted(key for key, value in sent.items() if key not in later and attributes.get(key) != value)
    if other:
        return f"{name}: Dashboards stored other {', '.join(other)} than were sent"
    references = {(entry.get("name"), entry.get("type"), entry.get("id")) for entry in found.get("references", [])}
    if references != {(reference.name, reference.type, reference.id) for reference in wanted.references}:
        return f"{name}: Dashboards stored other references than were sent"
    return ""


def _multipart(content: bytes) -> bytes:
    head = (
        f"--{_BOUNDARY}\r\n"
        # A name that does not end in .ndjson is refused.
        'Content-Disposition: form-data; name="file"; filename="schedulerlog.ndjson"\r\n'
        "Content-Type: application/ndjson\r\n\r\n"
    )
    return head.encode() + content + f"\r\n--{_BOUNDARY}--\r\n".encode()


def _request(server: DashboardsServer, path: str, body: bytes | None = None) -> Any:
    """Request the path and return the JSON of the answer, whatever it is."""
    headers = server.headers()
    if body is not None:
        headers["content-type"] = f"multipart/form-data; boundary={_BOUNDARY}"
    # The URL was checked to be one of HTTP, so no other scheme of urllib can be meant.
    shown, asked = without_user_info(server.url), path.partition("?")[0]
    request = urllib.request.Request(shown + path, data=body, headers=headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS, context=_context(server)) as answer:  # noqa: S310
            content = answer.read()
    except urllib.error.HTTPError as error:
        text = error.read(_SHOWN_CHARACTERS).decode("utf-8", "replace")
        step = _NEXT_STEP.get(error.code, "see the log of Dashboards")
        kind = SettingError if error.code in _NEXT_STEP else UnreachableError
        raise kind(f"Dashboards at {shown} answers {error.code} to {asked}: {step} ({text})") from None
    except (OSError, HTTPException) as error:
        cause = getattr(error, "reason", None) or error
        raise UnreachableError(f"Dashboards at {shown} does not answer: {cause}") from None
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        # A page to log in, for example.
        raise SettingError(f"Dashboards at {shown} answers {asked} with something else than JSON") from None


def _context(server: DashboardsServer) -> ssl.SSLContext | None:
    if urlsplit(server.url).scheme != "https":
        return None
    try:
        return tls.build_client_context(server.ca_file)
    except ValueError as error:
        raise SettingError(f"--ca-file: {error}") from None
