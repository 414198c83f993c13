"""Import of saved objects into OpenSearch Dashboards, which reads each of them back.

Dashboards answers 200 also if it refuses single objects: only the body says whether it stored all of them.
"""

import base64
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

import orjson

from deploy.dashboards.saved_objects import SavedObject, to_ndjson
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
    """Base URL without a slash at the end."""
    username: str = ""
    password: str = ""
    tenant: str = ""
    ca_file: Path | None = None

    @property
    def user(self) -> str:
        """Name of the user; the URL may contain it and the password instead, encoded for it."""
        return self.username or unquote(urlsplit(self.url).username or "")

    def build_headers(self) -> dict[str, str]:
        # With any value; without the header Dashboards refuses every request that writes.
        headers = {"osd-xsrf": "true", "accept": "application/json"}
        if user := self.user:
            password = self.password if self.username else unquote(urlsplit(self.url).password or "")
            pair = base64.b64encode(f"{user}:{password}".encode()).decode()
            headers["authorization"] = f"Basic {pair}"
        if self.tenant:
            headers["securitytenant"] = self.tenant
        return headers


def install(server: DashboardsServer, objects: Sequence[SavedObject]) -> int:
    """Install all objects over existing ones with the same ids, read them back, and return their number.

    Raises ``UnreachableError``, ``SettingError`` and ``ImportRefusedError``.
    """
    answer = _request(server, "/api/saved_objects/_import?overwrite=true", _encode_multipart(to_ndjson(objects)))
    if problems := list(_list_refusals(answer, objects)):
        raise ImportRefusedError("\n".join(problems))
    if problems := [problem for object_ in objects if (problem := _find_difference(server, object_))]:
        raise ImportRefusedError("\n".join(problems))
    return len(objects)


def _list_refusals(answer: Any, objects: Sequence[SavedObject]) -> Iterator[str]:
    """List the refusals in the body of a 200, a line each."""
    if not isinstance(answer, dict) or "success" not in answer:
        yield "Dashboards did not answer the import as OpenSearch Dashboards 3 does: is something else at that URL?"
        return
    errors = answer.get("errors") or []
    for error in errors:
        yield f"{error.get('type')} {error.get('id')}: {_format_cause(error.get('error') or {})}"
    # Also without errors: an answer may count fewer objects than were sent.
    if not errors and (not answer["success"] or answer.get("successCount") != len(objects)):
        yield f"Dashboards took {answer.get('successCount')} of {len(objects)} objects and does not say why"


def _format_cause(error: dict[str, Any]) -> str:
    kind = str(error.get("type"))
    if kind == "missing_references":
        missing = (f"{reference.get('type')} {reference.get('id')}" for reference in error.get("references") or [])
        return f"it needs {', '.join(missing)}, which are not there"
    if kind == "unsupported_type":
        return "this Dashboards does not know objects of this type: is the plugin switched off?"
    if kind == "conflict":
        return "another object has its id and could not be replaced"
    return str(error.get("message") or kind)


def _find_difference(server: DashboardsServer, wanted: SavedObject) -> str:
    """Find the difference between the stored and the wanted object; empty if they are equal."""
    name = f"{wanted.type} {wanted.id}"
    stored = _request(server, f"/api/saved_objects/{quote(wanted.type)}/{quote(wanted.id, safe='')}")
    attributes = stored.get("attributes", {}) if isinstance(stored, dict) else {}
    later = _FILLED_IN_LATER.get(wanted.type, set())
    # Through JSON, where a tuple is a list.
    sent: dict[str, Any] = orjson.loads(orjson.dumps(wanted.attributes))
    other = sorted(key for key, value in sent.items() if key not in later and attributes.get(key) != value)
    if other:
        return f"{name}: Dashboards stored other {', '.join(other)} than were sent"
    references = {(entry.get("name"), entry.get("type"), entry.get("id")) for entry in stored.get("references", [])}
    if references != {(reference.name, reference.type, reference.id) for reference in wanted.references}:
        return f"{name}: Dashboards stored other references than were sent"
    return ""


def _encode_multipart(content: bytes) -> bytes:
    head = (
        f"--{_BOUNDARY}\r\n"
        # Dashboards refuses a name that does not end with .ndjson.
        'Content-Disposition: form-data; name="file"; filename="schedulerlog.ndjson"\r\n'
        "Content-Type: application/ndjson\r\n\r\n"
    )
    return head.encode() + content + f"\r\n--{_BOUNDARY}--\r\n".encode()


def _request(server: DashboardsServer, path: str, body: bytes | None = None) -> Any:
    """Request the path and return the JSON of the answer, unchecked."""
    headers = server.build_headers()
    if body is not None:
        headers["content-type"] = f"multipart/form-data; boundary={_BOUNDARY}"
    # The settings have checked the scheme of the URL, so urllib opens only HTTP.
    url, path_without_query = without_user_info(server.url), path.partition("?")[0]
    request = urllib.request.Request(url + path, data=body, headers=headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS, context=_build_context(server)) as answer:  # noqa: S310
            content = answer.read()
    except urllib.error.HTTPError as error:
        text = error.read(_SHOWN_CHARACTERS).decode("utf-8", "replace")
        step = _NEXT_STEP.get(error.code, "see the log of Dashboards")
        if error.code == HTTPStatus.UNAUTHORIZED and server.user:
            step = f"it refuses user {server.user} with this password: correct either"
        kind = SettingError if error.code in _NEXT_STEP else UnreachableError
        raise kind(f"Dashboards at {url} answers {error.code} to {path_without_query}: {step} ({text})") from None
    except (OSError, HTTPException) as error:
        cause = getattr(error, "reason", None) or error
        raise UnreachableError(f"Dashboards at {url} does not answer: {cause}") from None
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        # A page to log in, for example.
        raise SettingError(f"Dashboards at {url} answers {path_without_query} with something else than JSON") from None


def _build_context(server: DashboardsServer) -> ssl.SSLContext | None:
    if urlsplit(server.url).scheme != "https":
        return None
    try:
        return tls.build_client_context(server.ca_file)
    except ValueError as error:
        raise SettingError(f"--ca-file: {error}") from None
