"""The command line of ``scheduler simulate``. Without settings from the environment, which are slow to import."""

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from runtime.cli.cli import one_line_for
from runtime.errors import SettingError
from runtime.telemetry import logs


def simulate(
    cluster: Annotated[Path, typer.Option(help="Nodes and pods as Kubernetes objects in YAML.")],
    pod: Annotated[Path, typer.Option(help="One Pod in YAML.")],
    name: Annotated[
        str, typer.Option(help="This scheduler's name, as in the pods' spec.schedulerName.")
    ] = "hami-scheduler",
    node_policy: Annotated[
        str, typer.Option(help="The best node: binpack (fullest) or spread (emptiest).")
    ] = "binpack",
    device_policy: Annotated[
        str, typer.Option(help="The device that is tried first: spread, binpack, mutex, topology-aware, …")
    ] = "spread",
    device_config_file: Annotated[
        Path | None,
        typer.Option(
            help="The table of vendors: HAMi's file, or its ConfigMap, in YAML; HAMi's own table unless given."
        ),
    ] = None,
    hami_version: Annotated[
        str, typer.Option(metavar="VERSION", help="Release of HAMi, such as 2.11; default: that of the file, or 2.10.")
    ] = "",
    share_nodes_with: Annotated[
        str,
        typer.Option(
            metavar="NAME,…", help="Decide on nodes too where pods of these schedulers hold devices, as `serve` does."
        ),
    ] = "",
    detail: Annotated[
        bool, typer.Option("--detail", help="Print all that is known, as the API does with ?detail=full.")
    ] = False,
) -> None:
    """Print the schedulerlog that the pod would get on this cluster. Nothing is started, nothing is written."""
    # The scheduler takes its time to import: the help does without it.
    from engine.fit.device_config import DeviceConfigError
    from engine.fit.judge.decision import SchedulingPolicy
    from engine.fit.judge.request.pod_annotations import NODE_POLICIES
    from engine.fit.manifests import ManifestError
    from engine.fit.simulate import simulate_files
    from engine.hami.releases import parse_release

    logs.configure(level=logging.WARNING)
    with one_line_for(SettingError, ManifestError, DeviceConfigError):
        if node_policy not in NODE_POLICIES:
            raise SettingError(
                f"--node-policy: {node_policy!r} is not known, write {' or '.join(sorted(NODE_POLICIES))}"
            )
        release = parse_release(hami_version)
        if hami_version and release is None:
            raise SettingError(f"--hami-version: {hami_version!r} is no version, write 2.10 or v2.11.0")
        policy = SchedulingPolicy(node_policy, device_policy)
        answer = simulate_files(
            cluster, pod, name, policy, datetime.now(UTC), device_config_file,
            release=release, shares_with=share_nodes_with.split(","), is_full=detail,
        )  # fmt: skip
    if answer:
        typer.echo(answer, nl=False)
    else:
        typer.echo("The pod asks for no device: this scheduler would hand every node back.", err=True)
