"""Messages to people as a part: it asks the API of its own process, and needs the cluster for annotations."""

import asyncio
import logging
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from cli.single_process.settings import SingleProcessSettings
from runtime.errors import SettingError
from runtime.settings.addresses import LOOPBACK, HostPort
from runtime.settings.flags import get_flag
from runtime.telemetry.health import ServeHealth

if TYPE_CHECKING:
    from pipeline.notify.process import ApiAccess, NotifyPolicy

MISTAKE_SECONDS: Final = 60.0
"""Pause after a mistake in the targets or their settings: a mounted Secret changes in place."""
_EVERY_ADDRESS: Final = {"0.0.0.0": LOOPBACK, "::": "::1"}  # noqa: S104 - to reach it, not to listen on it
logger = logging.getLogger(__name__)


def has_targets_file(settings: SingleProcessSettings, *, has_api: bool, has_cluster: bool) -> bool:
    """Tell whether the settings name a file of targets that exists.

    Raises ``SettingError`` for targets that no message could reach, whatever the file says.
    """
    if settings.notify_targets is None:
        return False
    if not settings.notify_targets.exists():
        # That of a Secret that nobody has made.
        logger.info("no messages are sent: %s does not exist", settings.notify_targets)
        return False
    if not (has_api and has_cluster):
        option = get_flag(SingleProcessSettings, "notify_targets")
        lacking = "a cluster, whose annotations name targets" if has_api else "the part api, which knows what waits"
        raise SettingError(f"{option}: messages need {lacking}; --without notify leaves them out")
    return True


def read_policy(settings: SingleProcessSettings) -> "NotifyPolicy":
    """Read the targets, and check that the API answers the part. Raises ``SettingError``."""
    if settings.api_authentication == "kubernetes" and settings.notify_api_token is None:
        token = get_flag(SingleProcessSettings, "notify_api_token")
        raise SettingError(f"{token}: is missing: the API checks its callers, this process is one of them")
    if settings.notify_targets is None:
        raise SettingError(f"{get_flag(SingleProcessSettings, 'notify_targets')}: is missing, it names who is sent to")
    from pipeline.notify.process import NotifyPolicy
    from pipeline.notify.targets import TargetsFile

    return NotifyPolicy.from_settings(settings, TargetsFile(settings.notify_targets))


async def wait_for_policy(read: "Callable[[], NotifyPolicy]") -> "NotifyPolicy":
    """Read until there is no mistake. Each one is logged, and the other parts of the process continue."""
    while True:
        try:
            return read()
        except SettingError as error:
            logger.error("no messages are sent; the other parts continue: %s", error)  # noqa: TRY400 - one line
            await asyncio.sleep(MISTAKE_SECONDS)


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
    serve_health: ServeHealth,
) -> None:
    """Send messages to the targets until cancelled."""
    from prometheus_client import CollectorRegistry

    from pipeline.notify.service import NotifyService, work
    from runtime.kubernetes.credentials import choose_loader
    from runtime.telemetry.health import report_no_problem

    # A mistake in it is no reason to send no requests to the API of this process: it is ready.
    with serve_health(None, CollectorRegistry(), report_no_problem, report_no_problem):
        policy = await wait_for_policy(partial(read_policy, settings))
    load = choose_loader(settings.kubeconfig, settings.context)
    api = reach_own_api(settings, listening)
    await work(NotifyService(api, policy, load, None, settings.notify_memory_file), serve_health)
