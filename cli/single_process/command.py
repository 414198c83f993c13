"""The command line of ``schedulerlog all``."""

import asyncio
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final

import typer
from prometheus_client import disable_created_metrics

from api.server import ListenError, check_cluster, describe_address, listen
from cli.single_process.messenger import has_targets_file
from cli.single_process.parts import NAMES, OUR_SCHEDULER, Choice, build_parts
from cli.single_process.settings import SingleProcessSettings
from ingest.errors import KafkaUnavailableError, MistakeError
from pipeline.alerts.rules import DEFAULTS, RuleError, load
from runtime.cli.cli import create_duration_option, fail, one_line_for
from runtime.errors import NotProvisionedError, SettingError, UnreachableError
from runtime.kubernetes.credentials import is_configured
from runtime.kubernetes.errors import KubeApiError, KubeConfigError
from runtime.refused_credentials import end_when_refused
from runtime.settings.flags import with_settings
from runtime.signals import collect_garbage_seldom, create_stop_event, run_until_first_ends
from runtime.supervision import CrashLoopError, RestartPolicy, Supervisor
from runtime.telemetry import logs
from runtime.telemetry.parts_health import PartsHealth
from runtime.telemetry.tracing import tracing

_QUIET: Final = ("pipeline.worker.faust_app",)
"""Faust logs what a subclass of its services does under the module of the subclass."""
_FATAL: Final = (SettingError, NotProvisionedError, KubeConfigError, MistakeError)
_PASSING: Final = (KafkaUnavailableError, KubeApiError, UnreachableError)


@with_settings(SingleProcessSettings)
def run_all(
    settings: SingleProcessSettings,
    without: Annotated[
        list[str] | None, typer.Option(help=f"A part to leave out; repeatable. The parts: {', '.join(NAMES)}.")
    ] = None,
    hami_log: Annotated[
        str | None, typer.Option(help="Pod of HAMi's scheduler, whose log is followed: NAMESPACE/NAME[/CONTAINER].")
    ] = None,
    kai_log: Annotated[
        str | None, typer.Option(help="Pod of KAI's scheduler, whose log is followed: NAMESPACE/NAME[/CONTAINER].")
    ] = None,
    events_of: Annotated[
        list[str] | None,
        typer.Option(help=f"Scheduler whose decisions become events of pods; repeatable. Default: {OUR_SCHEDULER}."),
    ] = None,
    rules: Annotated[Path, typer.Option(help="A file of rules for alerts, as docs/alerting.md describes.")] = DEFAULTS,
    provision: Annotated[
        bool, typer.Option(help="Make topics and index templates first, or correct them, as `pipeline provision`.")
    ] = True,
    wait: Annotated[
        timedelta, create_duration_option("--wait", "How long to wait at the start for stores that are not up yet.")
    ] = "10m",  # type: ignore[assignment]
) -> None:
    """Run worker, index writer, placements, alerts, Kubernetes events, messages, retention, API and readers as one
    process, until SIGTERM: for clusters of up to 100 nodes.
    """
    excluded = frozenset(without or ())
    if unknown := sorted(excluded - set(NAMES)):
        fail(f"--without {unknown[0]}: is no part; the parts are {', '.join(NAMES)}", 2)
    logs.configure(settings, quiet=_QUIET, silent=["aiokafka"])
    disable_created_metrics()  # type: ignore[no-untyped-call]
    with (
        one_line_for(*_FATAL, RuleError, status=2),
        one_line_for(ListenError, UnreachableError, NotProvisionedError, CrashLoopError, status=1),
        tracing(settings, "all") as spans,
    ):
        has_api, has_cluster = settings.api_enabled and "api" not in excluded, is_configured(settings.kubeconfig)
        choice = Choice(
            tuple(load(rules)),
            listen(settings.api_listen) if has_api else None,
            spans,
            has_cluster=has_cluster,
            excluded=excluded,
            hami_log=hami_log,
            kai_log=kai_log,
            events_of=tuple(events_of or (OUR_SCHEDULER,)),
            has_targets_file="notify" not in excluded
            and has_targets_file(settings, has_api=has_api, has_cluster=has_cluster),
        )
        asyncio.run(_run(settings, choice, wait if provision else None))
    # A consumer thread that still waits for a broker must not keep a process that has ended.
    sys.stdout.flush()
    os._exit(0)


async def _run(settings: SingleProcessSettings, choice: Choice, provision_wait: timedelta | None) -> None:
    stop = create_stop_event()
    parts = build_parts(settings, choice)
    health = PartsHealth([part.name for part in parts])
    with health.open_server(settings.metrics_address):
        await check_cluster(settings)
        if provision_wait is not None:
            await run_until_first_ends(_provision(settings, provision_wait), stop.wait())
        if stop.is_set():
            return
        if choice.listening:
            typer.echo(describe_address(choice.listening, is_secured=settings.api_cert_file is not None))
            sys.stdout.flush()
        collect_garbage_seldom()
        policy = RestartPolicy(_FATAL, _PASSING, longest_pause_seconds=settings.max_backoff_seconds)
        await run_until_first_ends(Supervisor(parts, health, policy).run(stop), end_when_refused())


async def _provision(settings: SingleProcessSettings, wait: timedelta) -> None:
    from pipeline.admin.provision import provision

    await provision(settings, wait, lambda _: None)
