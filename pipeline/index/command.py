"""The command line of ``python -m pipeline index``."""

import asyncio
from typing import Annotated

import typer

from pipeline.settings import IndexSettings
from runtime.cli.cli import one_line_for
from runtime.errors import NotProvisionedError, SettingError
from runtime.settings.flags import takes
from runtime.telemetry import logs
from runtime.telemetry.tracing import tracing


@takes(IndexSettings)
def index(
    settings: IndexSettings,
    group: Annotated[str, typer.Option(help="The Kafka consumer group.")] = "schedulerlog-index",
) -> None:
    """Write documents of what is on the topics into OpenSearch, until SIGTERM. Several share the work by partition."""
    # The clients take their time to import: only this command needs them.
    from pipeline.index import process

    with one_line_for(SettingError), one_line_for(NotProvisionedError, status=1):
        logs.configure(settings)
        with tracing(settings, "index") as spans:
            asyncio.run(process.run(settings, group, spans))
