"""The command lines of ``python -m pipeline alerts`` and ``python -m pipeline alertmanager``."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from pipeline.alerts.rules import DEFAULTS, RuleError, load
from pipeline.settings import AlertmanagerSettings, AlertsSettings
from runtime.cli.cli import build_option_arguments, create_duration_option, fail, one_line_for
from runtime.errors import NotProvisionedError, SettingError
from runtime.settings import addresses
from runtime.settings.flags import with_settings
from runtime.settings.names import ALERTS_GROUP
from runtime.telemetry import logs

_SHORTEST_RESEND: Final = timedelta(milliseconds=100)


def _parse_urls(texts: Sequence[str]) -> list[str]:
    return [addresses.parse_url(text, example="http://127.0.0.1:9093") for text in texts]


@with_settings(AlertsSettings)
def alerts(
    settings: AlertsSettings,
    rules: Annotated[Path, typer.Option(help="A file of rules, as docs/alerting.md describes.")] = DEFAULTS,
    group: Annotated[
        str, typer.Option(help="The Kafka consumer group; its offset stores how far alerts are published.")
    ] = ALERTS_GROUP,
) -> None:
    """Evaluate rules and publish alerts, until SIGTERM. Of several, one works and the others wait to take over."""
    # Here and not above: the client of Kafka takes long to import, and `check-rules` needs none.
    from pipeline.alerts.process import Settings, run

    with one_line_for(RuleError):
        loaded = load(rules)
    logs.configure(settings)
    with one_line_for(SettingError), one_line_for(NotProvisionedError, status=1):
        asyncio.run(run(Settings(settings, group, loaded, settings.metrics_address, settings.session_seconds)))


def check_rules(rules: Annotated[Path, typer.Argument(help="A file of rules.")] = DEFAULTS) -> None:
    """Check a file of rules. A mistake is reported with file and line."""
    with one_line_for(RuleError):
        loaded = load(rules)
    typer.echo(f"{rules}: {len(loaded)} rules: {', '.join(rule.name for rule in loaded)}")


@with_settings(AlertmanagerSettings)
def alertmanager(
    settings: AlertmanagerSettings,
    url: Annotated[
        list[str],
        typer.Option(
            metavar="URL",
            help="Base URL of the Alertmanager, for example http://127.0.0.1:9093; repeatable: each of its peers.",
            **build_option_arguments(_parse_urls),
        ),
    ],
    resend: Annotated[
        timedelta,
        create_duration_option(
            "--resend", "Time between two posts of a firing alert; its end is four times that ahead."
        ),
    ] = "60s",  # type: ignore[assignment]
    api_url: Annotated[str, typer.Option(help="The API's address for people, for links to the evidence.")] = "",
    opensearch_url: Annotated[
        str, typer.Option(help="OpenSearch's address for people, for links to the evidence.")
    ] = "",
    ca_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Authorities of the Alertmanager's certificate; default: the system's."),
    ] = None,
    token_file: Annotated[Path | None, typer.Option(metavar="FILE", help="File of a bearer token.")] = None,
    lang: Annotated[
        Literal["en", "zh"], typer.Option(metavar="en|zh", help="Language of the annotation `summary`.")
    ] = "en",
) -> None:
    """Post alerts to an Alertmanager, until SIGTERM."""
    from pipeline.alerts.alertmanager_bridge import Settings, run
    from runtime.http.tls import build_client_context
    from runtime.settings.secret_files import FileSecret

    if resend < _SHORTEST_RESEND:
        fail("--resend: is too short, write for example 60s", 2)
    logs.configure(settings)
    base_urls = {"api": api_url.rstrip("/"), "opensearch": opensearch_url.rstrip("/")}
    try:
        build_client_context(ca_file)
    except ValueError as error:
        fail(f"--ca-file: {error}", 2)
    try:
        token = FileSecret(token_file) if token_file else None
    except (OSError, ValueError) as error:
        fail(f"--token-file: {token_file}: {error}", 2)
    with one_line_for(SettingError):
        asyncio.run(run(Settings(settings, url, resend, base_urls, settings.metrics_address, ca_file, token, lang)))
