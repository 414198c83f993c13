"""Index patterns, searches and a dashboard for OpenSearch Dashboards: ``export`` writes, ``install`` imports them."""

import sys
from pathlib import Path

import typer

from dashboards.settings import ExportSettings, InstallSettings
from process.addresses import without_user_info
from process.cli import application, one_line_for
from process.errors import SettingError, UnreachableError
from process.flags import takes_settings

app = application(__doc__)


@app.command()
@takes_settings(ExportSettings)
def export(settings: ExportSettings) -> None:
    """Write the saved objects of OpenSearch Dashboards as NDJSON."""
    from dashboards.overview import export as exported

    content = exported(settings.api_url)
    if settings.output == "-":
        sys.stdout.buffer.write(content)
    else:
        Path(settings.output).write_bytes(content)


@app.command()
@takes_settings(InstallSettings)
def install(settings: InstallSettings) -> None:
    """Import the saved objects into OpenSearch Dashboards, over those of an earlier version. Safe to run again."""
    from dashboards.importing import DashboardsServer, ImportRefusedError
    from dashboards.importing import install as install_all
    from dashboards.overview import DASHBOARD, saved_objects

    with one_line_for(SettingError), one_line_for(UnreachableError, ImportRefusedError, status=1):
        server = DashboardsServer(
            url=settings.dashboards_url,
            username=settings.dashboards_username or "",
            password=settings.dashboards_password.get_secret_value() if settings.dashboards_password else "",
            tenant=settings.dashboards_tenant or "",
            ca_file=settings.dashboards_ca_file,
        )
        installed = install_all(server, saved_objects(settings.api_url))
    shown = without_user_info(settings.dashboards_url)
    typer.echo(f"{installed} objects are installed: {shown}/app/dashboards#/view/{DASHBOARD}")


if __name__ == "__main__":
    app()
