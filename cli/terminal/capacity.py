"""``schedulerlog fits`` and ``drain``: how many pods start now, and where the pods of a node would go.

The API or the cluster itself is asked; with ``--cluster FILE`` this process decides on the cluster of the file.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from cli.client.requests import build_node_path
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
_SHAPE: Final = "the shape"


@with_api_options
def fits(
    asking: Asking,
    file: Annotated[
        Path | None,
        typer.Option("--filename", "-f", help="A Pod, Job, Deployment, … in YAML or JSON; - is standard input."),
    ] = None,
    gpu: Annotated[int, typer.Option(metavar="N", min=0, max=64, help="Devices of a pod, without a file.")] = 0,
    gpumem: Annotated[int, typer.Option(metavar="MIB", min=0, help="Memory of each device; default: all of it.")] = 0,
    gpucores: Annotated[int, typer.Option(metavar="PERCENT", min=0, max=100, help="Cores of each device.")] = 0,
    model: Annotated[str, typer.Option(metavar="TEXT", help="Part of the devices' model, such as A40.")] = "",
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
    if (file is None) == (gpu == 0):
        fail("--gpu or --filename: give the amounts of a pod, or the file of one", USAGE)
    body = read_input("--filename", file) if file else _write_shape(gpu, gpumem, gpucores, model, asking.namespace)
    name, additions = str(file) if file else _SHAPE, ",".join(add_node or ())
    if cluster:
        answer = _count_here(cluster, body, name, asking.namespace or "default", count, additions)
    else:
        query = {"count": str(count or ""), "add_node": additions}
        query = {key: text for key, text in query.items() if text}
        # The cluster's objects say more than the API sees; an API's address may be all that one has.
        transport = asking.create_transport() if asking.api_url else asking.create_cluster_transport()
        answer = require_answer(transport.post("/capacity", body, query))
    if not print_document(asking.output, answer):
        _show_fits(Screen(), answer)
    raise typer.Exit(PLACED if answer["starts"] == answer["wanted"] else WAITING)


def _write_shape(gpu: int, gpumem: int, gpucores: int, model: str, namespace: str) -> bytes:
    import orjson

    from engine.capacity.shapes import Shape, build_pod
    from engine.fit import device_config

    shape = Shape(gpu, gpumem, gpucores, model)
    return orjson.dumps(build_pod(shape, device_config.read_shipped(), namespace or "default"))


def _count_here(file: Path, body: bytes, name: str, namespace: str, count: int | None, additions: str) -> Json:
    from engine.capacity.added_nodes import AdditionError, parse_additions
    from engine.capacity.shapes import read_template
    from engine.capacity.starts import plan_starts
    from engine.fit.manifests import ManifestError
    from engine.simulation.verdict import PodRejectedError

    described, setting = _build_cluster(file)
    try:
        template = read_template(body, Path(name), namespace)
        plan = plan_starts(described, template, count or template.replicas, parse_additions(additions), setting)
    except (ManifestError, AdditionError, PodRejectedError) as error:
        complain(str(error))
        raise typer.Exit(USAGE) from None
    return plan.model_dump(mode="json")


def _build_cluster(file: Path) -> "tuple[SimulationCluster, SimulationSetting]":
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


@with_api_options
def drain(
    asking: Asking,
    name: Annotated[str, typer.Argument(metavar="NODE")],
    cluster: ClusterFile = None,
) -> None:
    """Plan the drain of a node: which pods it loses, where each would go, and which would wait. Writes nothing.

    \b
    Examples:
      schedulerlog drain node9 --cluster cluster.yaml
      schedulerlog drain node9 --cluster cluster.yaml -o json

    Without a file the cluster itself is read, also where the API is installed. Exits with 0 if every pod goes
    elsewhere now, 1 if one waits.
    """
    if cluster:
        answer = _plan_here(cluster, name)
    elif asking.api_url:
        fail("--api-url: the API does not see the pods' objects: leave it out, or give --cluster FILE", USAGE)
    else:
        answer = require_answer(asking.create_cluster_transport().get(build_node_path(name, "drain")))
    if not print_document(asking.output, answer, lambda plan: plan["pods"]):
        _show_drain(Screen(), answer)
    raise typer.Exit(WAITING if answer["waits"] else PLACED)


def _plan_here(file: Path, node: str) -> Json:
    from engine.capacity.drain import NodeMissingError, plan_drain

    described, setting = _build_cluster(file)
    try:
        return plan_drain(described, node, setting).model_dump(mode="json")
    except NodeMissingError:
        complain(f"{file} has no node {node}: `schedulerlog nodes --cluster {file}` lists its nodes")
        raise typer.Exit(USAGE) from None


def _show_drain(screen: Screen, answer: Mapping[str, Any]) -> None:
    screen.print_line(answer["sentence"]["en"], "bold")
    if answer["remaining"]:
        pods = format_count(answer["remaining"], "pod")
        screen.print_line(f"A drain leaves {pods} of DaemonSets or of the kubelet.", "dim")
    if not answer["pods"]:
        return
    screen.skip_line()
    rows = [
        [
            f"{pod['namespace']}/{pod['name']}",
            f"{pod['devices']:,}",
            pod["workload"] or "nothing makes it again",
            pod["node"] or ("waits" if pod["state"] == "waits" else "not known"),
            pod["reason"]["en"] if pod["reason"] else "",
        ]
        for pod in answer["pods"]
    ]
    screen.print_table(["POD", "#DEVICES", "MADE BY", "GOES TO", "WHY IT WAITS"], rows)
