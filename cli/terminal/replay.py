"""``schedulerlog replay``: an attempt decided again on the cluster as it was recorded, next to its record; or a range
of time, as it was and under a change."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, NoReturn

import typer

from cli.client.problems import Problem
from cli.client.requests import build_pod_path
from cli.terminal.answers import end_with, print_document, require_answer
from cli.terminal.exit_codes import PLACED, USAGE, WAITING
from cli.terminal.options import Asking, with_api_options
from cli.terminal.screen import Screen, complain
from cli.terminal.simulation import RECORDED
from cli.terminal.values import format_time
from page.views.amounts import format_gpu_hours
from runtime.cli.cli import fail
from schemas.json_types import Json

_COMPARED: Final = {"chosen": "chosen node", "fit_nodes": "nodes that fit", "reasons": "nodes by reason"}
"""Compared fields of an attempt's details, and their names."""
_STARTS: Final = ("recorded_start", "replayed_start")
_MAX_ROWS: Final = 20
"""Workloads or pods of one table."""


@with_api_options
def replay(
    asking: Asking,
    pod: Annotated[
        str, typer.Argument(metavar="POD", help="NAME or NAMESPACE/NAME; none with --since.", show_default=False)
    ] = "",
    attempt: Annotated[str, typer.Option(metavar="ID", help="An attempt of the pod; default: its latest.")] = "",
    since: Annotated[
        str, typer.Option(metavar="TIME", help="Replay all pods since then: 2h, 7d ago, or RFC 3339.")
    ] = "",
    until: Annotated[str, typer.Option(metavar="TIME", help="End of that range; default: now.")] = "",
    node_policy: Annotated[str, typer.Option(metavar="binpack|spread", help="Another policy for nodes.")] = "",
    device_policy: Annotated[
        str, typer.Option(metavar="POLICY", help="Another policy for devices: binpack, spread, topology-aware, …")
    ] = "",
    split: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=1_000, help="Containers that may share an NVIDIA device.")
    ] = None,
    add_node: Annotated[
        list[str] | None,
        typer.Option(metavar="like:NODE=N", help="More nodes like one that was there; more than once."),
    ] = None,
) -> None:
    """Decide again what is recorded: an attempt of a pod, or a range of time under another policy or with more nodes.

    \b
    Examples:
      schedulerlog replay llm/deepseek-0
      schedulerlog replay --since 7d --node-policy spread
      schedulerlog replay --since 7d --split 4 --add-node like:node3=2

    An attempt is compared with its record: the exit code is 0 if the chosen node, the number of nodes that fit and the
    reasons are equal, 1 if not. A range is replayed as it was and with the change, and the answer is who waits less and
    who longer; the exit code is 1 where the replay as it was is not like the record. Needs the right to list nodes, and
    for a range all pods.
    """
    words = [node_policy, device_policy, split, add_node]
    if bool(pod) == bool(since):
        fail("name either a pod or, with --since, a range of time", USAGE)
    if not since:
        if until or any(words):
            fail("--until and changes are about a range: give --since in place of a pod", USAGE)
        _replay_attempt(asking, pod, attempt)
    if attempt or not any(words):
        fail("a range is replayed under a change: --node-policy, --device-policy, --split or --add-node", USAGE)
    _replay_range(
        asking, {"since": since, "until": until}, (node_policy, device_policy), split, ",".join(add_node or ())
    )


def _replay_attempt(asking: Asking, pod: str, attempt: str) -> NoReturn:
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


def _replay_range(
    asking: Asking, times: Mapping[str, str], policies: tuple[str, str], split: int | None, additions: str
) -> NoReturn:
    from engine.capacity.added_nodes import AdditionError, parse_additions
    from engine.capacity.replay import ReplayChange
    from engine.capacity.replayed_waits import compare_ranges
    from engine.fit import device_config
    from engine.fit.judge.request.pod_annotations import DEVICE_POLICIES, NODE_POLICIES
    from schemas.answers.replays import Recording

    node_policy, device_policy = policies
    for flag, text, accepted in (
        ("--node-policy", [node_policy], NODE_POLICIES),
        ("--device-policy", device_policy.split(","), DEVICE_POLICIES),
    ):
        if unknown := {word for word in text if word}.difference(accepted):
            fail(f"{flag}: {min(unknown)!r} is not known, write {' or '.join(sorted(accepted))}", USAGE)
    try:
        change = ReplayChange(node_policy, device_policy, split, tuple(parse_additions(additions)))
        query = {name: text for name, text in times.items() if text}
        recording = Recording.model_validate(require_answer(asking.create_transport().get("/recording", query)))
        answer = compare_ranges(recording, change, device_config.read_shipped()).model_dump(mode="json")
    except AdditionError as error:
        fail(f"--add-node: {error}", USAGE)
    if not print_document(asking.output, answer):
        _show_range(Screen(), answer)
    raise typer.Exit(PLACED if answer["is_reproduced"] else WAITING)


def _show_range(screen: Screen, answer: Json) -> None:
    screen.print_line(answer["sentence"]["en"], "bold")
    screen.print_line(f"{format_time(answer['since'])} to {format_time(answer['until'])} UTC", "dim")
    screen.skip_line()
    rows = [
        [name, f"{waits['started']:,}", f"{waits['waiting']:,}", format_gpu_hours(waits["gpu_hours"])]
        for name, field in (("recorded", "recorded"), ("replayed", "unchanged"), ("with the change", "changed"))
        if (waits := answer[field])
    ]
    screen.print_table(["", "#STARTED", "#WAITING", "#GPU HOURS WAITED"], rows)
    for title, field in (("Wait less", "shorter"), ("Wait longer", "longer")):
        if answer[field]:
            screen.skip_line()
            screen.print_line(title, "bold")
            _show_workloads(screen, answer[field])
    if answer["differing"] and not answer["is_reproduced"]:
        screen.skip_line()
        screen.print_line("Not like the record", "bold")
        starts = [
            [f"{pod['namespace']}/{pod['name']}", *(_write_start(pod[name]) for name in _STARTS)]
            for pod in answer["differing"][:_MAX_ROWS]
        ]
        screen.print_table(["POD", "RECORDED START", "REPLAYED START"], starts, indent=2)
        _show_rest(screen, len(answer["differing"]))
    screen.skip_line()
    for note in answer["notes"]:
        screen.print_line(note["en"], "dim")


def _write_start(time: str | None) -> str:
    return format_time(time) or "none"


def _show_rest(screen: Screen, rows: int) -> None:
    if rows > _MAX_ROWS:
        screen.print_line(f"… and {rows - _MAX_ROWS:,} more (-o json has all)", "dim", indent=2)


def _show_workloads(screen: Screen, workloads: list[Json]) -> None:
    rows = [
        [
            f"{row['namespace']}/{row['workload']}",
            f"{row['pods']:,}",
            f"{row['started_before']:,} → {row['started_after']:,}",
            f"{format_gpu_hours(row['before_gpu_hours'])} → {format_gpu_hours(row['after_gpu_hours'])}",
        ]
        for row in workloads[:_MAX_ROWS]
    ]
    screen.print_table(["WORKLOAD", "#PODS", "#STARTED", "#GPU HOURS WAITED"], rows, indent=2)
    _show_rest(screen, len(workloads))


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
