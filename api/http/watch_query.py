"""Query parameters of a watch, as Kubernetes names them, and the texts of its positions."""

import re
import struct
from collections.abc import Collection
from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field, model_validator
from starlette.requests import Request

from api.http.errors import BadRequestError, ExpiredError
from api.http.param_types import Query, WholeNumber
from api.http.sealing import POSITION_SEAL, decode_base64, encode_base64
from schemas.answers.base import WatchEvent

MAX_SECONDS: Final = 24 * 3600
LAST_EVENT_ID: Final = "last-event-id"
EVENT_STREAM: Final = "text/event-stream"
LINES: Final = "application/json;stream=watch"
"""Media type of Kubernetes' watches."""
WATCHED: Final = {
    media: {"schema": {"$ref": f"#/components/schemas/{WatchEvent.__name__}"}} for media in (LINES, EVENT_STREAM)
}
"""Content types of an answer with ``watch=true``; each line or event has this schema."""
_VERSION: Final = re.compile(r"[0-9]{1,19}(\.[0-9]{1,19})*", re.ASCII)
_SEALED: Final = re.compile(r"[A-Za-z0-9_-]{40,}", re.ASCII)
_MAX_PARTITIONS: Final = 10_000
_MAX_CHARACTERS: Final = 20 * _MAX_PARTITIONS
_GET_ONE: Final = "Leave it out, or send that of the last event."


def to_version(offsets: tuple[int, ...]) -> str:
    """Encode a position, the next offset of each partition, as resourceVersion.

    Where callers have rights it is encrypted, with the same length for all offsets: they are those of all namespaces,
    and would count the attempts of others.
    """
    if not POSITION_SEAL.is_secret:
        return ".".join(map(str, offsets))
    return encode_base64(POSITION_SEAL.encrypt(struct.pack(f">{len(offsets)}q", *offsets)))


def parse_version(text: str) -> tuple[int, ...]:
    """Parse a resourceVersion that ``_check_version`` passed.

    Raises ``ExpiredError`` for one that this API can't decrypt: the key of its certificate was replaced.
    """
    if not POSITION_SEAL.is_secret:
        return tuple(map(int, text.split(".")))
    sealed = decode_base64(text)
    packed = POSITION_SEAL.decrypt(sealed) if sealed else None
    if packed is None or len(packed) % 8:
        raise ExpiredError(
            "the resourceVersion is not of this API, or the key of its certificate was replaced",
            "Read the answer without watch again, and watch from now: without resourceVersion.",
        )
    return struct.unpack(f">{len(packed) // 8}q", packed)


def _check_version(text: str) -> str:
    pattern = _SEALED if POSITION_SEAL.is_secret else _VERSION
    # Kubernetes takes an empty one as none.
    is_version = text in ("", "0") or (
        len(text) <= _MAX_CHARACTERS and text.count(".") < _MAX_PARTITIONS and pattern.fullmatch(text)
    )
    if not is_version:
        raise ValueError(f"{text[:60]!a} is not a resourceVersion; a watch gives one with each event")
    return text


ResourceVersion = Annotated[str, AfterValidator(_check_version)]


class WatchParameters(Query):
    watch: bool = Field(
        False, description="Send changes as they happen: one line of JSON for each, or Server-Sent Events."
    )
    resource_version: ResourceVersion = Field(
        "",
        alias="resourceVersion",
        description="With watch: only changes after this event. Without it, or with 0, the watch begins with "
        "everything in memory, as ADDED.",
    )
    allow_watch_bookmarks: bool = Field(
        False,
        alias="allowWatchBookmarks",
        description="With watch: send BOOKMARK events from time to time. Server-Sent Events always have them.",
    )
    send_initial_events: bool = Field(
        True, alias="sendInitialEvents", description="With watch: `false` begins with the next change."
    )
    timeout_seconds: WholeNumber = Field(
        0,
        alias="timeoutSeconds",
        ge=0,
        le=MAX_SECONDS,
        description="With watch: seconds after which it ends; 0 for about an hour.",
    )

    @model_validator(mode="after")
    def _is_about_a_watch(self) -> Self:
        names = [name for name in WatchParameters.model_fields if name in self.model_fields_set and name != "watch"]
        if names and not self.watch:
            alias = WatchParameters.model_fields[names[0]].alias
            raise ValueError(f"{alias} is about watches: give watch=true with it")
        return self

    def refuse_with_watch(self, allowed: Collection[str]) -> None:
        """Raise ``BadRequestError`` for a parameter that a watch does not have; ``allowed`` names those that it has."""
        permitted = {*allowed, *WatchParameters.model_fields}
        fields = type(self).model_fields
        if wrong := sorted(name for name in self.model_fields_set if name in fields and name not in permitted):
            named = ", ".join(fields[name].alias or name for name in wrong)
            cause = f"parameter {named}: a watch does not have it"
            hint = f" It may be narrowed by {', '.join(sorted(allowed))}." if allowed else ""
            raise BadRequestError(cause, f"Leave it out with watch=true.{hint}")


def parse_offsets(request: Request, query: WatchParameters) -> tuple[int, ...] | None:
    """Parse the offsets up to which the caller has read; None for the beginning.

    Raises ``BadRequestError`` for a wrong ``Last-Event-ID``, and ``ExpiredError``.
    """
    text = query.resource_version
    if event_id := request.headers.get(LAST_EVENT_ID):
        try:
            text = _check_version(event_id)
        except ValueError as error:
            raise BadRequestError(f"header Last-Event-ID: {error}", _GET_ONE) from None
    return None if text in ("", "0") else parse_version(text)


def wants_event_stream(request: Request) -> bool:
    """Tell whether the caller accepts Server-Sent Events."""
    return EVENT_STREAM in request.headers.get("accept", "")
