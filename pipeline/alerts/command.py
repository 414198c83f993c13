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
    rules: Annotated[Path, typer.Option(help="A file of rules, as docs/alerting.md describes.")] = DEFAULTS,
    group: Annotated[
        str, typer.Option(help="The Kafka consumer group; its offset stores how far alerts are published.")
    ] = "schedulerlog-alerts",
    metrics_address: MetricsAddress = None,
) -> None:
    """Evaluate rules and publish alerts, until SIGTERM. Of several, one works and the others wait to take over."""
    # Here and not above: the client of Kafka takes long to import, and `check-rules` needs none.
    from pipeline.alerts.process import Settings, run

    with one_line_for(RuleError):
        loaded = load(rules)
    logs.configure()
    with one_line_for(SettingError), one_line_for(NotProvisionedError, status=1):
        asyncio.run(run(Settings(kafka, group, loaded, metrics_address)))


def check_rules(rules: Annotated[Path, typer.Argument(help="A file of rules.")] = DEFAULTS) -> None:
    """Check a file of rules. A mistake is reported with file and line."""
    with one_line_for(RuleError):
        loaded = load(rules)
    typer.echo(f"{rules}: {len(loaded)} rules: {', '.join(rule.name for rule in loaded)}")


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
        float,
        typer.Option(help="Time between two posts of a firing alert; its end is four times that ahead.", min=0.1),
    ] = 60,
    api_url: Annotated[str, typer.Option(help="Where people reach the API, for links to the evidence.")] = "",
    opensearch_url: Annotated[str, typer.Option(help="Where people reach OpenSearch, for links to the evidence.")] = "",
    metrics_address: MetricsAddress = None,
) -> None:
    """Post alerts to an Alertmanager, until SIGTERM."""
    from pipeline.alerts.alertmanager_bridge import Settings, run

    logs.configure()
    base_urls = {"api": api_url.rstrip("/"), "opensearch": opensearch_url.rstrip("/")}
    with one_line_for(SettingError):
        asyncio.run(run(Settings(kafka, url, timedelta(seconds=resend_seconds), base_urls, metrics_address)))
