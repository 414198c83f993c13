"""OpenSearch Dashboards: ``install`` imports its objects, ``export`` writes a file. ``slo-rules`` writes rules."""

import sys
from pathlib import Path
from typing import Annotated, Final

import typer
from pydantic import SecretStr

from runtime.cli.cli import create_application, one_line_for
from runtime.errors import SettingError, UnreachableError
from runtime.settings.addresses import without_user_info
from runtime.settings.flags import with_settings
from runtime.settings.secret_files import reveal_secret
from runtime.settings.settings import EnvironmentSettings, Flag, Url

DEFAULT_API_URL: Final = "http://127.0.0.1:9090"


class ExportSettings(EnvironmentSettings):
    api_url: Annotated[Url, Flag(metavar="URL")] = DEFAULT_API_URL
    """Base URL of the API in the links of every row, as the browsers of people reach it."""


class InstallSettings(EnvironmentSettings):
    dashboards_url: Annotated[Url, Flag(names=("--url",), metavar="URL")]
    """Base URL of OpenSearch Dashboards, with its base path if it has one: https://dashboards.example:5601."""
    api_url: Annotated[Url, Flag(metavar="URL")] = DEFAULT_API_URL
    """Base URL of the API in the links of every row, as the browsers of people reach it."""
    dashboards_username: Annotated[str | None, Flag(names=("--username", "--user"))] = None
    """User of Dashboards, if it asks for one."""
    dashboards_password: Annotated[SecretStr | None, Flag(names=("--password-file",))] = None
    """Password of the user of Dashboards."""
    dashboards_ca_file: Annotated[Path | None, Flag(names=("--ca-file",), metavar="FILE")] = None
    """The authorities that may have signed the certificate of Dashboards, in PEM form; default: the system's."""
    dashboards_tenant: Annotated[str | None, Flag(names=("--tenant",), metavar="NAME")] = None
    """The tenant that gets the objects, where the security plugin has tenants: `global` for all users."""


app = create_application("Dashboards of OpenSearch over the index, and rules of Prometheus over the metrics.")


@app.command()
@with_settings(ExportSettings)
def export(
    settings: ExportSettings,
    output: Annotated[Path | None, typer.Option(help="The file to write; standard output unless given.")] = None,
) -> None:
    """Write the saved objects of OpenSearch Dashboards as NDJSON."""
    from deploy.dashboards.overview import export as exported

    content = exported(settings.api_url)
    if output is None:
        sys.stdout.buffer.write(content)
    else:
        output.write_bytes(content)


@app.command()
@with_settings(InstallSettings)
def install(settings: InstallSettings) -> None:
    """Import the saved objects into OpenSearch Dashboards, over those of an earlier version. Safe to run again."""
    from deploy.dashboards.importing import DashboardsServer, ImportRefusedError
    from deploy.dashboards.importing import install as install_all
    from deploy.dashboards.overview import DASHBOARD, list_saved_objects

    with one_line_for(SettingError), one_line_for(UnreachableError, ImportRefusedError, status=1):
        server = DashboardsServer(
            url=settings.dashboards_url,
            username=settings.dashboards_username or "",
            password=reveal_secret(settings.dashboards_password),
            tenant=settings.dashboards_tenant or "",
            ca_file=settings.dashboards_ca_file,
        )
        installed = install_all(server, list_saved_objects(settings.api_url))
    url = without_user_info(settings.dashboards_url)
    typer.echo(f"{installed} objects are installed: {url}/app/dashboards#/view/{DASHBOARD}")


@app.command()
def slo_rules(
    file: Annotated[Path, typer.Argument(help="Gets the rules, as a PrometheusRule.")],
) -> None:
    """Write the recording and burn-rate rules of the objectives for the Prometheus operator."""
    from deploy.dashboards.slo import write_rules

    file.write_text(write_rules(), encoding="utf-8")
    typer.echo(f"wrote {file}")


if __name__ == "__main__":
    app()
