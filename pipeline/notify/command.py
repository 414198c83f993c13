"""The command line of ``python -m pipeline notify``."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from pipeline.settings import NotifySettings
from runtime.cli.cli import build_option_arguments, fail, one_line_for
from runtime.errors import SettingError
from runtime.kubernetes.errors import KubeApiError, KubeConfigError
from runtime.settings import addresses
from runtime.settings.flags import get_flag, with_settings
from runtime.telemetry import logs


@with_settings(NotifySettings)
def notify(
    settings: NotifySettings,
    api_url: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Address of schedulerlog's API.",
            **build_option_arguments(lambda text: addresses.parse_url(text, "https://schedulerlog-api:9090")),
        ),
    ],
    api_ca_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Authorities of the API's certificate; default: the system's.")
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="The kubeconfig for the API server; without it, the pod's service account.")
    ] = None,
    context: Annotated[
        str | None, typer.Option(help="A context of the kubeconfig; without it, the current one.")
    ] = None,
) -> None:
    """Send a message when a workload waits for another reason than before, or starts, until SIGTERM.

    Who subscribes annotates a pod, a workload or a namespace: schedulerlog.io/notify=TARGET. Of several processes one
    sends, and another takes over (a Lease); with --memory-file, start only one.
    """
    from pipeline.notify.process import ApiAccess, NotifyPolicy
    from pipeline.notify.service import NotifyService, run
    from pipeline.notify.targets import TargetsFile
    from runtime.kubernetes.credentials import choose_loader
    from runtime.kubernetes.lease import LeaseTimings

    if settings.notify_targets is None:
        fail(f"{get_flag(NotifySettings, 'notify_targets')}: is missing, messages go only to targets of this file", 2)
    with one_line_for(SettingError):
        policy = NotifyPolicy.from_settings(settings, TargetsFile(settings.notify_targets))
    logs.configure(settings)
    api = ApiAccess(api_url.rstrip("/"), api_ca_file, settings.notify_api_token)
    load = choose_loader(kubeconfig, context)
    service = NotifyService(api, policy, load, settings.metrics_address, settings.notify_memory_file, LeaseTimings())
    with one_line_for(SettingError, KubeConfigError), one_line_for(KubeApiError, status=1):
        asyncio.run(run(service))
