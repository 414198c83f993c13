"""``python -m scheduler serve`` answers kube-scheduler; ``python -m scheduler simulate`` answers a person."""

import asyncio
import logging
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from kube.errors import KubeConfigError
from process import logs
from process.cli import application, one_line_for
from process.errors import SettingError
from process.flags import takes_settings
from scheduler import device_config, hami_arguments
from scheduler.cluster.manifests import ManifestError
from scheduler.device_config import DeviceConfigError
from scheduler.judge.decision import SchedulingPolicy
from scheduler.settings import Settings

NODE_POLICIES = ("binpack", "spread")
MISTAKES = (SettingError, ManifestError, KubeConfigError, DeviceConfigError)

app = application("A kube-scheduler extender that decides as HAMi does and publishes every verdict.")


class _HamisArguments(TyperCommand):
    """Understands the arguments of HAMi's scheduler too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = [option for option in self.params if getattr(option, "is_flag", False)]
        off = {name: option.secondary_opts[0] for option in options if option.secondary_opts for name in option.opts}
        with one_line_for(SettingError):
            words, notes = hami_arguments.translated(args, off)
        for note in notes:
            typer.echo(note, err=True)
        return list(super().parse_args(ctx, words))


@app.command(cls=_HamisArguments)
@takes_settings(Settings)
def serve(settings: Settings) -> None:
    """Answer POST /filter, POST /bind and POST /webhook; GET /healthz, /readyz and /metrics too.

    Every flag is also an environment variable: SCHEDULERLOG_SCHEDULER_ and its name in capitals, with _ for -.
    The arguments of HAMi's scheduler are understood as they are.
    """
    # The servers and clients take their time to import: only this command needs them.
    from scheduler.serve import serve as run

    # The publisher says once that a broker is away, where aiokafka fills the log.
    logs.configure(silent=["aiokafka"])
    with one_line_for(*MISTAKES):
        asyncio.run(run(settings, device_config.read(settings.device_config_file or device_config.SHIPPED)))


@app.command()
def simulate(
    cluster: Annotated[Path, typer.Option(help="Nodes and pods as Kubernetes objects in YAML.")],
    pod: Annotated[Path, typer.Option(help="One Pod in YAML.")],
    name: Annotated[
        str, typer.Option(help="This scheduler's name, as in the pods' spec.schedulerName.")
    ] = "hami-scheduler",
    node_policy: Annotated[
        str, typer.Option(help="Which node is best: binpack (fullest) or spread (emptiest).")
    ] = "binpack",
    device_policy: Annotated[
        str, typer.Option(help="Which device is tried first: spread, binpack, mutex, topology-aware, …")
    ] = "spread",
    device_config_file: Annotated[
        Path,
        typer.Option(
            help="The table of vendors: HAMi's file, or its ConfigMap, in YAML.",
            show_default="scheduler/device-config.yaml",
        ),
    ] = device_config.SHIPPED,
    detail: Annotated[
        bool, typer.Option("--detail", help="Print all that is known, as the API does with ?detail=full.")
    ] = False,
) -> None:
    """Print the schedulerlog that the pod would get on this cluster. Nothing is started, nothing is written."""
    from scheduler.simulate import simulated_schedulerlog

    logs.configure(logging.WARNING)
    with one_line_for(*MISTAKES):
        if node_policy not in NODE_POLICIES:
            raise SettingError(f"--node-policy: {node_policy!r} is not known, write {' or '.join(NODE_POLICIES)}")
        policy = SchedulingPolicy(node_policy, device_policy)
        answer = simulated_schedulerlog(cluster, pod, name, policy, device_config_file, is_full=detail)
    if answer:
        typer.echo(answer, nl=False)
    else:
        typer.echo("The pod asks for no device: this scheduler would hand every node back.", err=True)


if __name__ == "__main__":
    app()
