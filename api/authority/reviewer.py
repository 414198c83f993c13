"""TokenReview and SubjectAccessReview: the API server identifies the owner of a token and decides about their rights.

Only an answer that says yes in the form of its type is a permission; anything else is a failure.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from api.authority.credentials import Caller, read_expiry
from api.authority.remembered import BusyError, Remembered, TimedAnswer
from api.authority.review_api import REVIEW_SECONDS, Reviews
from api.authority.rights import Right
from runtime.kubernetes.errors import KubeApiError
from runtime.log_once import LoggedProblem

log = logging.getLogger(__name__)

ALLOWED_SECONDS: Final = 10.0
"""Time for which a right, and the owner of a token, is remembered."""
REFUSED_SECONDS: Final = 2.0
"""Time for which a refusal is remembered: shorter, because somebody may be granting the right now."""
_MAX_ANSWERS: Final = 10_000
_MAX_QUESTIONS: Final = 64

_TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
_ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class ReviewerError(Exception):
    """Failure of the API server to review a caller now; the message is for our log, not for the caller."""


class _Strict(BaseModel):
    """Model for which ``"true"`` is not ``true``."""

    model_config = ConfigDict(strict=True)


class _User(_Strict):
    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class _TokenStatus(_Strict):
    authenticated: bool = False
    # An API server leaves out fields that are false or empty, except this one: a status always has it.
    user: _User
    audiences: list[str] = []


class _AccessStatus(_Strict):
    allowed: bool
    denied: bool = False


Status = TypeVar("Status", _TokenStatus, _AccessStatus)
A = TypeVar("A")


class _Owner(NamedTuple):
    """Owner of a token, and its end, which need not be read again."""

    caller: Caller | None
    ends_at: float


class Reviewer:
    """Reviewer of callers by the API server; a token must have been issued for ``audience``."""

    def __init__(
        self,
        reviews: Reviews,
        audience: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        review_seconds: float = REVIEW_SECONDS,
    ) -> None:
        """Review by ``reviews``.

        ``clock`` never goes back; ``now``, in seconds since 1970, is compared with the ends of tokens.
        """
        self.clock, self.audience = clock, audience
        self._reviews, self._now, self._seconds = reviews, now, review_seconds
        self._callers: Remembered[bytes, _Owner] = Remembered(_MAX_ANSWERS, _MAX_QUESTIONS, clock)
        self._decisions: Remembered[tuple[Caller, Right], bool] = Remembered(_MAX_ANSWERS, _MAX_QUESTIONS, clock)
        self._trouble = LoggedProblem(
            lambda text: log.error("the API can't check callers and refuses them: %s", text),
            lambda _: log.info("the API checks callers again"),
        )

    async def identify(self, token: str, max_age: float = ALLOWED_SECONDS) -> Caller | None:
        """Identify the owner of the token; None if it is not valid for our audience. Raises ``ReviewerError``.

        ``max_age``: maximum age of the answer in seconds.
        """
        # Before memory, because a token that has ended proves nothing.
        if read_expiry(token) <= self._now():
            return None
        return (
            await _await_answer(self._callers.get(_digest(token), lambda: self._review_token(token), max_age))
        ).caller

    def remembers(self, token: str) -> bool:
        """Tell whether the owner of the token is known without a review."""
        return self._callers.has(_digest(token))

    def find_remembered_caller(self, token: str) -> Caller | None:
        """Return the owner of the token without a review; None if that would take one."""
        owner = self._callers.find(_digest(token))
        return owner.caller if owner and self._now() < owner.ends_at else None

    def knows_right(self, caller: Caller, right: Right) -> bool:
        """Tell whether it is known, without a review, that the caller has the right."""
        return self._decisions.find((caller, right)) is True

    async def may(self, caller: Caller, right: Right, max_age: float = ALLOWED_SECONDS) -> bool:
        """Check whether the caller has the right. Raises ``ReviewerError``."""
        key = (caller, right)
        return await _await_answer(self._decisions.get(key, lambda: self._review_access(caller, right), max_age))

    async def _review_token(self, token: str) -> TimedAnswer[_Owner]:
        spec = {"token": token, "audiences": [self.audience]}
        status = await self._create_review(_TOKEN_REVIEWS, "authentication", "TokenReview", spec, _TokenStatus)
        # An API server that knows no audiences answers without them, for any token.
        if not status.authenticated or not status.user.username or self.audience not in status.audiences:
            return TimedAnswer(_Owner(None, read_expiry(token)), REFUSED_SECONDS)
        user = status.user
        extra = tuple((key, tuple(values)) for key, values in sorted(user.extra.items()))
        caller = Caller(user.username, user.uid, tuple(user.groups), extra)
        return TimedAnswer(_Owner(caller, read_expiry(token)), ALLOWED_SECONDS)

    async def _review_access(self, caller: Caller, right: Right) -> TimedAnswer[bool]:
        spec = {
            "user": caller.name,
            "uid": caller.uid,
            "groups": list(caller.groups),
            "extra": {key: list(values) for key, values in caller.extra},
            **right.to_attributes(),
        }
        status = await self._create_review(_ACCESS_REVIEWS, "authorization", "SubjectAccessReview", spec, _AccessStatus)
        is_allowed = status.allowed and not status.denied
        return TimedAnswer(is_allowed, ALLOWED_SECONDS if is_allowed else REFUSED_SECONDS)

    async def _create_review(
        self, path: str, group: str, kind: str, spec: dict[str, Any], read: type[Status]
    ) -> Status:
        """Create a review and parse its status. Raises ``ReviewerError`` without a valid answer."""
        body = {"apiVersion": f"{group}.k8s.io/v1", "kind": kind, "spec": spec}
        try:
            # The client repeats a request if the server asks for it; the limit is for all of them together.
            async with asyncio.timeout(self._seconds):
                answer = await self._reviews.create(path, body)
            status = read.model_validate(answer["status"])
        except KubeApiError as error:
            # 401 and 403 are about this API: its service account may not create reviews.
            raise self._to_error(f"{error.status}: {error}" if error.status else str(error)) from error
        except TimeoutError as error:
            raise self._to_error(f"{kind}: no answer within {self._seconds:g} s") from error
        except (ValidationError, KeyError, TypeError):
            # Without the cause, which would quote the answer.
            raise self._to_error(f"unexpected response to a {kind} from the API server") from None
        self._trouble.note("")
        return status

    def _to_error(self, cause: str) -> ReviewerError:
        self._trouble.note(cause)
        return ReviewerError(cause)


def _digest(token: str) -> bytes:
    # Only the digest, so that no token stays in memory.
    return hashlib.sha256(token.encode()).digest()


async def _await_answer(answer: Awaitable[A]) -> A:
    try:
        return await answer
    except BusyError as error:
        raise ReviewerError(str(error)) from error
