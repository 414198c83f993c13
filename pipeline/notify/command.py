"""The command line of ``python -m pipeline notify``."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from pipeline.settings import NotifySettings
from runtime.cli.cli import build_option_arguments, create_duration_option, fail, one_line_for
from runtime.errors import SettingError
from runtime.kubernetes.errors import KubeApiError, KubeConfigError
from runtime.settings import addresses
from runtime.settings.flags import with_settings
from runtime.telemetry import logs

_CONFIG_MAP = "schedulerlog-notify"


@with_settings(NotifySettings)
def notify(
    settings: NotifySettings,
    targets: Annotated[Path, typer.Option(metavar="FILE", help="File of targets, as docs/notifications.md describes.")],
    api_url: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Address of schedulerlog's API.",
            **build_option_arguments(lambda text: addresses.parse_url(text, "https://schedulerlog-api:9090")),
        ),
    ],
    page_url: Annotated[str, typer.Option(metavar="URL", help="The API's address for people, for links.")] = "",
    api_ca_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Authorities of the API's certificate; default: the system's.")
    ] = None,
    api_token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File of a bearer token that may list all pods.")
    ] = None,
    settle: Annotated[
        timedelta, create_duration_option("--settle", "Time that news has to last until it is sent.")
    ] = "30s",  # type: ignore[assignment]
    memory_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File of what was sent; default: the ConfigMap schedulerlog-notify."),
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="The kubeconfig for the API server; without it, the pod's service account.")
    ] = None,
    context: Annotated[
        str | None, typer.Option(help="A context of the kubeconfig; without it, the current one.")
    ] = None,
) -> None:
    """Send a message when a workload waits for another reason than before, or starts, until SIGTERM.

    Who subscribes annotates a pod, a workload or a namespace: schedulerlog.io/notify=TARGET. One process of a cluster.
    """
    from pipeline.notify.process import ApiAccess, NotifyPolicy
    from pipeline.notify.service import NotifyService, run
    from pipeline.notify.targets import read_targets
    from runtime.kubernetes.credentials import choose_loader
    from runtime.settings.secret_files import FileSecret

    with one_line_for(SettingError):
        policy = NotifyPolicy(settings.cluster_name, read_targets(targets), settle, page_url.rstrip("/"))
    try:
        token = FileSecret(api_token_file) if api_token_file else None
    except (OSError, ValueError) as error:
        fail(f"--api-token-file: {api_token_file}: {error}", 2)
    logs.configure(settings)
    api = ApiAccess(api_url.rstrip("/"), api_ca_file, token)
    load = choose_loader(kubeconfig, context)
    service = NotifyService(api, policy, load, settings.metrics_address, memory_file, _CONFIG_MAP)
    with one_line_for(SettingError, KubeConfigError), one_line_for(KubeApiError, status=1):
        asyncio.run(run(service))
