"""``schedulerlog simulate``: where the pods of a file would go.

kube-scheduler's filters judge the nodes, and HAMi's fit the devices of those that pass.

The API decides on the cluster as it is now; this process on that of a file, or as it was recorded at a time.
"""

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from cli.client.problems import Problem
from cli.terminal.answers import end_with, print_document, require_answer
from cli.terminal.details import show_nodes
from cli.terminal.diagnosed import show_diagnosis
from cli.terminal.exit_codes import PLACED, USAGE, WAITING
from cli.terminal.options import Asking, with_api_options
from cli.terminal.screen import Screen, complain
from runtime.cli.cli import fail
from schemas.json_types import Json

if TYPE_CHECKING:
    from cli.terminal.simulated_pod import InputFile
    from engine.hami.releases import HamiRelease

_OBJECT_FILES: Final = (".json", ".yaml", ".yml")
RECORDED: Final = "the recorded cluster"
_STATES: Final = {"fits": PLACED, "refused": WAITING, "open": WAITING}


@with_api_options
def simulate(
    asking: Asking,
    file: Annotated[
        Path,
        typer.Option(
            "--filename",
            "-f",
            help="A Pod, Job, Deployment, … or a List, in YAML or JSON; - is standard input.",
        ),
    ],
    cluster: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Objects of `kubectl get … -o yaml`, or a folder of such files; no API is asked."
        ),
    ] = None,
    moment: Annotated[
        str, typer.Option("--at", metavar="TIME", help="Time of the recorded cluster; default: now.")
    ] = "",
    count: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=1000, help="Pods to place one after the other; default: one."),
    ] = None,
    device_config_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The device table of the cluster: HAMi's file or its ConfigMap; default: HAMi's own."
        ),
    ] = None,
    hami_version: Annotated[
        str,
        typer.Option(metavar="VERSION", help="Release of HAMi, such as 2.8; default: that of the file, or 2.10."),
    ] = "",
) -> None:
    """Simulate where a pod would go, or why it would wait and what would have to change. Writes nothing.

    \b
    Examples:
      schedulerlog simulate -f pod.yaml
      schedulerlog simulate -f pod.yaml --cluster cluster.yaml
      schedulerlog simulate -f pod.yaml --cluster cluster.yaml --count 8
      schedulerlog simulate -f pod.yaml --at 2h
      kubectl get pod deepseek-0 -o yaml | schedulerlog simulate -f - -o json

    Exits with 0 if the pod fits, 1 if it does not or if the file leaves it open. The API answers callers who may read
    the pod; a recorded cluster (--at) needs the right to list nodes.
    """
    if cluster and moment:
        fail("--at: a file is the cluster of one time: leave out --at or --cluster", USAGE)
    pods = read_input("--filename", file)
    if cluster or moment:
        name = _name_input(cluster) if cluster else RECORDED
        files = read_cluster(cluster) if cluster else [_fetch_recorded(asking, moment)]
        table = _Table(device_config_file, hami_version)
        simulation = _simulate_here(files, name, table, pods, _name_input(file), asking.namespace, count)
    else:
        if device_config_file or hami_version:
            fail("--device-config-file, --hami-version: the API has its own; name a file with --cluster", USAGE)
        query = {"count": str(count)} if count else {}
        simulation = require_answer(asking.create_transport().post("/simulate", pods, query))
    if not print_document(asking.output, simulation, lambda answer: [item for item in [answer["diagnosis"]] if item]):
        _show(Screen(), simulation, is_wide=asking.output == "wide")
    raise typer.Exit(_STATES[simulation["state"]])


def read_input(flag: str, file: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        complain(f"{flag}: {file}: {error.strerror}")
        raise typer.Exit(USAGE) from None


def read_cluster(path: Path) -> "list[InputFile]":
    """Read a cluster's file, or the files of objects below a folder."""
    from cli.terminal.simulated_pod import InputFile

    if not path.is_dir():
        return [InputFile(read_input("--cluster", path), _name_input(path))]
    files = sorted(file for file in path.rglob("*") if file.suffix in _OBJECT_FILES and file.is_file())
    if not files:
        fail(f"--cluster: {path} has no file that ends in {', '.join(_OBJECT_FILES)}", USAGE)
    return [InputFile(read_input("--cluster", file), str(file)) for file in files]


def _name_input(file: Path) -> str:
    return "standard input" if str(file) == "-" else str(file)


def _fetch_recorded(asking: Asking, moment: str) -> "InputFile":
    from cli.terminal.simulated_pod import InputFile

    text = asking.create_transport().get_text("/cluster-file", {"at": moment})
    if isinstance(text, Problem):
        end_with(text)
    return InputFile(text, RECORDED)


def parse_hami_version(version: str) -> "HamiRelease":
    """Parse ``--hami-version``; ends the command for a text that is none."""
    from engine.hami.releases import parse_release

    release = parse_release(version)
    return release or fail(f"--hami-version: {version!r} is no version, write 2.8 or v2.10.0", USAGE)


class _Table(NamedTuple):
    file: Path | None
    version: str


def _simulate_here(
    files: "list[InputFile]",
    cluster_name: str,
    table: _Table,
    pods: bytes,
    pods_name: str,
    namespace: str,
    count: int | None,
) -> Json:
    from cli.terminal.simulated_pod import DescribedCluster, DescribedPods, simulate_pods
    from engine.fit.device_config import DeviceConfigError
    from engine.fit.manifests import ManifestError

    release = parse_hami_version(table.version) if table.version else None
    described = DescribedCluster(files, cluster_name, table.file, release)
    wanted = DescribedPods(pods, pods_name, namespace or "default", count)
    try:
        return simulate_pods(described, wanted, datetime.now(UTC))
    except (ManifestError, DeviceConfigError) as error:
        complain(str(error))
        raise typer.Exit(USAGE) from None


def _show(screen: Screen, simulation: Json, *, is_wide: bool) -> None:
    if simulation["state"] == "refused":
        if simulation["pods"]:
            _show_pods(screen, simulation)
            screen.skip_line()
        show_diagnosis(screen, simulation["diagnosis"], simulation["suggestions"], is_wide=is_wide)
    else:
        screen.print_line(_describe_fit(simulation), "bold")
        if simulation["pods"]:
            _show_pods(screen, simulation)
        _show_devices(screen, simulation)
        _show_filtered(screen, simulation)
    _show_notes(screen, simulation)
    if log := simulation["schedulerlog"]:
        show_nodes(screen, log, is_wide=is_wide)


def _describe_fit(simulation: Json) -> str:
    if simulation["pods"]:
        return f"All {len(simulation['pods']):,} pods fit."
    if simulation["node"] and simulation["state"] == "fits":
        return f"It would go to node {simulation['node']}, one of {simulation['fit_nodes']:,} where it fits."
    text: str = simulation["sentence"]["en"]
    return text


def _show_pods(screen: Screen, simulation: Json) -> None:
    pods = simulation["pods"]
    fitting = [pod for pod in pods if not pod["obstacle"]]
    if len(fitting) < len(pods):
        screen.print_line(f"{len(fitting):,} of {len(pods):,} pods fit, one after the other.", "bold")
    counts: dict[str, int] = {}
    for pod in fitting:
        counts[pod["node"]] = counts.get(pod["node"], 0) + 1
    if counts:
        screen.print_line("; ".join(f"{node}: {count:,}" for node, count in counts.items()) + ".", indent=2)


def _show_devices(screen: Screen, simulation: Json) -> None:
    """Show the devices of the node: those that the pod gets, and why not the others."""
    devices = simulation["devices"]
    if not devices:
        return
    screen.skip_line()
    policy = simulation["device_policy"]
    origin = f"annotation {simulation['policy_annotation']}" if simulation["policy_annotation"] else "default"
    screen.print_line(f"Devices of {simulation['node']} before it, chosen by the policy {policy} ({origin})", "bold")
    columns = ["#DEVICE", "UUID", "VERDICT", "MEMORY USED (MiB)", "CORES USED (%)", "SLOTS USED", "MODEL"]
    screen.print_table(columns, [_to_device_row(device) for device in devices], indent=2)


def _to_device_row(device: Mapping[str, Any]) -> list[str]:
    verdict = device["verdict"]
    if verdict == "picked":
        verdict = f"{device['container']} gets {device['memory_mib']:,} MiB"
        verdict += f", {device['cores_percent']} % cores" if device["cores_percent"] else ""
    return [
        str(device["device_index"]),
        device["uuid"],
        verdict,
        f"{device['memory_used_mib']:,} of {device['memory_total_mib']:,}",
        f"{device['cores_used_percent']} of {device['cores_total_percent']}",
        f"{device['slots_used']} of {device['slots_total']}",
        device["model"],
    ]


def _show_filtered(screen: Screen, simulation: Json) -> None:
    if not simulation["filtered"]:
        return
    screen.skip_line()
    screen.print_line("Refused by kube-scheduler's filters", "bold")
    for group in simulation["filtered"]:
        screen.print_line(group["sentence"]["en"], indent=2)


def _show_notes(screen: Screen, simulation: Json) -> None:
    if not simulation["notes"]:
        return
    screen.skip_line()
    screen.print_line("Good to know", "bold")
    for note in simulation["notes"]:
        screen.print_line(note["text"]["en"], indent=2)
