"""``schedulerlog simulate``: where a pod of a file would go, by the scheduler's own fit.

The API decides on the cluster as it is now; this process on that of a file, or as it was recorded at a time.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from cli.client.problems import Problem
from cli.terminal.answers import answered, end_with, is_printed
from cli.terminal.diagnosed import show_diagnosis
from cli.terminal.exit_codes import PLACED, USAGE, WAITING
from cli.terminal.options import Asking, asks
from cli.terminal.screen import Screen, complain
from cli.terminal.why import show_nodes
from runtime.cli.cli import fail
from schemas.json_types import Json

RECORDED: Final = "the recorded cluster"
NO_DEVICE: Final = "The pod asks for no device: every node that kube-scheduler takes would do."


@asks
def simulate(
    asking: Asking,
    file: Annotated[Path, typer.Option("--filename", "-f", help="One Pod in YAML or JSON; - is standard input.")],
    cluster: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="`kubectl get nodes,pods -A -o yaml`; no API is asked."),
    ] = None,
    at: Annotated[str, typer.Option(metavar="TIME", help="The recorded cluster at this time; default: now.")] = "",
) -> None:
    """Where a pod would go, or why it would wait and what would have to change. Nothing is written.

    \b
    Examples:
      schedulerlog simulate -f pod.yaml
      schedulerlog simulate -f pod.yaml --cluster cluster.yaml
      schedulerlog simulate -f pod.yaml --at 2h
      kubectl get pod deepseek-0 -o yaml | schedulerlog simulate -f - -o json

    Ends with 0 where it fits, 1 where it does not. The API answers who may read the pod; the cluster at a time needs
    the right to list nodes. Quotas and taints are in a file alone.
    """
    if cluster and at:
        fail("--at: a file is the cluster of one time: leave out --at or --cluster", USAGE)
    pod = _read("--filename", file)
    if cluster:
        found = _decided_here(_read("--cluster", cluster), str(cluster), pod, str(file))
    elif at:
        found = _decided_here(_recorded(asking, at), RECORDED, pod, str(file))
    else:
        found = answered(asking.transport().post("/simulate", pod))
    code = PLACED if found["node"] or not found["diagnosis"] else WAITING
    if not is_printed(asking.output, found, lambda answer: [item for item in [answer["diagnosis"]] if item]):
        _show(Screen(), found, is_wide=asking.output == "wide")
    raise typer.Exit(code)


def _read(flag: str, file: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        complain(f"{flag}: {file}: {error.strerror}")
        raise typer.Exit(USAGE) from None


def _recorded(asking: Asking, at: str) -> bytes:
    text = asking.transport().text("/cluster-file", {"at": at})
    if isinstance(text, Problem):
        end_with(text)
    return text


def _decided_here(cluster: bytes, cluster_name: str, pod: bytes, pod_name: str) -> Json:
    from cli.terminal.simulated_pod import simulated
    from engine.fit.manifests import ManifestError

    try:
        return simulated(cluster, cluster_name, pod, pod_name, datetime.now(UTC))
    except ManifestError as error:
        complain(str(error))
        raise typer.Exit(USAGE) from None


def _show(screen: Screen, found: Json, *, is_wide: bool) -> None:
    if not found["diagnosis"]:
        screen.line(NO_DEVICE)
        return
    log = found["schedulerlog"]
    if found["node"]:
        fitting = log["detail"]["fit_nodes"]
        screen.line(f"It would go to node {found['node']}, one of {fitting:,} where it fits.", "bold")
    else:
        show_diagnosis(screen, found["diagnosis"], found["suggestions"], is_wide=is_wide)
    show_nodes(screen, log, is_wide=is_wide)
