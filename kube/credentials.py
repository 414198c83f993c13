"""Where the API server is and how to speak to it, from a kubeconfig or from the pod's service account.

The official client reads both. It is asked again every minute and when the server refuses what we have: service account
tokens change on disk within the hour, exec plugins and rotated client certificates too.
"""

import logging
import ssl
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from kubernetes.aio import config
from kubernetes.aio.client import Configuration
from kubernetes.aio.config.incluster_config import InClusterConfigLoader

from kube.errors import KubeConfigError

log = logging.getLogger(__name__)

Load = Callable[[], Awaitable[Configuration]]

RENEW_SECONDS: Final = 60.0
SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its token, the cluster's CA and its namespace."""


def from_kubeconfig(path: Path, context: str | None = None) -> Load:
    """`context`: by name; None: the file's current one."""

    async def load() -> Configuration:
        found = Configuration()
        try:
            path.stat()  # noqa: ASYNC240 - local, and the reader behind it blocks too
            await config.load_kube_config(str(path), context, found, persist_config=False)
        except OSError as error:
            raise KubeConfigError(f"{path}: can't be read: {error.strerror}") from error
        except Exception as error:
            raise KubeConfigError(f"{path}: {_first_line(error)}") from error
        return found

    return load


async def in_cluster(folder: Path = SERVICE_ACCOUNT) -> Configuration:
    """The pod's service account, at the API server that the environment names."""
    found = Configuration()
    try:
        InClusterConfigLoader(str(folder / "token"), str(folder / "ca.crt")).load_and_set(found)
    except (config.ConfigException, OSError) as error:
        cause = f"not in a pod with a service account ({_first_line(error).rstrip('.')})"
        raise KubeConfigError(f"{cause}: name a kubeconfig to reach the cluster from here") from error
    return found


def pod_namespace() -> str:
    """The namespace of the pod that we run in; empty outside of one."""
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text().strip()
    except OSError:
        return ""


class Credentials:
    """`url`, `tls`, `server_name` and `proxy` are for connections; `authorization` is a header of every request."""

    def __init__(self, load: Load, found: Configuration, clock: Callable[[], float] = time.monotonic) -> None:
        self._load, self._clock = load, clock
        self.tls = ssl.create_default_context() if found.host.startswith("https") else None
        self._take(found)

    @classmethod
    async def open(cls, load: Load) -> "Credentials":
        """Raises `KubeConfigError`."""
        return cls(load, await load())

    def _take(self, found: Configuration) -> None:
        self.url = found.host.rstrip("/")
        self.server_name: str | None = found.tls_server_name
        self.proxy: str | None = found.proxy
        self._authorization: str = found.api_key.get("BearerToken", "")
        self._read_at = self._clock()
        if self.tls:
            _trust(self.tls, found)

    async def authorization(self) -> str:
        """The header's value; empty where a client certificate says who we are."""
        if self._clock() - self._read_at >= RENEW_SECONDS:
            await self.renew()
        return self._authorization

    async def renew(self) -> None:
        """Read everything anew; what can't be read stays as it was."""
        # Whoever asks meanwhile takes what we have: one reader is enough.
        self._read_at = self._clock()
        try:
            self._take(await self._load())
        except (KubeConfigError, OSError) as error:
            log.warning("the credentials stay as they were: %s", error)


def _trust(tls: ssl.SSLContext, found: Configuration) -> None:
    """Raises `KubeConfigError` for certificates that can't be used."""
    try:
        if found.ssl_ca_cert:
            tls.load_verify_locations(found.ssl_ca_cert)
        if found.cert_file:
            tls.load_cert_chain(found.cert_file, found.key_file)
    except (ssl.SSLError, OSError) as error:
        raise KubeConfigError(f"the certificates of {found.host} can't be used: {error}") from error
    # Clusters sign with authorities that lack what strict checking wants (an authority key identifier, mostly).
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not found.verify_ssl:
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
