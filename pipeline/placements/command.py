"""The command line of ``python -m pipeline placements``."""

import asyncio
from typing import Annotated

import typer

from pipeline.settings import PlacementsSettings
from runtime.cli.cli import one_line_for
from runtime.errors import NotProvisionedError, SettingError
from runtime.settings.flags import takes
from runtime.telemetry import logs


@takes(PlacementsSettings)
def placements(
    settings: PlacementsSettings,
    group: Annotated[str, typer.Option(help="The Kafka consumer group.")] = "schedulerlog-placements",
) -> None:
    """Record which pod is on which node with which devices, and audit placements, until SIGTERM. Of several, one works
    and the others wait to take over."""
    # The clients take their time to import: only this command needs them.
    from pipeline.placements import process
    from pipeline.placements.pools import expected_pools

    with one_line_for(SettingError), one_line_for(NotProvisionedError, status=1):
        logs.configure(settings)
        pools = expected_pools(settings.node_pools, settings.expected_pools)
        metrics_address, session_seconds = settings.metrics_address, settings.session_seconds
        asyncio.run(process.run(process.Settings(settings, settings, group, metrics_address, session_seconds, pools)))
