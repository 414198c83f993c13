"""The authorities of callers' certificates: that of a file, and the API server's, read from the API server."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final, Protocol

from api.authority.front_proxy import FrontProxy, parse_roots
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


class ClientAuthorities:
    """Authorities in force. ``certificates`` are the server's; with ``config_maps`` the API server is a front proxy."""

    def __init__(self, certificates: Certificates, config_maps: ConfigMaps | None) -> None:
        self._certificates, self.config_maps = certificates, config_maps
        self.front_proxy: FrontProxy | None = None
        self._pem, self._roots = "", frozenset[bytes]()
        self._trouble = LoggedProblem(
            lambda text: log.error("the aggregated API trusts no authority, or only the previous one: %s", text),
            lambda _: log.info("the aggregated API trusts the API server's authority"),
        )

    @property
    def client_roots(self) -> frozenset[bytes]:
        """Authorities of certificates that name their holder."""
        pem = self._certificates.client_ca
        if pem != self._pem:
            self._pem, self._roots = pem, parse_roots(pem)
        return self._roots

    @property
    def problem(self) -> str:
        """Reason why the API server's present authority is not trusted; empty if it is."""
        return self._trouble.text

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
        if proxy.roots & self.client_roots:
            raise ValueError("its authority is that of the clients' certificates; the two have to differ")
        if self.front_proxy is None or proxy.authority_pem != self.front_proxy.authority_pem:
            self._certificates.trust(proxy.authority_pem)
        self.front_proxy = proxy
        self._trouble.note("")
