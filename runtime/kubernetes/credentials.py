"""The API server's address and our credentials, from a kubeconfig or from the pod's service account.

The official client reads both. We read them again every minute and when the server refuses ours: the kubelet replaces
service account tokens within the hour, and exec plugins and client certificates change as well.
"""

import logging
import ssl
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runtime.kubernetes.errors import KubeConfigError

# The official client takes a second to import, so it is imported only where it is used.
if TYPE_CHECKING:
    from kubernetes.aio.client import Configuration

log = logging.getLogger(__name__)

LoadConfiguration = Callable[[], Awaitable["Configuration"]]

RENEW_SECONDS: Final = 60.0
SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Folder in which the kubelet puts a pod's token, the cluster's CA and the pod's namespace."""


def from_kubeconfig(path: Path, context: str | None = None) -> LoadConfiguration:
    """Read the kubeconfig at `path`; `context` is the name of one of its contexts, None for its current one."""

    async def load() -> "Configuration":
        from kubernetes.aio import config
        from kubernetes.aio.client import Configuration

        configuration = Configuration()
        try:
            # The official reader takes a missing file for an empty kubeconfig with a message that names no file.
            path.stat()  # noqa: ASYNC240 - a local file, and the official reader blocks as well
            # ``persist_config`` would write refreshed tokens into the user's file.
            await config.load_kube_config(str(path), context, configuration, persist_config=False)
        except OSError as error:
            raise KubeConfigError(f"{path}: can't be read: {error.strerror}") from error
        except Exception as error:
            raise KubeConfigError(f"{path}: {_get_first_line(error)}") from error
        return configuration

    return load


def choose_loader(kubeconfig: Path | None, context: str | None) -> LoadConfiguration:
    """Choose what loads the connection: the kubeconfig, or without one the service account of the pod."""
    return from_kubeconfig(kubeconfig, context) if kubeconfig else load_service_account


def is_configured(kubeconfig: Path | None) -> bool:
    """Tell whether there is a kubeconfig, or the service account of a pod."""
    return kubeconfig is not None or bool(read_pod_namespace())


async def load_service_account(folder: Path = SERVICE_ACCOUNT) -> "Configuration":
    """Read the pod's service account; the environment names the API server."""
    from kubernetes.aio import config
    from kubernetes.aio.client import Configuration
    from kubernetes.aio.config.incluster_config import InClusterConfigLoader

    configuration = Configuration()
    try:
        InClusterConfigLoader(str(folder / "token"), str(folder / "ca.crt")).load_and_set(configuration)
    except (config.ConfigException, OSError) as error:
        cause = f"not in a pod with a service account ({_get_first_line(error).rstrip('.')})"
        raise KubeConfigError(f"{cause}: name a kubeconfig to reach the cluster from here") from error
    return configuration


def read_pod_namespace() -> str:
    """Return the namespace of the pod that this process runs in; empty outside of a pod."""
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text().strip()
    except OSError:
        return ""


class ApiCredentials:
    """Credentials of a client: `url`, `tls`, `server_name` and `proxy` to connect, `authorization` for every
    request."""

    def __init__(
        self, load: LoadConfiguration, configuration: "Configuration", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._load, self._clock = load, clock
        # Created once and changed in place: later connections use the credentials that were loaded last.
        self.tls = _build_context(configuration.ssl_ca_cert) if configuration.host.startswith("https") else None
        self._apply(configuration)

    @classmethod
    async def open(cls, load: LoadConfiguration) -> "ApiCredentials":
        """Load the credentials and keep them fresh. Raises `KubeConfigError`."""
        return cls(load, await load())

    def _apply(self, configuration: "Configuration") -> None:
        self.url = configuration.host.rstrip("/")
        self.server_name: str | None = configuration.tls_server_name
        self.proxy: str | None = configuration.proxy
        self._authorization: str = configuration.api_key.get("BearerToken", "")
        self._read_at = self._clock()
        try:
            if self.tls:
                _set_certificates(self.tls, configuration)
        finally:
            _remove_copies()

    async def get_authorization(self) -> str:
        """Return the value of the header; empty if a client certificate identifies us."""
        if self._clock() - self._read_at >= RENEW_SECONDS:
            await self.renew()
        return self._authorization

    async def renew(self) -> None:
        """Read the credentials again; if that fails, keep the present ones."""
        # Set before reading: requests that start meanwhile use the present credentials, instead of reading as well.
        self._read_at = self._clock()
        try:
            self._apply(await self._load())
        except (KubeConfigError, OSError) as error:
            log.warning("the credentials could not be read again, the old ones are used: %s", error)


def _build_context(ca_file: str | None) -> ssl.SSLContext:
    """Build a context that trusts only the cluster's authority if it is configured: otherwise any public authority
    could sign for its name.
    """
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except (ssl.SSLError, OSError) as error:
        raise KubeConfigError(f"the cluster's CA {ca_file} can't be used: {error}") from error


def _set_certificates(tls: ssl.SSLContext, configuration: "Configuration") -> None:
    """Load the CA and the client certificate; raises `KubeConfigError` if they can't be used."""
    try:
        if configuration.ssl_ca_cert:
            tls.load_verify_locations(configuration.ssl_ca_cert)
        if configuration.cert_file:
            tls.load_cert_chain(configuration.cert_file, configuration.key_file)
    except (ssl.SSLError, OSError) as error:
        raise KubeConfigError(f"the certificates of {configuration.host} can't be used: {error}") from error
    # Strict checking, the default since Python 3.13, asks for extensions that the CA certificates of many clusters
    # lack (mostly the authority key identifier).
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not configuration.verify_ssl:
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE


def _remove_copies() -> None:
    """Remove the files into which the official reader copies certificates and keys that a kubeconfig contains."""
    from kubernetes.aio.config import kube_config

    # It removes them itself when the process ends, but not when that is killed. Nothing is awaited between its writing
    # and our reading them, so no other client of this process misses one.
    kube_config._cleanup_temp_files()


def _get_first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
