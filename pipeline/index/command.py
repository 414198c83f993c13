"""The command line of ``python -m pipeline index``."""

import asyncio
from typing import Annotated

import typer

from pipeline.settings import Settings
from process import logs
from process.cli import KafkaIfGiven, MetricsAddress, one_line_for
from process.errors import NotProvisionedError, SettingError
from process.settings import read


def index(
    group: Annotated[str, typer.Option(help="The Kafka consumer group.")] = "schedulerlog-index",
    kafka: KafkaIfGiven = None,
    metrics_address: MetricsAddress = None,
) -> None:
    """Write documents of what is on the topics into OpenSearch, until SIGTERM. Several share the work by partition."""
    # The clients take their time to import: only this command needs them.
    from pipeline.index import process

    with one_line_for(SettingError), one_line_for(NotProvisionedError, status=1):
        settings = read(Settings, kafka_bootstrap_servers=kafka)
        logs.configure()
        asyncio.run(process.run(settings, group, metrics_address))
