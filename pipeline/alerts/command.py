"""The command lines of ``python -m pipeline alerts`` and ``python -m pipeline alertmanager``."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from pipeline import log
from pipeline.alerts.rules import DEFAULTS, RuleError, load
from pipeline.kube_events.command import Kafka
from pipeline.sinks.opensearch import NotProvisionedError
from process.cli import fail


def alerts(
    kafka: Kafka,
    rules: Annotated[Path, typer.Option(help="A file of rules; docs/alerting.md says how to write one.")] = DEFAULTS,
    group: Annotated[str, typer.Option(help="Names this process's place on the topics.")] = "schedulerlog-alerts",
    metrics_port: Annotated[
        int | None, typer.Option(help="Serve /metrics, /healthz, /readyz on 127.0.0.1.", min=0, max=65535)
    ] = None,
) -> None:
    """Tell alerts by rules, until SIGTERM. Run one of these."""
    from pipeline.alerts.process import Settings, run

    try:
        known = load(rules)
    except RuleError as error:
        fail(str(error), 2)
    log.configure()
    try:
        asyncio.run(run(Settings(kafka, group, known, metrics_port)))
    except NotProvisionedError as error:
        fail(str(error), 1)
    except OSError as error:
        fail(f"--metrics-port {metrics_port}: {error}", 2)


def check_rules(rules: Annotated[Path, typer.Argument(help="A file of rules.")] = DEFAULTS) -> None:
    """Check a file of rules; what is wrong is said with file and line."""
    try:
        known = load(rules)
    except RuleError as error:
        fail(str(error), 2)
    typer.echo(f"{rules}: {len(known)} rules: {', '.join(rule.name for rule in known)}")


def alertmanager(
    url: Annotated[str, typer.Option(help="Base URL of the Alertmanager, for example http://127.0.0.1:9093.")],
    kafka: Kafka,
    resend_seconds: Annotated[
        float, typer.Option(help="What fires is sent again after so long, and ends after four times that.", min=0.1)
    ] = 60,
    api_url: Annotated[str, typer.Option(help="Where people reach the API: links to the evidence.")] = "",
    opensearch_url: Annotated[str, typer.Option(help="Where people reach OpenSearch: links to the evidence.")] = "",
) -> None:
    """Post alerts to an Alertmanager, until SIGTERM."""
    from pipeline.alerts.alertmanager_bridge import Settings, run

    if not url.startswith(("http://", "https://")):
        fail(f"--url {url}: no URL, write for example http://127.0.0.1:9093", 2)
    log.configure()
    links = {"api": api_url.rstrip("/"), "opensearch": opensearch_url.rstrip("/")}
    asyncio.run(run(Settings(kafka, url.rstrip("/"), timedelta(seconds=resend_seconds), links)))
