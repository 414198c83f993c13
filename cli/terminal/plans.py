"""``schedulerlog drain``, ``defragment`` and ``buy``: plans for nodes and waiting pods. Nothing is carried out.

The cluster itself is asked, or the API at an address; with ``--cluster FILE`` this process plans on a file's cluster.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from cli.client.requests import build_node_path
from cli.client.transport import Transport
from cli.terminal.answers import print_document, require_answer
from cli.terminal.capacity import (
    ClusterFile,
    Cores,
    Devices,
    Memory,
    Model,
    WantedPod,
    WorkloadFile,
    build_cluster_of_file,
    read_wanted,
)
from cli.terminal.exit_codes import PLACED, USAGE, WAITING
from cli.terminal.options import Asking, with_api_options
from cli.terminal.screen import Screen, complain, format_count
from schemas.json_types import Json

MAX_NAMES: Final = 10
"""Limit of the names of pods in a line."""
_NOT_MOVED: Final = (
    "Pods that nothing makes again, of DaemonSets, with claims for devices, or that a disruption budget keeps are not "
    "moved."
)
_STATES: Final = {"waits": "waits", "open": "not known", "blocked": "is not evicted"}


@with_api_options
def drain(
    asking: Asking,
    name: Annotated[str, typer.Argument(metavar="NODE")],
    cluster: ClusterFile = None,
) -> None:
    """Plan the drain of a node: which pods it loses, where each goes, which wait, and which budgets keep there.

    \b
    Examples:
      schedulerlog drain node9 --cluster cluster.yaml
      schedulerlog drain node9 --cluster cluster.yaml -o json

    Nothing is carried out: the commands are to read and run. Without a file the cluster itself is read, also where the
    API is installed. Exits with 0 if every pod goes elsewhere now, 1 if not.
    """
    if cluster:
        answer = _plan_drain(cluster, name)
    else:
        answer = require_answer(_create_transport(asking).get(build_node_path(name, "drain")))
    if not print_document(asking.output, answer, lambda plan: plan["pods"]):
        _show_drain(Screen(), answer)
    raise typer.Exit(WAITING if answer["waits"] or answer["blocked"] else PLACED)


@with_api_options
def defragment(
    asking: Asking,
    file: WorkloadFile = None,
    gpu: Devices = 0,
    gpumem: Memory = 0,
    gpucores: Cores = 0,
    model: Model = "",
    count: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=50, help="Pods that are wanted; default: the workload's.")
    ] = None,
    cluster: ClusterFile = None,
) -> None:
    """Plan the fewest pods to move to other nodes so that a pod starts, with disruption budgets respected.

    \b
    Examples:
      schedulerlog defragment --gpu 4 --gpumem 40000 --cluster cluster.yaml
      schedulerlog defragment -f pod.yaml --cluster cluster.yaml

    Nothing is carried out: the commands are to read and run. Exits with 0 if all wanted pods start, 1 if not.
    """
    wanted = read_wanted(file, gpu, (gpumem, gpucores, model), asking.namespace)
    if cluster:
        answer = _plan_moves(cluster, wanted, asking.namespace or "default", count)
    else:
        query = {"count": str(count)} if count else {}
        answer = require_answer(_create_transport(asking).post("/defragmentation", wanted.text, query))
    if not print_document(asking.output, answer, _list_moves):
        _show_moves(Screen(), answer)
    raise typer.Exit(PLACED if answer["starts"] == answer["wanted"] else WAITING)


@with_api_options
def buy(asking: Asking, cluster: ClusterFile = None) -> None:
    """Plan nodes to add so that waiting pods start: how many of which kind, and which pods no node would help.

    \b
    Examples:
      schedulerlog buy --cluster cluster.yaml

    Kinds are those of the cluster's nodes. Exits with 0 if no pod waits for a node, 1 if one does.
    """
    if cluster:
        from engine.capacity.purchase import plan_purchase

        answer = plan_purchase(*build_cluster_of_file(cluster)).model_dump(mode="json")
    else:
        answer = require_answer(_create_transport(asking).get("/purchase"))
    if not print_document(asking.output, answer):
        _show_purchase(Screen(), answer)
    raise typer.Exit(WAITING if answer["to_add"] or answer["not_helped"] else PLACED)


def _create_transport(asking: Asking) -> Transport:
    """Create a transport to the cluster, which is newer than what an API remembers; or to the address that is named."""
    return asking.create_transport() if asking.api_url else asking.create_cluster_transport()


def _plan_drain(file: Path, node: str) -> Json:
    from engine.capacity.drain import NodeMissingError, plan_drain

    described, setting = build_cluster_of_file(file)
    try:
        return plan_drain(described, node, setting).model_dump(mode="json")
    except NodeMissingError:
        complain(f"{file} has no node {node}: `schedulerlog nodes --cluster {file}` lists its nodes")
        raise typer.Exit(USAGE) from None


def _plan_moves(file: Path, wanted: WantedPod, namespace: str, count: int | None) -> Json:
    from engine.capacity.defragment import plan_defragmentation
    from engine.capacity.shapes import read_template
    from engine.fit.manifests import ManifestError
    from engine.simulation.verdict import PodRejectedError

    described, setting = build_cluster_of_file(file)
    try:
        template = read_template(wanted.text, Path(wanted.name), namespace)
        return plan_defragmentation(described, template, count or template.replicas, setting).model_dump(mode="json")
    except (ManifestError, PodRejectedError) as error:
        complain(str(error))
        raise typer.Exit(USAGE) from None


def _show_drain(screen: Screen, answer: Mapping[str, Any]) -> None:
    screen.print_line(answer["sentence"]["en"], "bold")
    if answer["remaining"]:
        pods = format_count(answer["remaining"], "pod")
        screen.print_line(f"A drain leaves {pods} of DaemonSets or of the kubelet.", "dim")
    if not answer["pods"]:
        return
    screen.skip_line()
    _show_pods(screen, answer["pods"])
    _show_commands(screen, answer)


def _show_pods(screen: Screen, pods: Sequence[Mapping[str, Any]]) -> None:
    rows = [
        [
            f"{pod['namespace']}/{pod['name']}",
            f"{pod['devices']:,}",
            pod["workload"] or "nothing makes it again",
            pod["node"] or _STATES[pod["state"]],
            pod["reason"]["en"] if pod["reason"] else "",
        ]
        for pod in pods
    ]
    screen.print_table(["POD", "#DEVICES", "MADE BY", "GOES TO", "WHY IT WAITS"], rows)


def _show_commands(screen: Screen, answer: Mapping[str, Any]) -> None:
    """Show the commands of a plan, and whether it respects disruption budgets."""
    screen.skip_line()
    if not answer["has_budgets"]:
        text = "Disruption budgets are not known here: `kubectl get poddisruptionbudgets -A` lists them."
        screen.print_line(text, "yellow")
    screen.print_line("To carry it out, read and run", "bold")
    for command in answer["commands"]:
        screen.print_line(command, indent=2)


def _list_moves(answer: Json) -> list[Json]:
    return [move for node in answer["nodes"] for move in node["moves"]]


def _show_moves(screen: Screen, answer: Mapping[str, Any]) -> None:
    screen.print_line(answer["sentence"]["en"], "bold")
    if answer["moves"]:
        fewest = "Fewer moves do not do." if answer["is_fewest"] else "Fewer moves may do: this is the first plan."
        screen.print_line(fewest, "dim")
    if answer["obstacle"]:
        screen.print_line(f"The next one waits: {answer['obstacle']['en']}", indent=2)
        screen.print_line(_NOT_MOVED, "dim", indent=2)
    for opened in answer["nodes"]:
        if opened["moves"]:
            screen.skip_line()
            left = "it" if opened["source"] == opened["node"] else opened["source"]
            screen.print_line(f"{opened['pod']} starts on {opened['node']} after these have left {left}")
            _show_pods(screen, opened["moves"])
    if answer["commands"]:
        _show_commands(screen, answer)


def _show_purchase(screen: Screen, answer: Mapping[str, Any]) -> None:
    screen.print_line(answer["sentence"]["en"], "bold")
    if answer["starts"]:
        screen.print_line(f"{format_count(answer['starts'], 'pod')} more fit as things are.", indent=2)
    if answer["to_add"]:
        screen.skip_line()
        rows = [
            [str(kind["nodes"]), kind["like"], ", ".join(kind["models"]), str(kind["pods"]), _shorten(kind["names"])]
            for kind in answer["to_add"]
        ]
        screen.print_table(["#NODES", "LIKE", "MODELS", "#PODS", "THAT START"], rows)
    if answer["not_helped"]:
        screen.skip_line()
        screen.print_line("No added node helps", "bold")
        for group in answer["not_helped"]:
            reason = group["reason"]["en"] if group["reason"] else "The reason is not known."
            screen.print_line(f"{_shorten(group['names'])}: {reason}", indent=2)
    if answer["waiting"] > answer["judged"]:
        left = answer["waiting"] - answer["judged"]
        screen.print_line(f"{format_count(left, 'more waiting pod')} of lower priority were not judged.", "dim")


def _shorten(names: Sequence[str]) -> str:
    more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {more:,} more" if more > 0 else "")
