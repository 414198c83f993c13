"""The command lines of ``python -m pipeline alerts`` and ``python -m pipeline alertmanager``."""

import asyncio
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from pipeline.alerts.rules import DEFAULTS, RuleError, load
from process import addresses, logs
from process.cli import Kafka, MetricsAddress, one_line_for, reads
from process.errors import NotProvisionedError, SettingError


def alerts(
    kafka: Kafka,
    rules: Annotated[Path, typer.Option(help="A file of rules; docs/alerting.md says how to write one.")] = DEFAULTS,
    group: Annotated[str, typer.Option(help="Names this process's place on the topics.")] = "schedulerlog-alerts",
    metrics_address: MetricsAddress = None,
) -> None:
    """Publish alerts by rules, until SIGTERM. Run one of these."""
    from pipeline.alerts.process import Settings, run

    with one_line_for(RuleError):
        known = load(rules)
    logs.configure()
    with one_line_for(SettingError), one_line_for(NotProvisionedError, status=1):
        asyncio.run(run(Settings(kafka, group, known, metrics_address)))


def check_rules(rules: Annotated[Path, typer.Argument(help="A file of rules.")] = DEFAULTS) -> None:
    """Check a file of rules; what is wrong is said with file and line."""
    with one_line_for(RuleError):
        known = load(rules)
    typer.echo(f"{rules}: {len(known)} rules: {', '.join(rule.name for rule in known)}")


def alertmanager(
    url: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Base URL of the Alertmanager, for example http://127.0.0.1:9093.",
            **reads(partial(addresses.url, example="http://127.0.0.1:9093")),
        ),
    ],
    kafka: Kafka,
    resend_seconds: Annotated[
        float, typer.Option(help="What fires is sent again after so long, and ends after four times that.", min=0.1)
    ] = 60,
    api_url: Annotated[str, typer.Option(help="Where people reach the API: links to the evidence.")] = "",
    opensearch_url: Annotated[str, typer.Option(help="Where people reach OpenSearch: links to the evidence.")] = "",
    metrics_address: MetricsAddress = None,
) -> None:
    """Post alerts to an Alertmanager, until SIGTERM."""
    from pipeline.alerts.alertmanager_bridge import Settings, run

    logs.configure()
    links = {"api": api_url.rstrip("/"), "opensearch": opensearch_url.rstrip("/")}
    with one_line_for(SettingError):
        asyncio.run(run(Settings(kafka, url, timedelta(seconds=resend_seconds), links, metrics_address)))
