"""The authorities whose certificates name callers: that of a file, and the API server's, which is read from it."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final, Protocol

from api.authority.front_proxy import FrontProxy, roots_in
from runtime.http.server_tls import BrokenPairError, Certificates
from runtime.kubernetes.errors import KubeApiError
from runtime.log_once import LoggedProblem

log = logging.getLogger(__name__)

CONFIG_MAP: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
READ_SECONDS: Final = 30.0
"""How often the API server's authority is read again: both are trusted for days when Kubernetes replaces it."""
_RETRY_SECONDS: Final = 5.0


class ConfigMaps(Protocol):
    """Reads objects of the API server."""

    async def get(self, path: str) -> Mapping[str, Any]:
        """Raises ``KubeApiError``."""


class ClientAuthorities:
    """``certificates`` are the server's; with ``config_maps`` the API server is trusted as a front proxy, too."""

    def __init__(self, certificates: Certificates, config_maps: ConfigMaps | None) -> None:
        self._certificates, self.config_maps = certificates, config_maps
        self.front_proxy: FrontProxy | None = None
        self._pem, self._roots = "", frozenset[bytes]()
        self._trouble = LoggedProblem(
            lambda text: log.error("the aggregated API knows no callers, or those by the authority before: %s", text),
            lambda _: log.info("the aggregated API knows its callers"),
        )

    @property
    def client_roots(self) -> frozenset[bytes]:
        """The authorities of certificates that name their own holder."""
        pem = self._certificates.client_ca
        if pem != self._pem:
            self._pem, self._roots = pem, roots_in(pem)
        return self._roots

    @property
    def problem(self) -> str:
        """Why the API server is not trusted, or not as it now wants; empty where it is."""
        return self._trouble.text

    async def follow(self) -> None:
        """Read the API server's authority again and again, until cancelled."""
        while True:
            await self.read()
            await asyncio.sleep(_RETRY_SECONDS if self.problem else READ_SECONDS)

    async def read(self) -> None:
        """Trust what the API server publishes now, or keep what is in force and say why."""
        if self.config_maps is None:
            return
        try:
            found = await self.config_maps.get(CONFIG_MAP)
            self._use(FrontProxy.of(found.get("data") or {}))
        except (KubeApiError, BrokenPairError, ValueError) as error:
            self._trouble.note(f"{CONFIG_MAP.rpartition('/')[2]}: {error}")

    def _use(self, proxy: FrontProxy | None) -> None:
        """Raises ``ValueError`` and ``BrokenPairError``."""
        if proxy is None:
            raise ValueError("the API server has no --requestheader-client-ca-file")
        if not proxy.user_headers:
            raise ValueError("it names no header for the user")
        # Who holds a certificate of one could name any user.
        if proxy.roots & self.client_roots:
            raise ValueError("its authority is that of the clients' certificates; the two have to differ")
        if self.front_proxy is None or proxy.authority_pem != self.front_proxy.authority_pem:
            self._certificates.trust(proxy.authority_pem)
        self.front_proxy = proxy
        self._trouble.note("")
