"""The command line of ``python -m pipeline placements``."""

import asyncio
from typing import Annotated

import typer

from pipeline.settings import Settings
from process import logs
from process.cli import KafkaIfGiven, MetricsAddress, one_line_for
from process.errors import NotProvisionedError, SettingError
from process.settings import read


def placements(
    group: Annotated[str, typer.Option(help="The Kafka consumer group.")] = "schedulerlog-placements",
    kafka: KafkaIfGiven = None,
    metrics_address: MetricsAddress = None,
) -> None:
    """Record which pod is on which node with which devices, and audit placements, until SIGTERM. Of several, one works
    and the others wait to take over."""
    # The clients take their time to import: only this command needs them.
    from pipeline.placements import process
    from pipeline.placements.pools import expected_pools

    with one_line_for(SettingError), one_line_for(NotProvisionedError, status=1):
        settings = read(Settings, kafka_bootstrap_servers=kafka)
        logs.configure()
        pools = expected_pools(settings.node_pools, settings.expected_pools)
        places = settings.kafka_bootstrap_servers, settings.opensearch_url
        session_seconds = settings.session_timeout_seconds
        asyncio.run(process.run(process.Settings(*places, group, metrics_address, session_seconds, pools)))
