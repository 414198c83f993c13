"""Messages to people as a part: it asks the API of its own process, and needs the cluster for annotations."""

import logging
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from cli.single_process.settings import SingleProcessSettings
from runtime.errors import SettingError
from runtime.settings.addresses import LOOPBACK, HostPort
from runtime.settings.flags import get_flag
from runtime.telemetry.health import ServeHealth

if TYPE_CHECKING:
    from pipeline.notify.process import ApiAccess
    from pipeline.notify.targets import Target

_EVERY_ADDRESS: Final = {"0.0.0.0": LOOPBACK, "::": "::1"}  # noqa: S104 - to reach it, not to listen on it
logger = logging.getLogger(__name__)


def read_named_targets(settings: SingleProcessSettings, *, has_api: bool, has_cluster: bool) -> "Mapping[str, Target]":
    """Read the targets of messages; empty where the settings name no file, or one that does not exist.

    Raises ``SettingError``, also for targets that no message could reach.
    """
    file, option = settings.notify_targets, get_flag(SingleProcessSettings, "notify_targets")
    if file is None:
        return {}
    if not file.exists():
        # That of a Secret that nobody has made.
        logger.info("no messages are sent: %s does not exist", file)
        return {}
    if not (has_api and has_cluster):
        lacking = "a cluster, whose annotations name targets" if has_api else "the part api, which knows what waits"
        raise SettingError(f"{option}: messages need {lacking}; --without notify leaves them out")
    if settings.api_authentication == "kubernetes" and settings.notify_api_token is None:
        token = get_flag(SingleProcessSettings, "notify_api_token")
        raise SettingError(f"{token}: is missing: the API checks its callers, this process is one of them")
    from pipeline.notify.targets import read_targets

    return read_targets(file)


def reach_own_api(settings: SingleProcessSettings, listening: socket.socket) -> "ApiAccess":
    """Build the access to the API of this process, which listens on the socket."""
    from pipeline.notify.process import ApiAccess

    host, port = listening.getsockname()[:2]
    scheme = "https" if settings.api_cert_file else "http"
    return ApiAccess(
        f"{scheme}://{HostPort(_EVERY_ADDRESS.get(host, host), port)}",
        token=settings.notify_api_token,
        certificate_file=settings.api_cert_file,
        host=settings.api_hosts.partition(",")[0],
    )


async def send_messages(
    settings: SingleProcessSettings,
    listening: socket.socket,
    targets: "Mapping[str, Target]",
    serve_health: ServeHealth,
) -> None:
    """Send messages to the targets until cancelled."""
    from pipeline.notify.process import NotifyPolicy
    from pipeline.notify.service import NotifyService, work
    from runtime.kubernetes.credentials import choose_loader

    policy = NotifyPolicy.from_settings(settings, targets)
    load = choose_loader(settings.kubeconfig, settings.context)
    api = reach_own_api(settings, listening)
    await work(NotifyService(api, policy, load, None, settings.notify_memory_file), serve_health)
