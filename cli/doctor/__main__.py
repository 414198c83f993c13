"""``schedulerlog doctor``: what keeps an installation from working, each with its remedy."""

import logging
import os

import typer

from cli.doctor.settings import Settings
from runtime.cli.cli import create_application, one_line_for
from runtime.errors import SettingError
from runtime.settings.flags import with_settings

app = create_application("Look for what keeps an installation from working.")


@app.command()
@with_settings(Settings)
def doctor(settings: Settings) -> None:
    """Check versions, rights, reachability, certificates, topics, templates, schedulers and clocks. Changes nothing.

    Kafka and OpenSearch are named as for every process (SCHEDULERLOG_KAFKA_…, SCHEDULERLOG_OPENSEARCH_…). Exit code: 0
    where nothing is wrong, 1 with findings, 2 for a mistake in the settings and where they name nothing to check.
    """
    # The clients and the event loop take their time to import: `--help` needs none of them.
    import asyncio

    from cli.doctor.checks import run_checks
    from cli.doctor.findings import to_json, to_text

    # The finding says what the client would repeat.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    with one_line_for(SettingError):
        report = asyncio.run(run_checks(settings, in_pod="KUBERNETES_SERVICE_HOST" in os.environ))
    typer.echo(to_json(report) if settings.output == "json" else to_text(report))
    if report.findings:
        raise typer.Exit(1)
    if not report.checked:
        raise typer.Exit(2)


if __name__ == "__main__":
    app()
