"""``schedulerlog simulate``: where a pod of a file would go, decided in this process by the scheduler's own fit.

The cluster is a file, or what the API has recorded of it.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from client.problems import Problem
from terminal.answers import end_with, is_printed
from terminal.exit_codes import PLACED, USAGE, WAITING
from terminal.options import Asking, asks
from terminal.screen import Screen, complain
from terminal.why import show_diagnosis, show_nodes

if TYPE_CHECKING:
    from terminal.simulated_pod import SimulatedPod

RECORDED: Final = "the recorded cluster"


@asks
def simulate(
    asking: Asking,
    file: Annotated[Path, typer.Option("--filename", "-f", help="One Pod in YAML or JSON; - is standard input.")],
    cluster: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="`kubectl get nodes,pods -A -o yaml`; default: as the API has recorded it."),
    ] = None,
    at: Annotated[str, typer.Option(metavar="TIME", help="The recorded cluster at this time; default: now.")] = "",
) -> None:
    """Where a pod would go, or why it would wait and what would have to change. Nothing is written.

    \b
    Examples:
      schedulerlog simulate -f pod.yaml --cluster cluster.yaml
      schedulerlog simulate -f pod.yaml --at 2h
      kubectl get pod deepseek-0 -o yaml | schedulerlog simulate -f - -o json

    Ends with 0 where it fits, 1 where it does not. The recorded cluster has devices and what is held of them, and needs
    the right to list nodes; quotas and taints are in a file alone.
    """
    from fit.manifests import ManifestError
    from terminal.simulated_pod import simulated

    pod = _read("--filename", file)
    recorded = _read("--cluster", cluster) if cluster else _recorded(asking, at)
    try:
        found = simulated(recorded, str(cluster or RECORDED), pod, str(file), datetime.now(UTC))
    except ManifestError as error:
        complain(str(error))
        raise typer.Exit(USAGE) from None
    if found is None:
        complain("The pod asks for no device: every node that kube-scheduler takes would do.")
        raise typer.Exit(PLACED)
    code = PLACED if found.chosen else WAITING
    if not is_printed(asking, found.document(), lambda _: [found.diagnosis]):
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


def _show(screen: Screen, found: "SimulatedPod", *, is_wide: bool) -> None:
    if found.chosen:
        fitting = found.log["detail"]["fit_nodes"]
        screen.line(f"It would go to node {found.chosen}, one of {fitting} where it fits.", "bold")
    else:
        show_diagnosis(screen, found.diagnosis, {"items": found.suggestions}, is_wide=is_wide)
    show_nodes(screen, found.log, is_wide=is_wide)
