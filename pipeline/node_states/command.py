"""The command line of ``python -m pipeline node-states``."""

import asyncio
from typing import Annotated

import typer

from pipeline.settings import Settings
from process import logs
from process.cli import KafkaIfGiven, MetricsAddress, one_line_for
from process.errors import NotProvisionedError, SettingError
from process.settings import read


def node_states(
    group: Annotated[str, typer.Option(help="The Kafka consumer group.")] = "schedulerlog-node-states",
    kafka: KafkaIfGiven = None,
    metrics_address: MetricsAddress = None,
) -> None:
    """Write the states of nodes into the index, until SIGTERM. Several of these share the work by partition."""
    # The clients take their time to import: only this command needs them.
    from pipeline.node_states import process

    with one_line_for(SettingError), one_line_for(NotProvisionedError, status=1):
        settings = read(Settings, kafka_bootstrap_servers=kafka)
        logs.configure()
        places = settings.kafka_bootstrap_servers, settings.opensearch_url
        asyncio.run(process.run(process.Settings(*places, group, metrics_address, settings.max_backoff_seconds)))
