"""``schedulerlog why POD``: why it waits, or why it is where it is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.client.requests import build_pod_path, build_workload_path
from cli.client.transport import Transport
from cli.terminal.answers import print_document, require_answer
from cli.terminal.details import show_details, show_findings, show_nodes, show_scores
from cli.terminal.diagnosed import show_diagnosis
from cli.terminal.exit_codes import USAGE, to_state_exit_code
from cli.terminal.options import Asking, with_api_options
from cli.terminal.pod_answer import fetch_all, join_parts, list_parts
from cli.terminal.screen import Screen, complain, format_count
from cli.terminal.workloads import iterate_pods, show_workload, to_workload_exit_code
from runtime.cli.cli import fail

if TYPE_CHECKING:
    from cli.direct.transport import DirectTransport


@with_api_options
def why(
    asking: Asking,
    pod: Annotated[
        str,
        typer.Argument(metavar="POD|KIND/NAME", help="NAME, NAMESPACE/NAME, job/NAME, podgroup/NAME, …"),
    ],
    attempt: Annotated[str, typer.Option(metavar="ID", help="Attempt to explain; default: the present state.")] = "",
    watch: Annotated[bool, typer.Option("--watch", "-w", help="The answer again after each further decision.")] = False,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="New archive (.tgz) for what was read of the cluster, with replaced names."),
    ] = None,
) -> None:
    """Explain why a pod waits, or why it is where it is, and what would have to change.

    \b
    Examples:
      schedulerlog why deepseek-0
      schedulerlog why llm/deepseek-0 -o wide
      schedulerlog why deepseek-0 -n llm -o json
      schedulerlog why job/train -n llm
      schedulerlog why job/train -n llm --save case.tgz

    A workload (job, cronjob, deployment, replicaset, statefulset, vcjob, workload, podgroup, …) is answered from the
    cluster's objects, with its pods by what keeps them; with --api-url the API reads them.

    Exits with 0 if the pod is placed, 1 if it was refused or waits, 3 if nothing is recorded about it, 4 if you may
    not read it, 5 if the API does not answer.
    """
    namespace, word, name = asking.parse_subject(pod)
    if watch and (attempt or word):
        fail("--watch: follows a pod, and an attempt does not change: leave out --attempt", USAGE)
    if save and (watch or attempt or asking.api_url):
        fail("--save: the cluster is saved as kubectl reads it now: leave out --watch, --attempt and --api-url", USAGE)
    if word:
        raise typer.Exit(_answer_workload(asking, build_workload_path(namespace, word, name), save))
    if save:
        cluster = asking.create_cluster_transport()
        code = _answer(asking, cluster, namespace, name, attempt)
        _save(cluster, save)
        raise typer.Exit(code)
    transport = asking.create_transport()
    code = _answer(asking, transport, namespace, name, attempt)
    if watch:
        from cli.terminal.watching import follow_later

        for _ in follow_later(transport, build_pod_path(namespace, name, "schedulerlog"), {}):
            Screen().draw_rule()
            code = _answer(asking, transport, namespace, name, attempt)
    raise typer.Exit(code)


def _answer(asking: Asking, transport: Transport, namespace: str, name: str, attempt: str) -> int:
    """Print the answer and return its exit code."""
    diagnosis = require_answer(transport.get(build_pod_path(namespace, name, "diagnosis"), {"attempt": attempt}))
    code = to_state_exit_code(diagnosis["state"])
    if asking.output == "name":
        print_document(asking.output, diagnosis, lambda document: [document])
        return code
    log = f"/attempts/{attempt}" if attempt else build_pod_path(namespace, name, "schedulerlog")
    parts = list_parts(diagnosis["state"], namespace, name, attempt)
    is_document = asking.output in ("json", "yaml")
    questions = list(parts.values()) if is_document else [*parts.values(), (log, {"detail": "full"})]
    answers = fetch_all(transport, questions)
    document = join_parts(diagnosis, dict(zip(parts, answers, strict=False)))
    if print_document(asking.output, document, lambda document: [document]):
        return code
    screen, is_wide = Screen(), asking.output == "wide"
    show_diagnosis(screen, diagnosis, document["suggestions"], is_wide=is_wide)
    show_scores(screen, document["scores"])
    show_nodes(screen, answers[-1], is_wide=is_wide)
    show_details(screen, diagnosis, "", is_wide=is_wide)
    show_findings(screen, document["findings"])
    return code


def _answer_workload(asking: Asking, path: str, save: Path | None) -> int:
    """Print the answer about a workload and return its exit code."""
    # Without a URL the cluster itself: to read objects takes no more rights than the aggregated API does.
    cluster = None if asking.api_url else asking.create_cluster_transport()
    transport = cluster or asking.create_transport()
    answer = require_answer(transport.get(path))
    if not print_document(asking.output, answer, iterate_pods):
        show_workload(
            Screen(),
            answer,
            lambda pod: transport.get(build_pod_path(pod["namespace"], pod["name"], "suggestions")),
            is_wide=asking.output == "wide",
        )
    if save and cluster:
        _save(cluster, save)
    return to_workload_exit_code(answer)


def _save(cluster: "DirectTransport", file: Path) -> None:
    """Save what the answer was read from; ends the command if the file can't be made."""
    try:
        count = cluster.save(file)
    except OSError as error:
        fail(f"--save: {file} can't be made: {error.strerror}", USAGE)
    text = f"{file} has {format_count(count, 'object')} with replaced names, without Secrets and values of variables."
    complain(f"{text} Read it before you send it; `schedulerlog explain {file}` answers from it.")
