"""ASGI middleware that identifies the caller of each request, and holds back answers whose handler checked no right."""

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from enum import StrEnum
from functools import partial
from typing import Final, Protocol

from cachetools import TTLCache
from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.authority.access import Access, Identify, to_unchecked_error, to_unknown_caller_error
from api.authority.authenticating_proxy import AuthenticatingProxy
from api.authority.credentials import (
    Caller,
    PresentedCertificate,
    TooLongError,
    derive_caller,
    get_client_certificate,
    parse_bearer_token,
    read_expiry,
)
from api.authority.front_proxy import FrontProxy
from api.authority.issuer_keys import IssuerKeys, is_for_audience
from api.authority.redacted_answer import Namespaces, RedactedAnswer
from api.authority.reviewer import ALLOWED_SECONDS, Reviewer, ReviewerError
from api.http.aggregated.discovery import DOCUMENTS
from api.http.errors import RETRY_AFTER_SECONDS, to_error_response

log = logging.getLogger(__name__)

PUBLIC: Final = ("/healthz", "/readyz", "/ui/login", "/ui/logout")
"""Paths for callers without a token: health for kubelets, which says no more than alive and ready, and the login."""
PUBLIC_FILES: Final = "/ui/static/"
"""Styles and scripts of the login page, which are public."""

MAX_REFUSED_TOKENS: Final = 50
"""Maximum number of invalid tokens of one kind from one address within ``REFUSED_TOKENS_SECONDS``; each costs a review.
"""
REFUSED_TOKENS_SECONDS: Final = 10.0

LOCAL_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")
"""Names of the local machine in the header ``Host``."""

FOR_EVERY_CALLER: Final = ("/", "/docs", "/openapi.json", *DOCUMENTS)
"""Paths of documents about the API, which contain nothing of a cluster."""

FindCaller = Callable[[Scope, float], Awaitable[Caller | None]]
"""Identifies the sender of a request by an answer of at most that age in seconds.

Raises ``TooLongError``, ``SourceError`` and ``ReviewerError``.
"""


class Authorities(Protocol):
    """Authorities of the certificates that callers present."""

    @property
    def client_roots(self) -> Collection[bytes]:
        """Authorities of certificates that name their holder."""

    @property
    def proxies(self) -> Sequence[FrontProxy | AuthenticatingProxy]:
        """Proxies that name callers in headers, each with its authority."""


class TokenKind(StrEnum):
    """Kind of a token by its text. Guesses of one kind keep no token of another kind out."""

    SIGNED = "signed"
    """Signed by the cluster for our audience, which nobody can guess."""
    ADDRESSED = "addressed"
    """Our audience in its claims, as tokens of other issuers have it."""
    OTHER = "other"


class SourceError(Exception):
    """Refusal of an address that has sent too many invalid tokens: its other tokens are not reviewed for a while."""


class CallerCredentials:
    """Identification by the certificate of the connection, or else by the token in the header ``Authorization``."""

    def __init__(
        self,
        reviewer: Reviewer,
        authorities: Authorities | None = None,
        now: Callable[[], float] = time.time,
        keys: IssuerKeys | None = None,
    ) -> None:
        self._reviewer, self._authorities, self._now, self._keys = reviewer, authorities, now, keys
        # Each is a list of one number: to count it up does not extend the entry's life.
        self._refused: TTLCache[tuple[str, TokenKind], list[int]] = TTLCache(
            10_000, REFUSED_TOKENS_SECONDS, timer=reviewer.clock
        )
        """Source and kind of token to the number of refused tokens."""

    def find_remembered(self, scope: Scope) -> Caller | None:
        """Identify the sender without a question to the API server; None if that would take one."""
        if certificate := get_client_certificate(scope):
            return self._identify_by_certificate(certificate, scope)
        try:
            token = parse_bearer_token(scope["headers"])
        except TooLongError:
            return None
        return self._reviewer.find_remembered_caller(token) if token else None

    async def __call__(self, scope: Scope, max_age: float) -> Caller | None:
        # With both credentials only the certificate counts: rights of two callers must not add up.
        if certificate := get_client_certificate(scope):
            return self._identify_by_certificate(certificate, scope)
        token = parse_bearer_token(scope["headers"])
        if token is None:
            return None
        # Remembered callers are answered whatever others send, and a token that has ended costs no review.
        if self._reviewer.remembers(token) or read_expiry(token) <= self._now():
            return await self._reviewer.identify(token, max_age)
        # Callers behind one address share it, so the kinds are counted apart.
        source = (scope.get("client") or ("",))[0]
        is_suspect = any((source, kind) in self._refused for kind in TokenKind)
        # Skipped for an address without an invalid token, which is almost every address.
        kind = self._classify(token) if is_suspect else None
        refused = self._refused.get((source, kind)) if kind else None
        if refused and refused[0] >= MAX_REFUSED_TOKENS:
            raise SourceError
        caller = await self._reviewer.identify(token, max_age)
        if caller is None:
            self._refused.setdefault((source, kind or self._classify(token)), [0])[0] += 1
        return caller

    def _classify(self, token: str) -> TokenKind:
        if self._keys and self._keys.has_signed(token, self._now()):
            return TokenKind.SIGNED
        return TokenKind.ADDRESSED if is_for_audience(token, self._reviewer.audience) else TokenKind.OTHER

    def _identify_by_certificate(self, certificate: PresentedCertificate, scope: Scope) -> Caller | None:
        # By the authority that the handshake used: headers count only with a proxy's certificate, which itself names no
        # caller. After a change of authorities an open connection may belong to none of them.
        authorities = self._authorities
        if authorities is None:
            return None
        now, root = self._now(), certificate.root
        callers = [
            proxy.identify_caller(certificate, scope["headers"], now)
            for proxy in authorities.proxies
            if root in proxy.roots
        ]
        if root in authorities.client_roots:
            callers.append(derive_caller(certificate, now))
        # Of two authorities in one, after a change of a file, each of its holders could name any user.
        return callers[0] if len(callers) == 1 else None


class Gate:
    """Middleware around ``app``. Without ``find_caller`` everybody may read everything. ``hosts``: accepted host names;
    empty: all.
    """

    def __init__(
        self,
        app: ASGIApp,
        find_caller: FindCaller | None,
        reviewer: Reviewer | None,
        home_cluster: str,
        namespaces: Namespaces,
        hosts: Collection[str] = (),
    ) -> None:
        self._app, self._find_caller, self._reviewer = app, find_caller, reviewer
        self._home_cluster, self._namespaces, self._hosts = home_cluster, namespaces, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            # No path here is a WebSocket.
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        access = await self._identify(scope)
        if isinstance(access, Response):
            await access(scope, receive, send)
            return
        scope.setdefault("state", {})["access"] = access
        if scope["path"] in FOR_EVERY_CALLER:
            access.allow_every_caller()
        is_held_back = False
        # The login repeats the address that its caller asked for, and says nothing of the cluster.
        is_document = scope["path"] in (*FOR_EVERY_CALLER, *PUBLIC) or scope["path"].startswith(PUBLIC_FILES)
        if access.is_checked and not is_document:
            send = RedactedAnswer(send, access, self._namespaces, scope).send

        async def send_what_was_asked_for(message: Message) -> None:
            nonlocal is_held_back
            if message["type"] == "http.response.start" and message["status"] < 400 and not access.was_asked:
                is_held_back = True
                log.error("the handler of %s answered without checking a right: a defect", scope["path"][:200])
                refusal = to_error_response(403, "nobody may read this path", "Report it: its handler checks no right.")
                await refusal(scope, receive, send)
            if not is_held_back:
                await send(self._mark_private(message))

        await self._app(scope, receive, send_what_was_asked_for)

    def _mark_private(self, message: Message) -> Message:
        """Mark the answer that a message starts as private, if callers differ."""
        if message["type"] == "http.response.start" and self._find_caller:
            headers = MutableHeaders(raw=message["headers"])
            headers.add_vary_header("Authorization")
            headers["Cache-Control"] = ", ".join(filter(None, ("private", headers.get("Cache-Control"))))
        return message

    async def _identify(self, scope: Scope) -> Access | Response:
        """Identify the caller and return their rights, or the refusal of the request."""
        if not is_for_host(scope, self._hosts):
            return _refuse_host(self._hosts)
        if self._find_caller is None:
            return self._grant(None)
        is_public = scope["path"] in PUBLIC or scope["path"].startswith(PUBLIC_FILES)
        try:
            identify = partial(self._find_caller, scope)
            caller = await identify(ALLOWED_SECONDS)
        except TooLongError:
            return to_error_response(431, "the header Authorization is too long", "Send the token that you were given.")
        except SourceError:
            return to_error_response(
                429,
                f"{MAX_REFUSED_TOKENS} tokens from this address were invalid, so the API reviews no other one for now",
                f"Try again after {REFUSED_TOKENS_SECONDS:.0f} s, with a valid token.",
                {"Retry-After": f"{REFUSED_TOKENS_SECONDS:.0f}"},
            )
        except ReviewerError:
            if is_public:
                return self._grant(None)
            away = to_unchecked_error()
            return to_error_response(away.status, away.error, away.next_step, {"Retry-After": RETRY_AFTER_SECONDS})
        return self._grant(caller, identify) if caller or is_public else _refuse_unknown_caller()

    def _grant(self, caller: Caller | None, identify: Identify | None = None) -> Access:
        return Access(caller, self._reviewer, self._home_cluster, identify)


def _refuse_unknown_caller() -> Response:
    unknown = to_unknown_caller_error()
    headers = {"WWW-Authenticate": 'Bearer realm="schedulerlog"'}
    return to_error_response(unknown.status, unknown.error, unknown.next_step, headers)


def is_for_host(scope: Scope, hosts: Collection[str]) -> bool:
    """Tell whether the request is for one of these host names; without names, always."""
    if not hosts:
        return True
    names = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"]
    return len(names) == 1 and _without_port(names[0]) in hosts


def _refuse_host(hosts: Collection[str]) -> Response:
    """Refuse a request to another host name, which a page of the web may have sent here (DNS rebinding)."""
    return to_error_response(
        421, "this address is not answered under that name", f"Use one of {', '.join(sorted(hosts))}."
    )


def _without_port(host: str) -> str:
    # An IPv6 address is in brackets: [::1]:9090.
    return host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]
