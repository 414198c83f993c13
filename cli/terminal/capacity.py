"""``schedulerlog fits``: how many pods start now, what the others wait for and what would take them.

The API or the cluster itself is asked; with ``--cluster FILE`` this process decides on the cluster of the file.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from cli.terminal.answers import print_document, require_answer
from cli.terminal.exit_codes import PLACED, USAGE, WAITING
from cli.terminal.options import Asking, with_api_options
from cli.terminal.screen import Screen, complain, format_count
from cli.terminal.simulation import read_cluster, read_input
from runtime.cli.cli import fail
from schemas.json_types import Json

if TYPE_CHECKING:
    from engine.simulation.cluster import SimulationCluster
    from engine.simulation.setting import SimulationSetting

ClusterFile = Annotated[
    Path | None,
    typer.Option(
        "--cluster",
        metavar="FILE",
        help="Objects of `kubectl get … -o yaml`, or a folder of such files; no API is asked.",
    ),
]
WorkloadFile = Annotated[
    Path | None,
    typer.Option("--filename", "-f", help="A Pod, Job, Deployment, … in YAML or JSON; - is standard input."),
]
Devices = Annotated[int, typer.Option("--gpu", metavar="N", min=0, max=64, help="Devices of a pod, without a file.")]
Memory = Annotated[
    int, typer.Option("--gpumem", metavar="MIB", min=0, help="Memory of each device; default: all of it.")
]
Cores = Annotated[int, typer.Option("--gpucores", metavar="PERCENT", min=0, max=100, help="Cores of each device.")]
Model = Annotated[str, typer.Option("--model", metavar="TEXT", help="Part of the devices' model, such as A40.")]
_SHAPE: Final = "the shape"


class WantedPod(NamedTuple):
    """Text of the pod of a question, and its name in mistakes."""

    text: bytes
    name: str


def read_wanted(file: Path | None, gpu: int, amounts: tuple[int, int, str], namespace: str) -> WantedPod:
    """Read the pod of a file, or write that of a shape (amounts: memory, cores, model); ends without either."""
    if (file is None) == (gpu == 0):
        fail("--gpu or --filename: give the amounts of a pod, or the file of one", USAGE)
    if file:
        return WantedPod(read_input("--filename", file), str(file))
    return WantedPod(_write_shape(gpu, *amounts, namespace), _SHAPE)


@with_api_options
def fits(
    asking: Asking,
    file: WorkloadFile = None,
    gpu: Devices = 0,
    gpumem: Memory = 0,
    gpucores: Cores = 0,
    model: Model = "",
    count: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=100_000, help="Pods that are wanted; default: the workload's.")
    ] = None,
    add_node: Annotated[
        list[str] | None,
        typer.Option(metavar="like:NODE=N", help="Empty nodes like one of the cluster to add; more than once."),
    ] = None,
    cluster: ClusterFile = None,
) -> None:
    """Count the pods of a shape that start now, and tell what the others wait for and what would take them.

    \b
    Examples:
      schedulerlog fits --gpu 1 --model A40
      schedulerlog fits -f pod.yaml --count 20
      schedulerlog fits --gpu 4 --gpumem 20000 --count 20 --add-node like:node3=2 --cluster cluster.yaml

    Exits with 0 if all wanted pods start now, 1 if not. Nothing is written.
    """
    wanted, additions = read_wanted(file, gpu, (gpumem, gpucores, model), asking.namespace), ",".join(add_node or ())
    if cluster:
        answer = _count_here(cluster, wanted, asking.namespace or "default", count, additions)
    else:
        query = {"count": str(count or ""), "add_node": additions}
        query = {key: text for key, text in query.items() if text}
        # The cluster's objects say more than the API sees; an API's address may be all that one has.
        transport = asking.create_transport() if asking.api_url else asking.create_cluster_transport()
        answer = require_answer(transport.post("/capacity", wanted.text, query))
    if not print_document(asking.output, answer):
        _show_fits(Screen(), answer)
    raise typer.Exit(PLACED if answer["starts"] == answer["wanted"] else WAITING)


def _write_shape(gpu: int, gpumem: int, gpucores: int, model: str, namespace: str) -> bytes:
    import orjson

    from engine.capacity.shapes import Shape, build_pod
    from engine.fit import device_config

    shape = Shape(gpu, gpumem, gpucores, model)
    return orjson.dumps(build_pod(shape, device_config.read_shipped(), namespace or "default"))


def _count_here(file: Path, wanted: WantedPod, namespace: str, count: int | None, additions: str) -> Json:
    from engine.capacity.added_nodes import AdditionError, parse_additions
    from engine.capacity.shapes import read_template
    from engine.capacity.starts import plan_starts
    from engine.fit.manifests import ManifestError
    from engine.simulation.verdict import PodRejectedError

    described, setting = build_cluster_of_file(file)
    try:
        template = read_template(wanted.text, Path(wanted.name), namespace)
        plan = plan_starts(described, template, count or template.replicas, parse_additions(additions), setting)
    except (ManifestError, AdditionError, PodRejectedError) as error:
        complain(str(error))
        raise typer.Exit(USAGE) from None
    return plan.model_dump(mode="json")


def build_cluster_of_file(file: Path) -> "tuple[SimulationCluster, SimulationSetting]":
    """Build the cluster of a file; a mistake in it ends the command."""
    from cli.terminal.simulated_pod import DescribedCluster, build_described_cluster
    from engine.fit.device_config import DeviceConfigError
    from engine.fit.manifests import ManifestError
    from engine.simulation.setting import SimulationSetting

    try:
        described, notes = build_described_cluster(DescribedCluster(read_cluster(file), str(file)))
    except (ManifestError, DeviceConfigError) as error:
        complain(str(error))
        raise typer.Exit(USAGE) from None
    return described, SimulationSetting(datetime.now(UTC), notes=notes)


def _show_fits(screen: Screen, answer: Mapping[str, Any]) -> None:
    screen.print_line(answer["sentence"]["en"], "bold")
    nodes = [f"{node['node']}: {node['pods']:,}" for node in answer["nodes"]]
    if nodes:
        more = answer["node_count"] - len(nodes)
        nodes += [f"and {format_count(more, 'more node')}"] if more else []
        screen.print_line("; ".join(nodes) + ".", indent=2)
    if not answer["is_counted"]:
        screen.print_line("Counting ended at a limit: more may start.", indent=2)
    if answer["obstacle"]:
        screen.print_line(f"The next one waits: {answer['obstacle']['en']}", indent=2)
    _show_ways(screen, answer)


def _show_ways(screen: Screen, answer: Mapping[str, Any]) -> None:
    """Show what would let the waiting pods start."""
    change, release = answer["change"], answer["next_end"]
    if not (change or release or answer["to_add"]):
        return
    screen.skip_line()
    screen.print_line("What lets more start", "bold")
    if change:
        screen.print_line(change["sentence"]["en"], indent=2)
    if release:
        name = f"{release['namespace']}/{release['name']}"
        screen.print_line(f"The end of {name} on {release['node']} lets {release['pods']:,} more start.", indent=2)
    for addition in answer["to_add"]:
        models = f" ({', '.join(addition['models'])})" if addition["models"] else ""
        nodes = f"{format_count(addition['nodes'], 'node')} like {addition['like']}"
        screen.print_line(f"{nodes}{models}, which {_take(addition)}.", indent=2)


def _take(addition: Mapping[str, Any]) -> str:
    count = f"{addition['pods_each']:,}"
    return f"takes {count}" if addition["nodes"] == 1 else f"take {count} each"
