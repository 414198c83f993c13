"""Sender of answers that name no pod of a namespace which the caller may not read.

Every answer passes here last, whatever handler wrote it, so a text that is added later is redacted by default. Handlers
still decide which objects, sums and lines an answer has.
"""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Final, Protocol
from urllib.parse import parse_qsl

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Scope, Send

from api.authority.access import Access
from api.authority.rights import list_pods
from engine.summaries.foreign_namespaces import hide_namespaces

ON_REDACTION_STATE: Final = "on_redaction"
"""Entry of a request's state: what to call if the answer is not the same for every reader of its pod."""


ALL_NAMESPACES: Final = ""
"""Namespace of a right to read the pods of all namespaces."""


class Namespaces(Protocol):
    """Namespaces with a record."""

    @property
    def names(self) -> AbstractSet[str]: ...


class RedactedAnswer:
    """Sender of one answer. A part of a stream is redacted by itself: each has complete events."""

    def __init__(self, send: Send, access: Access, namespaces: Namespaces, scope: Scope) -> None:
        self._send, self._access, self._namespaces, self._scope = send, access, namespaces, scope
        self._start: Message | None = None
        """Start of the answer, which waits for the body because it has the body's length."""
        self._is_error = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start, self._is_error = message, message["status"] >= 400
        elif message["type"] == "http.response.body":
            await self._send_body(message)
        else:
            await self._send(message)

    async def _send_body(self, message: Message) -> None:
        body = message.get("body", b"")
        redacted = await self._redact(body)
        if self._start:
            if redacted is not body:
                _fit_headers(MutableHeaders(raw=self._start["headers"]), len(redacted))
            await self._send(self._start)
            self._start = None
        await self._send({**message, "body": redacted})

    async def _redact(self, body: bytes) -> bytes:
        reads_all = ALL_NAMESPACES in self._access.readable
        redacted = body if reads_all else hide_namespaces(body, self._namespaces.names - self._list_shown())
        if redacted is body and not reads_all:
            return body
        on_redaction: Callable[[], None] | None = self._scope["state"].get(ON_REDACTION_STATE)
        if on_redaction:
            on_redaction()
        return body if reads_all or await self._access.check_right(list_pods()) else redacted

    def _list_shown(self) -> AbstractSet[str]:
        """List the namespaces that the answer may name."""
        if not self._is_error:
            return self._access.readable
        # A refusal repeats what was asked for, whether or not it exists.
        parameters = parse_qsl(self._scope["query_string"].decode("latin-1"))
        return self._access.readable | {*self._scope["path"].split("/"), *(value for _, value in parameters)}


def _fit_headers(headers: MutableHeaders, length: int) -> None:
    headers["Content-Length"] = str(length)
    # The tag is that of the answer with all names.
    if "etag" in headers:
        del headers["etag"]
