"""What the handler of a request asks about its caller."""

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import Request

from api.authority.caller import Caller
from api.authority.reviewer import ALLOWED_SECONDS, Reviewer, ReviewerError
from api.authority.rights import Right, get_cluster, list_pods
from api.http.cluster import Cluster
from api.http.errors import ForbiddenError, UnauthorizedError, UnavailableError

NEXT_STEP: Final = (
    "Ask an administrator for a Role, or for nodes a ClusterRole, with this right in the API group schedulerlog.io."
)
NAME_A_NAMESPACE: Final = (
    "Name a namespace of which you may list the pods (namespace=, in a terminal -n), or ask an administrator for the "
    "right."
)


Identify = Callable[[float], Awaitable[Caller | None]]
"""Who sends the request now, by an answer that is at most so many seconds old. Raises ``ReviewerError``."""


def needed(cluster: str, home_cluster: str, *rights: Right) -> tuple[Right, ...]:
    """What a caller needs who is to have these rights in that cluster."""
    return rights if cluster == home_cluster else (get_cluster(cluster), *rights)


class Access:
    """The rights of one request's caller. All methods raise ``UnavailableError`` while rights can't be known."""

    def __init__(
        self, caller: Caller | None, reviewer: Reviewer | None, home_cluster: str, identify: Identify | None = None
    ) -> None:
        """Without a reviewer everybody may read everything; without a caller nobody is known.

        ``home_cluster`` is the one whose API server is asked: of another cluster its Roles say nothing. ``identify``
        finds the caller again, for answers that take longer than a request.
        """
        self._caller, self._reviewer, self._home_cluster = caller, reviewer, home_cluster
        self._identify = identify
        self.was_asked = False
        """Did the handler ask for a right? The gate holds back an answer for which it did not."""

    async def require(self, cluster: Cluster, *rights: Right, max_age: float = ALLOWED_SECONDS) -> None:
        """Raise ``ForbiddenError`` unless the caller has all of them in that cluster."""
        for right in needed(cluster.name, self._home_cluster, *rights):
            # Before anything is read, so that an answer about what does not exist looks the same.
            if not await self.has(right, max_age):
                raise self.forbidden(str(right), NAME_A_NAMESPACE if right == list_pods() else NEXT_STEP)

    async def require_still(self, cluster: Cluster, *rights: Right, max_age: float) -> None:
        """As ``require``, by answers of the API server that are newer than ``max_age`` seconds, also about who asks.

        Raises ``UnauthorizedError`` too, where the token or the certificate has ended since the request.
        """
        if self._identify:
            try:
                caller = await self._identify(max_age)
            except ReviewerError:
                raise cant_be_checked() from None
            if caller != self._caller:
                raise unknown_caller()
        await self.require(cluster, *rights, max_age=max_age)

    async def allows(self, cluster: Cluster, right: Right) -> bool:
        """Has the caller the right in that cluster?"""
        return await self.knows(cluster.name) and await self.has(right)

    async def knows(self, cluster: str) -> bool:
        """May the caller read of that cluster at all? Of the home cluster everybody may who is known."""
        return cluster == self._home_cluster or await self.has(get_cluster(cluster))

    async def has(self, right: Right, max_age: float = ALLOWED_SECONDS) -> bool:
        """Has the caller the right, whatever it is about?"""
        self.was_asked = True
        if self._reviewer is None:
            return True
        try:
            return self._caller is not None and await self._reviewer.may(self._caller, right, max_age)
        except ReviewerError:
            raise cant_be_checked() from None

    def forbidden(self, what: str, next_step: str = NEXT_STEP) -> ForbiddenError:
        """The answer to a caller who may not do ``what``."""
        return ForbiddenError(f"{self.caller_name or 'nobody'} may not {what}", next_step)

    def allow_every_caller(self) -> None:
        """What is answered is for everybody who is known, or public."""
        self.was_asked = True

    @property
    def is_checked(self) -> bool:
        """Can a right of the caller be refused, now or later?"""
        return self._reviewer is not None

    @property
    def caller_name(self) -> str:
        """Empty where nobody is known, or nobody has to be."""
        return self._caller.name if self._caller else ""


def cant_be_checked() -> UnavailableError:
    """The answer while the API server does not answer."""
    return UnavailableError(
        "who asks, or what they may read, can't be checked now: the Kubernetes API server does not answer",
        "Try again in a few seconds; the API's log has the cause.",
    )


def unknown_caller() -> UnauthorizedError:
    """The answer to who shows nothing by which the API server knows them."""
    return UnauthorizedError(
        "who asks is not known: there is no valid bearer token, and no valid client certificate",
        'Send "Authorization: Bearer TOKEN"; kubectl create token NAME --audience schedulerlog makes one.',
    )


def access_of(request: Request) -> Access:
    """The rights of the request's caller."""
    access: Access = request.state.access
    return access
