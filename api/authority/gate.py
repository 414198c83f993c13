"""ASGI middleware: finds the caller of each request, and holds back what was answered without asking for rights."""

import logging
import time
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Final, Protocol

from cachetools import TTLCache
from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.authority.access import Access, Identify, cant_be_checked, unknown_caller
from api.authority.caller import Caller
from api.authority.certificates import ShownCertificate, caller_named, client_certificate
from api.authority.front_proxy import FrontProxy
from api.authority.reviewer import ALLOWED_SECONDS, Reviewer, ReviewerError
from api.authority.tokens import TooLongError, bearer_token
from api.http.aggregated.discovery import DOCUMENTS
from api.http.errors import RETRY_AFTER_SECONDS, to_error_response

log = logging.getLogger(__name__)

PUBLIC: Final = ("/healthz", "/readyz", "/ui/login", "/ui/logout")
"""What a kubelet reads, which has no token: it says whether the process is alive and ready, and no more. And the page
where a browser gets one."""
PUBLIC_FILES: Final = "/ui/static/"
"""How this page looks; the same for everybody."""

MAX_REFUSED_TOKENS: Final = 50
"""From one address, within ``REFUSED_TOKENS_SECONDS``; each of them costs a review."""
REFUSED_TOKENS_SECONDS: Final = 10.0

LOCAL_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")
"""Names of the machine itself, as the header ``Host`` writes them."""

FOR_EVERY_CALLER: Final = ("/", "/docs", "/openapi.json", *DOCUMENTS)
"""What describes the API, and holds nothing of a cluster."""

FindCaller = Callable[[Scope, float], Awaitable[Caller | None]]
"""Who sends a request, by an answer of at most that age in seconds.

Raises ``TooLongError``, ``SourceError`` and ``ReviewerError``.
"""


class Authorities(Protocol):
    """Whose certificates name callers."""

    @property
    def client_roots(self) -> Collection[bytes]:
        """The authorities of certificates that name their own holder."""

    @property
    def front_proxy(self) -> FrontProxy | None:
        """The API server, which names callers in headers; None where it is not trusted."""


class SourceError(Exception):
    """The source has sent so many tokens that are not valid that no other one is looked at for a while."""


class CallerCredentials:
    """Knows a caller by the certificate of the connection, else by the token in the header ``Authorization``."""

    def __init__(
        self,
        reviewer: Reviewer,
        authorities: Authorities | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._reviewer, self._authorities, self._now = reviewer, authorities, now
        # A list of one number, which is counted up without a change of when it is forgotten.
        self._refused: TTLCache[str, list[int]] = TTLCache(10_000, REFUSED_TOKENS_SECONDS, timer=reviewer.clock)
        """How many tokens of a source were refused."""

    def known(self, scope: Scope) -> Caller | None:
        """As the call, without a question to the API server; None too where that would take one."""
        if certificate := client_certificate(scope):
            return self._shown_by(certificate, scope)
        try:
            token = bearer_token(scope["headers"])
        except TooLongError:
            return None
        return self._reviewer.known_caller(token) if token else None

    async def __call__(self, scope: Scope, max_age: float) -> Caller | None:
        # The certificate alone counts where both are there: rights of two callers must not add up.
        if certificate := client_certificate(scope):
            return self._shown_by(certificate, scope)
        token = bearer_token(scope["headers"])
        if token is None:
            return None
        # Callers behind one address share it: those who are remembered are answered whatever others send.
        source = (scope.get("client") or ("",))[0]
        refused = self._refused.get(source)
        # Not asked of an address whose tokens were all valid, which is every address but for mistakes.
        costs_review = refused is None or not self._reviewer.remembers(token)
        if refused and costs_review and refused[0] >= MAX_REFUSED_TOKENS:
            raise SourceError
        caller = await self._reviewer.caller_of(token, max_age)
        if caller is None and costs_review:
            self._refused.setdefault(source, [0])[0] += 1
        return caller

    def _shown_by(self, certificate: ShownCertificate, scope: Scope) -> Caller | None:
        # By the authority that the handshake has used: headers count with the API server's certificate alone, and that
        # certificate names no caller of its own. After a change of authorities an open connection may be of neither.
        authorities = self._authorities
        if authorities is None:
            return None
        proxy = authorities.front_proxy
        is_of_client = certificate.root in authorities.client_roots
        if proxy and certificate.root in proxy.roots:
            # Of both, after the file of clients' authorities was changed: its holder could name any user.
            return None if is_of_client else proxy.caller(certificate, scope["headers"], self._now())
        return caller_named(certificate, self._now()) if is_of_client else None


class Gate:
    """Wraps ``app``. ``find_caller`` None: everybody may read everything. ``hosts``: under which names; empty: all."""

    def __init__(
        self,
        app: ASGIApp,
        find_caller: FindCaller | None,
        reviewer: Reviewer | None,
        home_cluster: str,
        hosts: Collection[str] = (),
    ) -> None:
        self._app, self._find_caller, self._reviewer = app, find_caller, reviewer
        self._home_cluster, self._hosts = home_cluster, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            # No path here is a WebSocket.
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        access = await self._access(scope)
        if isinstance(access, Response):
            await access(scope, receive, send)
            return
        scope.setdefault("state", {})["access"] = access
        if scope["path"] in FOR_EVERY_CALLER:
            access.allow_every_caller()
        is_held_back = False

        async def send_what_was_asked_for(message: Message) -> None:
            nonlocal is_held_back
            if message["type"] == "http.response.start" and message["status"] < 400 and not access.was_asked:
                is_held_back = True
                log.error("%s is answered without asking for rights: a defect of its handler", scope["path"][:200])
                refusal = to_error_response(403, "nobody may read this path", "Report it: no right is named for it.")
                await refusal(scope, receive, send)
            if not is_held_back:
                await send(self._for_caller(message))

        await self._app(scope, receive, send_what_was_asked_for)

    def _for_caller(self, message: Message) -> Message:
        """The message; its answer is for this caller alone, where callers differ."""
        if message["type"] == "http.response.start" and self._find_caller:
            headers = MutableHeaders(raw=message["headers"])
            headers.add_vary_header("Authorization")
            headers["Cache-Control"] = ", ".join(filter(None, ("private", headers.get("Cache-Control"))))
        return message

    async def _access(self, scope: Scope) -> Access | Response:
        """What the caller may ask for, or why nothing."""
        if not is_for_one_of(scope, self._hosts):
            return _of_other_host(self._hosts)
        if self._find_caller is None:
            return self._of(None)
        is_public = scope["path"] in PUBLIC or scope["path"].startswith(PUBLIC_FILES)
        try:
            identify = partial(self._find_caller, scope)
            caller = await identify(ALLOWED_SECONDS)
        except TooLongError:
            return to_error_response(431, "the header Authorization is too long", "Send the token that you were given.")
        except SourceError:
            return to_error_response(
                429,
                f"{MAX_REFUSED_TOKENS} tokens from this address were not valid, so no other one is looked at for now",
                f"Try again after {REFUSED_TOKENS_SECONDS:.0f} s, with a valid token.",
                {"Retry-After": f"{REFUSED_TOKENS_SECONDS:.0f}"},
            )
        except ReviewerError:
            if is_public:
                return self._of(None)
            away = cant_be_checked()
            return to_error_response(away.status, away.error, away.next_step, {"Retry-After": RETRY_AFTER_SECONDS})
        return self._of(caller, identify) if caller or is_public else _unknown()

    def _of(self, caller: Caller | None, identify: Identify | None = None) -> Access:
        return Access(caller, self._reviewer, self._home_cluster, identify)


def _unknown() -> Response:
    unknown = unknown_caller()
    headers = {"WWW-Authenticate": 'Bearer realm="schedulerlog"'}
    return to_error_response(unknown.status, unknown.error, unknown.next_step, headers)


def is_for_one_of(scope: Scope, hosts: Collection[str]) -> bool:
    """Is the request sent to one of these names? Without names, to any is right."""
    if not hosts:
        return True
    names = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"]
    return len(names) == 1 and _without_port(names[0]) in hosts


def _of_other_host(hosts: Collection[str]) -> Response:
    """The refusal of a request to another name: that of a page of the web which leads here (DNS rebinding)."""
    return to_error_response(
        421, "this address is not answered under that name", f"Use one of {', '.join(sorted(hosts))}."
    )


def _without_port(host: str) -> str:
    # An IPv6 address is in brackets: [::1]:9090.
    return host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]
