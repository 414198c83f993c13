"""TokenReview and SubjectAccessReview: the API server says who a token belongs to, and what they may do.

An answer is believed only where it says yes in the words of its type; anything else is a failure, and no permission.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from api.authority.caller import Caller
from api.authority.remembered import BusyError, Remembered, TimedAnswer
from api.authority.review_api import REVIEW_SECONDS, Reviews
from api.authority.rights import Right
from api.authority.tokens import expires_at
from runtime.kubernetes.errors import KubeApiError
from runtime.log_once import LoggedProblem

log = logging.getLogger(__name__)

ALLOWED_SECONDS: Final = 10.0
"""How long a right, and who a token belongs to, is remembered."""
REFUSED_SECONDS: Final = 2.0
"""How long a refusal is remembered: shorter, because somebody may be granting the right now."""
_MAX_ANSWERS: Final = 10_000
_MAX_QUESTIONS: Final = 64

_TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
_ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class ReviewerError(Exception):
    """The API server can't say now who asks or what they may do; the message is for our own log, not for the caller."""


class _Strict(BaseModel):
    """``"true"`` is not ``true``."""

    model_config = ConfigDict(strict=True)


class _User(_Strict):
    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class _TokenStatus(_Strict):
    authenticated: bool = False
    # An API server leaves out what is false or empty, but this: without it the status is none.
    user: _User
    audiences: list[str] = []


class _AccessStatus(_Strict):
    allowed: bool
    denied: bool = False


Status = TypeVar("Status", _TokenStatus, _AccessStatus)
A = TypeVar("A")


class _Owner(NamedTuple):
    """Who a token belongs to, and when it ends, so that it is not read again."""

    caller: Caller | None
    ends_at: float


class Reviewer:
    """Asks the API server; ``audience`` is what a token must have been issued for."""

    def __init__(
        self,
        reviews: Reviews,
        audience: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        review_seconds: float = REVIEW_SECONDS,
    ) -> None:
        """``clock`` never goes back; ``now`` is compared with the ends of tokens, in seconds since 1970."""
        self.clock = clock
        self._reviews, self._audience, self._now, self._seconds = reviews, audience, now, review_seconds
        self._callers: Remembered[bytes, _Owner] = Remembered(_MAX_ANSWERS, _MAX_QUESTIONS, clock)
        self._decisions: Remembered[tuple[Caller, Right], bool] = Remembered(_MAX_ANSWERS, _MAX_QUESTIONS, clock)
        self._trouble = LoggedProblem(
            lambda text: log.error("callers can't be checked and are refused: %s", text),
            lambda _: log.info("callers are checked again"),
        )

    async def caller_of(self, token: str, max_age: float = ALLOWED_SECONDS) -> Caller | None:
        """Who the token belongs to; None for one that is not valid for our audience. Raises ``ReviewerError``.

        ``max_age``: how many seconds old the answer may be.
        """
        # Whatever is remembered: a token that has ended proves nothing.
        if expires_at(token) <= self._now():
            return None
        return (
            await _unless_busy(self._callers.get(_digest(token), lambda: self._review_token(token), max_age))
        ).caller

    def remembers(self, token: str) -> bool:
        """Is it known who the token belongs to, without a review?"""
        return self._callers.has(_digest(token))

    def known_caller(self, token: str) -> Caller | None:
        """As ``caller_of``, without a review; None too where that would take one."""
        owner = self._callers.find(_digest(token))
        return owner.caller if owner and self._now() < owner.ends_at else None

    def knows_right(self, caller: Caller, right: Right) -> bool:
        """Is it known without a review that the caller has the right?"""
        return self._decisions.find((caller, right)) is True

    async def may(self, caller: Caller, right: Right, max_age: float = ALLOWED_SECONDS) -> bool:
        """Raises ``ReviewerError``."""
        key = (caller, right)
        return await _unless_busy(self._decisions.get(key, lambda: self._review_access(caller, right), max_age))

    async def _review_token(self, token: str) -> TimedAnswer[_Owner]:
        spec = {"token": token, "audiences": [self._audience]}
        status = await self._status(_TOKEN_REVIEWS, "authentication", "TokenReview", spec, _TokenStatus)
        # An API server that knows no audiences answers without them, for any token.
        if not status.authenticated or not status.user.username or self._audience not in status.audiences:
            return TimedAnswer(_Owner(None, expires_at(token)), REFUSED_SECONDS)
        user = status.user
        extra = tuple((key, tuple(values)) for key, values in sorted(user.extra.items()))
        caller = Caller(user.username, user.uid, tuple(user.groups), extra)
        return TimedAnswer(_Owner(caller, expires_at(token)), ALLOWED_SECONDS)

    async def _review_access(self, caller: Caller, right: Right) -> TimedAnswer[bool]:
        spec = {
            "user": caller.name,
            "uid": caller.uid,
            "groups": list(caller.groups),
            "extra": {key: list(values) for key, values in caller.extra},
            **right.attributes(),
        }
        status = await self._status(_ACCESS_REVIEWS, "authorization", "SubjectAccessReview", spec, _AccessStatus)
        is_allowed = status.allowed and not status.denied
        return TimedAnswer(is_allowed, ALLOWED_SECONDS if is_allowed else REFUSED_SECONDS)

    async def _status(self, path: str, group: str, kind: str, spec: dict[str, Any], read: type[Status]) -> Status:
        """What the API server made of a review. Whatever is no answer is a ``ReviewerError``."""
        body = {"apiVersion": f"{group}.k8s.io/v1", "kind": kind, "spec": spec}
        try:
            # The client repeats a request where the server asks for it; all of it together may not take longer.
            async with asyncio.timeout(self._seconds):
                answer = await self._reviews.create(path, body)
            status = read.model_validate(answer["status"])
        except KubeApiError as error:
            # 401 and 403 are about ourselves: our own service account may not ask.
            raise self._failed(f"{error.status}: {error}" if error.status else str(error)) from error
        except TimeoutError as error:
            raise self._failed(f"{kind}: no answer within {self._seconds:g} s") from error
        except (ValidationError, KeyError, TypeError):
            # Without its cause, which would show the answer.
            raise self._failed(f"the answer to a {kind} is none of the API server's") from None
        self._trouble.note("")
        return status

    def _failed(self, cause: str) -> ReviewerError:
        self._trouble.note(cause)
        return ReviewerError(cause)


def _digest(token: str) -> bytes:
    # No token is kept.
    return hashlib.sha256(token.encode()).digest()


async def _unless_busy(asked: Awaitable[A]) -> A:
    try:
        return await asked
    except BusyError as error:
        raise ReviewerError(str(error)) from error
