"""``schedulerlog replay POD``: an attempt decided again on the cluster as it was recorded, next to its record."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import typer

from cli.client.problems import Problem
from cli.client.requests import build_pod_path
from cli.terminal.answers import end_with, print_document, require_answer
from cli.terminal.exit_codes import PLACED, USAGE, WAITING
from cli.terminal.options import Asking, with_api_options
from cli.terminal.screen import Screen, complain
from cli.terminal.simulation import RECORDED
from cli.terminal.values import format_time
from schemas.json_types import Json

_COMPARED: Final = {"chosen": "chosen node", "fit_nodes": "nodes that fit", "reasons": "nodes by reason"}
"""Compared fields of an attempt's details, and their names."""


@with_api_options
def replay(
    asking: Asking,
    pod: Annotated[str, typer.Argument(metavar="POD", help="NAME or NAMESPACE/NAME.")],
    attempt: Annotated[str, typer.Option(metavar="ID", help="An attempt of the pod; default: its latest.")] = "",
) -> None:
    """Decide an attempt again on the devices as they were recorded, and compare the result with the record.

    \b
    Examples:
      schedulerlog replay llm/deepseek-0

    Needs the right to list nodes. Exits with 0 if the chosen node, the number of nodes that fit and the reasons are
    those of the record, 1 if not.
    """
    namespace, name = asking.parse_pod(pod)
    transport = asking.create_transport()
    path = f"/attempts/{attempt}" if attempt else build_pod_path(namespace, name, "schedulerlog")
    record = require_answer(transport.get(path, {"detail": "full", "limit": "1"}))["detail"]
    cluster = transport.get_text(f"/attempts/{record['attempt_id']}/cluster-file")
    if isinstance(cluster, Problem):
        end_with(cluster)
    again = _decide_again(namespace, name, record, cluster)
    answer = {
        "attempt_id": record["attempt_id"],
        "started_at": record["started_at"],
        "recorded": {field: record[field] for field in _COMPARED},
        "replayed": {field: again[field] for field in _COMPARED},
    }
    is_equal = answer["recorded"] == answer["replayed"]
    if not print_document(asking.output, answer | {"is_equal": is_equal}):
        _show(Screen(), f"{namespace}/{name}", answer)
    raise typer.Exit(PLACED if is_equal else WAITING)


def _decide_again(namespace: str, name: str, record: Json, cluster: bytes) -> Json:
    """Decide about a pod with the recorded requests on a cluster's file; returns the details of the attempt."""
    from cli.terminal.simulated_pod import DescribedCluster, DescribedPods, InputFile, simulate_pods
    from engine.fit import device_config
    from engine.fit.manifests import ManifestError
    from page.pod_manifest import write_pod_manifest
    from schemas.answers.attempts import Detail

    manifest = write_pod_manifest(namespace, name, Detail.model_validate(record), device_config.read_shipped())
    described = DescribedCluster([InputFile(cluster, RECORDED)], RECORDED)
    pods = DescribedPods(manifest.encode(), "the pod of the attempt", namespace)
    try:
        log = simulate_pods(described, pods, datetime.now(UTC))["schedulerlog"]
    except ManifestError as error:
        complain(str(error))
        raise typer.Exit(USAGE) from None
    if log is None:
        complain("The record has no request for devices: only such an attempt can be decided again.")
        raise typer.Exit(USAGE)
    detail: Json = log["detail"]
    return detail


def _show(screen: Screen, pod: str, answer: Mapping[str, Any]) -> None:
    recorded, replayed = answer["recorded"], answer["replayed"]
    differing = [field for field in _COMPARED if recorded[field] != replayed[field]]
    tried = f"{pod} was tried at {format_time(answer['started_at'])} UTC"
    if differing:
        names = ", ".join(_COMPARED[field] for field in differing)
        screen.print_line(f"{tried}. The replay differs from the record: {names}.", "bold")
    else:
        screen.print_line(f"{tried}. The replay has the same result.", "bold")
    screen.skip_line()
    rows = [[name, _write(recorded[field]), _write(replayed[field])] for field, name in _COMPARED.items()]
    screen.print_table(["RESULT", "RECORDED", "REPLAYED"], rows)
    if differing:
        screen.skip_line()
        screen.print_line(
            "Quotas, taints and devices of other vendors are not part of the recorded states; among nodes with equal "
            "scores HAMi picks at random.",
            "dim",
        )


def _write(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{code}: {nodes:,}" for code, nodes in sorted(value.items())) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value or "none")
