"""The command line of ``python -m pipeline placements``."""

import asyncio
from typing import Annotated

import typer

from pipeline import log
from pipeline.settings import SettingError, read
from pipeline.sinks.opensearch import NotProvisionedError
from process.cli import fail


def placements(
    group: Annotated[str, typer.Option(help="Names this process's place on the topics.")] = "schedulerlog-placements",
    metrics_port: Annotated[
        int | None, typer.Option(help="Serve /metrics, /healthz, /readyz on 127.0.0.1.", min=0, max=65535)
    ] = None,
) -> None:
    """Keep who is where with which devices, and what was seen of pods and nodes, until SIGTERM. Run one of these."""
    from pipeline.placements.pools import expected_pools
    from pipeline.placements.process import Settings, run

    try:
        settings = read()
    except SettingError as error:
        fail(str(error), 2)
    log.configure()
    places = settings.kafka_bootstrap_servers, settings.opensearch_url
    pools = expected_pools(settings.node_pools, settings.expected_pools)
    try:
        asyncio.run(run(Settings(*places, group, metrics_port, pools)))
    except NotProvisionedError as error:
        fail(str(error), 1)
    except OSError as error:
        fail(f"--metrics-port {metrics_port}: {error}", 2)
