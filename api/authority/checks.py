"""Assembly of the middleware that identifies callers and checks their rights, by the settings."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from starlette.middleware import Middleware
from starlette.types import Scope

from api.authority.access import derive_needed_rights
from api.authority.authenticating_proxy import AuthenticatingProxy
from api.authority.authorities import ClientAuthorities
from api.authority.gate import LOCAL_NAMES, CallerCredentials, Gate, is_for_host
from api.authority.issuer_keys import IssuerKeys
from api.authority.redacted_answer import Namespaces
from api.authority.review_api import ReviewApi
from api.authority.reviewer import Reviewer
from api.authority.rights import Right
from api.settings import Settings
from runtime.http.server_tls import Certificates
from runtime.kubernetes.credentials import choose_loader


def create_authenticating_proxy(settings: Settings) -> AuthenticatingProxy:
    """Create the proxy of the settings, without its authority, which is followed."""
    return AuthenticatingProxy(
        roots=frozenset(),
        names=frozenset(filter(None, settings.api_proxy_names.split(","))),
        user_header=settings.api_proxy_user_header,
        groups_header=settings.api_proxy_groups_header,
        prefix=settings.api_proxy_prefix,
    )


class CallerChecks:
    """Checks by the settings. ``certificates`` are the server's; tests replace ``reviewer``."""

    def __init__(
        self,
        settings: Settings,
        certificates: Certificates | None,
        reviewer: Reviewer | None,
        namespaces: Namespaces,
    ) -> None:
        self._settings, self._certificates, self._namespaces = settings, certificates, namespaces
        self._api: ReviewApi | None = None
        if reviewer is None and settings.api_authentication == "kubernetes":
            self._api = ReviewApi(choose_loader(settings.kubeconfig, settings.context))
            reviewer = Reviewer(self._api, settings.api_audience)
        self.reviewer = reviewer
        self.authorities: ClientAuthorities | None = None
        if certificates:
            config_maps = self._api if settings.api_aggregated else None
            self.authorities = ClientAuthorities(certificates, config_maps, create_authenticating_proxy(settings))
        self._keys = IssuerKeys(settings.api_audience, self._api) if self._api else None
        self._credentials = CallerCredentials(reviewer, self.authorities, keys=self._keys) if reviewer else None
        self._hosts = frozenset(name.lower() for name in settings.api_hosts.split(",") if name)
        is_local = settings.is_local and not settings.api_insecure and reviewer is None
        if is_local and not self._hosts:
            self._hosts = frozenset({*LOCAL_NAMES, settings.api_listen.host})

    @property
    def middleware(self) -> Middleware:
        """Middleware that identifies callers; without a reviewer it only refuses foreign host names."""
        return Middleware(
            Gate,
            find_caller=self._credentials,
            reviewer=self.reviewer,
            home_cluster=self._settings.cluster_name,
            namespaces=self._namespaces,
            hosts=self._hosts,
        )

    def knows_right(self, scope: Scope, cluster: str, right: Right) -> bool:
        """Tell whether it is known, without a question to the API server, that the sender has the right in the cluster.

        If it is not known, the gate decides, and may decide otherwise.
        """
        if not is_for_host(scope, self._hosts):
            return False
        if self.reviewer is None or self._credentials is None:
            return True
        caller = self._credentials.find_remembered(scope)
        rights = derive_needed_rights(cluster, self._settings.cluster_name, right)
        return caller is not None and all(self.reviewer.knows_right(caller, needed_right) for needed_right in rights)

    @property
    def problem(self) -> str:
        """Reason why the present certificate, key or authority is not in force; empty if all are."""
        if self._certificates is None or self.authorities is None:
            return ""
        return self._certificates.problem or self.authorities.problem

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Connection to the API server, whose authority is followed, while the application runs."""
        async with contextlib.AsyncExitStack() as stack:
            if self._api:
                await stack.enter_async_context(self._api)
            if self._api and self.authorities and self._settings.api_aggregated:
                # Awaited once, so that the API server's first request is accepted.
                await self.authorities.read()
                following = asyncio.create_task(self.authorities.follow())
                stack.callback(following.cancel)
            if self._keys:
                stack.callback(asyncio.create_task(self._keys.follow()).cancel)
            yield
