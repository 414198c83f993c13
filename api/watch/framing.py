"""Events, bookmarks and errors as lines of JSON or as Server-Sent Events. Pure."""

from typing import Final, Literal

import orjson

from api.http.aggregated.discovery import GROUP, VERSION
from api.http.aggregated.translation import to_status
from api.http.errors import ApiError, describe_problem

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
API_VERSION: Final = f"{GROUP}/{VERSION}"
INITIAL_EVENTS_END: Final = {"k8s.io/initial-events-end": "true"}
"""The annotation of the bookmark behind the last initial event, as Kubernetes has it."""


def framed(kind: EventType, body: bytes, version: str, *, is_sse: bool) -> bytes:
    """One event; ``body`` is the JSON of its object, ``version`` its resourceVersion."""
    line = b'{"type":"' + kind.encode() + b'","object":' + body + b"}\n"
    if not is_sse:
        return line
    # Nobody resumes from an error.
    place = b"id: " + version.encode() + b"\n" if version else b""
    return place + b"data: " + line + b"\n"


def bookmark(kind: str, version: str, *, is_sse: bool, ends_initial: bool = False) -> bytes:
    """An event that only says how far the watch has come."""
    metadata = {"resourceVersion": version, **({"annotations": INITIAL_EVENTS_END} if ends_initial else {})}
    body = orjson.dumps({"kind": kind, "apiVersion": API_VERSION, "metadata": metadata})
    return framed("BOOKMARK", body, version, is_sse=is_sse)


def error_event(error: ApiError, *, is_sse: bool) -> bytes:
    """The last event of a watch that can't continue."""
    body = describe_problem(error.status, error.error, error.next_step, error.code).model_dump_json().encode()
    return framed("ERROR", to_status(error.status, body), "", is_sse=is_sse)
