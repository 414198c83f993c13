"""The authorities of callers' certificates: those of two files, and the API server's, read from the API server."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from api.authority.authenticating_proxy import AuthenticatingProxy
from api.authority.front_proxy import FrontProxy, parse_roots
from api.settings import CERTIFICATE_VARIABLES
from runtime.http.server_tls import BrokenPairError, Certificates
from runtime.kubernetes.errors import KubeApiError
from runtime.log_once import LoggedProblem

log = logging.getLogger(__name__)

CONFIG_MAP: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
READ_SECONDS: Final = 30.0
"""Interval of reading the API server's authority: when Kubernetes replaces it, both are trusted for days."""
_RETRY_SECONDS: Final = 5.0


class ConfigMaps(Protocol):
    """Reader of objects of the API server."""

    async def get(self, path: str) -> Mapping[str, Any]:
        """Read an object. Raises ``KubeApiError``."""


def describe_shared_authority(certificates: Certificates) -> str:
    """Describe that clients and the authenticating proxy have one authority, with which each client could name any
    user; empty if the two differ.
    """
    if parse_roots(certificates.client_ca) & parse_roots(certificates.proxy_ca):
        _, _, client_ca, proxy_ca = CERTIFICATE_VARIABLES
        return f"{proxy_ca}: its authority is also that of {client_ca}; the two have to differ"
    return ""


class ClientAuthorities:
    """Authorities in force. ``certificates`` are the server's; with ``config_maps`` the API server is a front proxy.

    ``login`` has the names and headers of the authenticating proxy; its authority is that of the certificates.
    """

    def __init__(
        self, certificates: Certificates, config_maps: ConfigMaps | None, login: AuthenticatingProxy | None = None
    ) -> None:
        self._certificates, self.config_maps, self._login = certificates, config_maps, login
        self.front_proxy: FrontProxy | None = None
        self._trouble = LoggedProblem(
            lambda text: log.error("the aggregated API trusts no authority, or only the previous one: %s", text),
            lambda _: log.info("the aggregated API trusts the API server's authority"),
        )

    @property
    def client_roots(self) -> frozenset[bytes]:
        """Authorities of certificates that name their holder."""
        return parse_roots(self._certificates.client_ca)

    @property
    def proxies(self) -> Sequence[FrontProxy | AuthenticatingProxy]:
        """Proxies that name callers in headers."""
        proxies: list[FrontProxy | AuthenticatingProxy] = [self.front_proxy] if self.front_proxy else []
        if self._login and (pem := self._certificates.proxy_ca):
            proxies.append(replace(self._login, roots=parse_roots(pem)))
        return proxies

    @property
    def problem(self) -> str:
        """Reason why a present authority is not trusted; empty if all are."""
        return self._trouble.text or describe_shared_authority(self._certificates)

    async def follow(self) -> None:
        """Read the API server's authority periodically, until cancelled."""
        while True:
            await self.read()
            await asyncio.sleep(_RETRY_SECONDS if self.problem else READ_SECONDS)

    async def read(self) -> None:
        """Trust the authority that the API server publishes now; after a problem keep the previous one and log why."""
        if self.config_maps is None:
            return
        try:
            config_map = await self.config_maps.get(CONFIG_MAP)
            self._use(FrontProxy.from_config_map(config_map.get("data") or {}))
        except (KubeApiError, BrokenPairError, ValueError) as error:
            self._trouble.note(f"{CONFIG_MAP.rpartition('/')[2]}: {error}")

    def _use(self, proxy: FrontProxy | None) -> None:
        """Trust the proxy. Raises ``ValueError`` and ``BrokenPairError``."""
        if proxy is None:
            raise ValueError("the API server has no --requestheader-client-ca-file")
        if not proxy.user_headers:
            raise ValueError("it names no header for the user")
        # Otherwise every holder of a client certificate could name any user.
        if proxy.roots & (self.client_roots | parse_roots(self._certificates.proxy_ca)):
            raise ValueError("its authority is also that of a file of authorities; the two have to differ")
        if self.front_proxy is None or proxy.authority_pem != self.front_proxy.authority_pem:
            self._certificates.trust(proxy.authority_pem)
        self.front_proxy = proxy
        self._trouble.note("")
