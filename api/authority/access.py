"""The rights of a request's caller, as its handler checks them."""

from collections.abc import Awaitable, Callable, Collection
from typing import Final

from starlette.requests import Request

from api.authority.credentials import Caller
from api.authority.reviewer import ALLOWED_SECONDS, Reviewer, ReviewerError
from api.authority.rights import ResourceRight, Right, get_cluster, list_pods
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
"""Identifies the sender of the request by an answer of at most that age in seconds. Raises ``ReviewerError``."""


def derive_needed_rights(cluster: str, home_cluster: str, *rights: Right) -> tuple[Right, ...]:
    """Derive the rights that a caller needs to have these rights in that cluster."""
    return rights if cluster == home_cluster else (get_cluster(cluster), *rights)


class Access:
    """Rights of one request's caller. All methods raise ``UnavailableError`` while rights can't be checked."""

    def __init__(
        self, caller: Caller | None, reviewer: Reviewer | None, home_cluster: str, identify: Identify | None = None
    ) -> None:
        """Hold the rights of ``caller``, who is None if unknown. Without a reviewer everybody may read everything.

        ``home_cluster`` is the cluster whose API server reviews callers: its Roles say nothing about other clusters.
        ``identify`` identifies the caller again, for answers that take longer than a request.
        """
        self._caller, self._reviewer, self._home_cluster = caller, reviewer, home_cluster
        self._identify = identify
        self.was_asked = False
        """True after the handler has checked a right. The gate holds back an answer without a check."""
        self.readable = set[str]()
        """Namespaces of which the caller may read pods, by the rights that were checked; empty text: all."""

    async def require(self, cluster: Cluster, *rights: Right, max_age: float = ALLOWED_SECONDS) -> None:
        """Raise ``ForbiddenError`` unless the caller has all of the rights in that cluster."""
        for right in derive_needed_rights(cluster.name, self._home_cluster, *rights):
            # Handlers check before they read, so that an answer about a missing object looks the same.
            if not await self.check_right(right, max_age):
                raise self.to_forbidden_error(str(right), NAME_A_NAMESPACE if right == list_pods() else NEXT_STEP)

    async def require_still(self, cluster: Cluster, *rights: Right, max_age: float) -> None:
        """Check as ``require``, and the caller too, by answers of the API server of at most ``max_age`` seconds.

        Also raises ``UnauthorizedError``, if the token or the certificate has ended since the request.
        """
        if self._identify:
            try:
                caller = await self._identify(max_age)
            except ReviewerError:
                raise to_unchecked_error() from None
            if caller != self._caller:
                raise to_unknown_caller_error()
        await self.require(cluster, *rights, max_age=max_age)

    async def allows(self, cluster: Cluster, right: Right) -> bool:
        """Tell whether the caller has the right in that cluster."""
        return await self.knows(cluster.name) and await self.check_right(right)

    async def knows(self, cluster: str) -> bool:
        """Tell whether the caller may read of that cluster at all. Every known caller may of the home cluster."""
        return cluster == self._home_cluster or await self.check_right(get_cluster(cluster))

    async def check_right(self, right: Right, max_age: float = ALLOWED_SECONDS) -> bool:
        """Check whether the caller has the right, and note that the handler has checked one."""
        self.was_asked = True
        if self._reviewer is None:
            return True
        try:
            is_allowed = self._caller is not None and await self._reviewer.may(self._caller, right, max_age)
        except ReviewerError:
            raise to_unchecked_error() from None
        if is_allowed and isinstance(right, ResourceRight) and right.resource == "pods":
            self.readable.add(right.namespace)
        return is_allowed

    def to_forbidden_error(self, what: str, next_step: str = NEXT_STEP) -> ForbiddenError:
        """Build the answer to a caller who may not do ``what``."""
        return ForbiddenError(f"{self.caller_name or 'nobody'} may not {what}", next_step)

    def allow_every_caller(self) -> None:
        """Allow the answer to every known caller, or to everybody if it is public."""
        self.was_asked = True

    @property
    def is_checked(self) -> bool:
        """True if a right of the caller may be refused, now or later."""
        return self._reviewer is not None

    @property
    def caller_name(self) -> str:
        """Name of the caller; empty if unknown, or if the API does not identify callers."""
        return self._caller.name if self._caller else ""


def to_unchecked_error() -> UnavailableError:
    """Build the answer to callers while the API server does not answer."""
    return UnavailableError(
        "the caller and their rights can't be checked now: the Kubernetes API server does not answer",
        "Try again in a few seconds; the API's log has the cause.",
    )


def to_unknown_caller_error() -> UnauthorizedError:
    """Build the answer to callers without valid credentials."""
    return UnauthorizedError(
        "the caller is unknown: the request has no valid bearer token and no valid client certificate",
        'Send "Authorization: Bearer TOKEN"; kubectl create token NAME --audience schedulerlog makes one.',
    )


def get_access(request: Request) -> Access:
    """Return the rights of the request's caller."""
    access: Access = request.state.access
    return access


MAX_NAMESPACES: Final = 20
"""Maximum number of namespaces that are checked one by one; pods of further namespaces count as unreadable."""


async def filter_readable_namespaces(access: Access, cluster: Cluster, namespaces: Collection[str]) -> frozenset[str]:
    """Filter the ``namespaces`` whose pods the caller may list."""
    if await access.allows(cluster, list_pods()):
        return frozenset(namespaces)
    checked_names = sorted(namespaces)[:MAX_NAMESPACES]
    return frozenset([name for name in checked_names if name and await access.allows(cluster, list_pods(name))])
