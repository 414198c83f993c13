"""Events, bookmarks and errors as lines of JSON or as Server-Sent Events. Pure."""

from typing import Final, Literal

import orjson

from api.http.aggregated.discovery import GROUP, VERSION
from api.http.aggregated.translation import to_status
from api.http.errors import ApiError, describe_problem

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
API_VERSION: Final = f"{GROUP}/{VERSION}"
INITIAL_EVENTS_END: Final = {"k8s.io/initial-events-end": "true"}
"""Annotation of the bookmark after the last initial event, as in Kubernetes."""


def encode_event(kind: EventType, body: bytes, version: str, *, is_sse: bool) -> bytes:
    """Encode one event; ``body`` is the JSON of its object, ``version`` its resourceVersion."""
    line = b'{"type":"' + kind.encode() + b'","object":' + body + b"}\n"
    if not is_sse:
        return line
    # Errors have no version: a client can't resume from them.
    identifier = b"id: " + version.encode() + b"\n" if version else b""
    return identifier + b"data: " + line + b"\n"


def encode_bookmark(kind: str, version: str, *, is_sse: bool, ends_initial: bool = False) -> bytes:
    """Encode an event that only has the watch's position."""
    metadata = {"resourceVersion": version, **({"annotations": INITIAL_EVENTS_END} if ends_initial else {})}
    body = orjson.dumps({"kind": kind, "apiVersion": API_VERSION, "metadata": metadata})
    return encode_event("BOOKMARK", body, version, is_sse=is_sse)


def encode_error(error: ApiError, *, is_sse: bool) -> bytes:
    """Encode the last event of a watch that can't continue."""
    body = describe_problem(error.status, error.error, error.next_step, error.code).model_dump_json().encode()
    return encode_event("ERROR", to_status(error.status, body), "", is_sse=is_sse)
