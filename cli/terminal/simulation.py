"""``schedulerlog simulate``: where a pod of a file would go, by the scheduler's own fit.

The API decides on the cluster as it is now; this process on that of a file, or as it was recorded at a time.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from cli.client.problems import Problem
from cli.terminal.answers import end_with, print_document, require_answer
from cli.terminal.diagnosed import show_diagnosis
from cli.terminal.exit_codes import PLACED, USAGE, WAITING
from cli.terminal.options import Asking, with_api_options
from cli.terminal.screen import Screen, complain
from cli.terminal.why import show_nodes
from runtime.cli.cli import fail
from schemas.json_types import Json

RECORDED: Final = "the recorded cluster"
NO_DEVICE: Final = "The pod asks for no device: every node that kube-scheduler takes would do."


@with_api_options
def simulate(
    asking: Asking,
    file: Annotated[Path, typer.Option("--filename", "-f", help="One Pod in YAML or JSON; - is standard input.")],
    cluster: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="`kubectl get nodes,pods -A -o yaml`; no API is asked."),
    ] = None,
    moment: Annotated[
        str, typer.Option("--at", metavar="TIME", help="Time of the recorded cluster; default: now.")
    ] = "",
) -> None:
    """Simulate where a pod would go, or why it would wait and what would have to change. Writes nothing.

    \b
    Examples:
      schedulerlog simulate -f pod.yaml
      schedulerlog simulate -f pod.yaml --cluster cluster.yaml
      schedulerlog simulate -f pod.yaml --at 2h
      kubectl get pod deepseek-0 -o yaml | schedulerlog simulate -f - -o json

    Exits with 0 if the pod fits, 1 if it does not. The API answers callers who may read the pod; a recorded cluster
    (--at) needs the right to list nodes. Only a file has quotas and taints.
    """
    if cluster and moment:
        fail("--at: a file is the cluster of one time: leave out --at or --cluster", USAGE)
    pod = _read("--filename", file)
    if cluster:
        simulation = _simulate_here(_read("--cluster", cluster), str(cluster), pod, str(file))
    elif moment:
        simulation = _simulate_here(_fetch_recorded(asking, moment), RECORDED, pod, str(file))
    else:
        simulation = require_answer(asking.create_transport().post("/simulate", pod))
    code = PLACED if simulation["node"] or not simulation["diagnosis"] else WAITING
    if not print_document(asking.output, simulation, lambda answer: [item for item in [answer["diagnosis"]] if item]):
        _show(Screen(), simulation, is_wide=asking.output == "wide")
    raise typer.Exit(code)


def _read(flag: str, file: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        complain(f"{flag}: {file}: {error.strerror}")
        raise typer.Exit(USAGE) from None


def _fetch_recorded(asking: Asking, moment: str) -> bytes:
    text = asking.create_transport().get_text("/cluster-file", {"at": moment})
    if isinstance(text, Problem):
        end_with(text)
    return text


def _simulate_here(cluster: bytes, cluster_name: str, pod: bytes, pod_name: str) -> Json:
    from cli.terminal.simulated_pod import simulate_pod
    from engine.fit.manifests import ManifestError

    try:
        return simulate_pod(cluster, cluster_name, pod, pod_name, datetime.now(UTC))
    except ManifestError as error:
        complain(str(error))
        raise typer.Exit(USAGE) from None


def _show(screen: Screen, simulation: Json, *, is_wide: bool) -> None:
    if not simulation["diagnosis"]:
        screen.print_line(NO_DEVICE)
        return
    log = simulation["schedulerlog"]
    if simulation["node"]:
        fitting = log["detail"]["fit_nodes"]
        screen.print_line(f"It would go to node {simulation['node']}, one of {fitting:,} where it fits.", "bold")
    else:
        show_diagnosis(screen, simulation["diagnosis"], simulation["suggestions"], is_wide=is_wide)
    show_nodes(screen, log, is_wide=is_wide)
