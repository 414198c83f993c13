"""The command line: ``python -m api serve`` runs the REST API as one process."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from prometheus_client import disable_created_metrics
from pydantic import ValidationError

from api.http.trends_query import ReportFormat, ReportQuery
from api.index.reading.client import IndexDownError, IndexRefusedError
from api.server import ListenError, check_cluster, create_server, describe_address, listen, load_certificates
from api.settings import Settings, Switch
from runtime.cli.cli import create_application, fail, one_line_for
from runtime.errors import SettingError
from runtime.kubernetes.credentials import choose_loader
from runtime.kubernetes.errors import KubeApiError, KubeConfigError
from runtime.settings.flags import with_settings
from runtime.settings.names import DEFAULT_CLUSTER
from runtime.settings.opensearch_connection import OpenSearchConnection
from runtime.settings.settings import read
from runtime.settings.variables import derive_variable
from runtime.signals import collect_garbage_seldom
from runtime.telemetry import logs
from runtime.telemetry.health import report_no_problem, serving
from runtime.telemetry.tracing import tracing
from schemas.reasons import Language

app = create_application("schedulerlog over HTTP.")

LOCAL: Final = ("localhost", "127.0.0.1")


@app.callback()
def main() -> None:
    """Serve schedulerlog over HTTP."""


def _is_switched_off(options: Mapping[str, Any]) -> bool:
    """Tell whether the API is switched off: then it needs no other setting. Raises ``SettingError``."""
    if read(Switch, api_enabled=options["api_enabled"]).api_enabled:
        return False
    typer.echo(f"the API is switched off ({derive_variable('api_enabled')}=false)")
    return True


@app.command()
@with_settings(Settings, unless=_is_switched_off)
def serve(settings: Settings) -> None:
    """Answer until SIGTERM or Ctrl-C."""
    with one_line_for(SettingError), one_line_for(ListenError, status=1):
        _listen_and_serve(settings)


@app.command()
def certificate(
    folder: Annotated[Path | None, typer.Option(help="Folder for ca.crt, tls.crt and tls.key.")] = None,
    secret: Annotated[str, typer.Option(help="Secret to write instead of files: NAMESPACE/NAME.")] = "",
    name: Annotated[
        list[str] | None, typer.Option(help="Name or address of the API; repeatable. Default: those of its Service.")
    ] = None,
    api_service: Annotated[
        str, typer.Option(help="APIService that will trust the certificate's authority; with --secret.")
    ] = "",
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Kubeconfig of the cluster; default: the pod's service account.")
    ] = None,
) -> None:
    """Create a certificate for HTTPS, signed by a new authority, or renew one that ends within 60 days.

    A certificate of another authority stays unchanged.
    """
    # cryptography takes its time to import.
    from api.own_certificate import write_files, write_secret

    namespace, _, secret_name = secret.partition("/")
    if bool(folder) == bool(secret) or (secret and not secret_name):
        fail("give --folder FOLDER, or --secret NAMESPACE/NAME", 2)
    service = f"schedulerlog-api.{namespace or 'schedulerlog'}"
    names = name or ["schedulerlog-api", service, f"{service}.svc", f"{service}.svc.cluster.local", *LOCAL]
    try:
        if folder:
            outcome = write_files(folder, names)
        else:
            outcome = asyncio.run(
                write_secret(choose_loader(kubeconfig, None), namespace, secret_name, names, api_service)
            )
    except (KubeConfigError, KubeApiError, OSError) as error:
        fail(str(error), 1)
    typer.echo(
        f"{folder or secret}: "
        + ("is there already" if outcome == "unchanged" else f"{outcome} for {', '.join(names)}")
    )


@app.command()
@with_settings(OpenSearchConnection)
def report(
    connection: OpenSearchConnection,
    since: Annotated[str, typer.Option(help="Start of the range: RFC 3339, or 15m, 2h, 7d ago.")] = "7d",
    until: Annotated[str | None, typer.Option(help="End of the range (exclusive); default: now.")] = None,
    namespace: Annotated[str | None, typer.Option(help="The pods' namespace; default: all.")] = None,
    report_format: Annotated[
        ReportFormat, typer.Option("--format", help="Format: html (one page), markdown, csv or json.")
    ] = "markdown",
    lang: Annotated[Language, typer.Option(help="Language: en, or zh for Chinese.")] = "en",
    cluster_name: Annotated[str, typer.Option(help="Cluster that the report is about.")] = DEFAULT_CLUSTER,
) -> None:
    """Write the report of failures: reasons with remedies, GPU-hours by cause, times to placement."""
    from api.answers.report_collector import write_report

    parameters = {"since": since, "until": until, "namespace": namespace, "format": report_format, "lang": lang}
    try:
        query = ReportQuery.model_validate({name: value for name, value in parameters.items() if value is not None})
        text = asyncio.run(write_report(connection, cluster_name, query))
    except ValidationError as error:
        first = error.errors()[0]
        option = f"--{first['loc'][0]}: " if first["loc"] else ""
        fail(option + first["msg"].removeprefix("Value error, "), 2)
    except (IndexDownError, IndexRefusedError) as error:
        fail(f"{connection.opensearch_url}: {error}", 1)
    typer.echo(text, nl=False)


def _listen_and_serve(settings: Settings) -> None:
    # aiokafka logs every failed connection, several times a second; the consumer logs a failure once.
    logs.configure(settings, silent=["aiokafka"])
    disable_created_metrics()  # type: ignore[no-untyped-call]
    certificates = load_certificates(settings)
    asyncio.run(check_cluster(settings))
    listening = listen(settings.api_listen)
    typer.echo(describe_address(listening, is_secured=certificates is not None))
    sys.stdout.flush()
    with tracing(settings, "api") as spans:
        server = create_server(settings, certificates, spans)
        with serving(
            settings.metrics_address, server.app.state.registry, report_no_problem, server.explain_unreadiness
        ):
            collect_garbage_seldom()
            server.run(sockets=[listening])


if __name__ == "__main__":
    app()
