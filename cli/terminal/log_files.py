"""``schedulerlog explain PATH… [POD]``: the pods in logs, objects and folders of both, without any server."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NoReturn

import typer

from cli.terminal.answers import Format, SentenceLanguage, print_document
from cli.terminal.details import show_details, show_findings, show_scores
from cli.terminal.diagnosed import show_diagnosis
from cli.terminal.exit_codes import PLACED, UNKNOWN, USAGE, to_state_exit_code
from cli.terminal.log_rows import build_rows, suggest, write_pod
from cli.terminal.progress import ReadingProgress
from cli.terminal.screen import Screen, complain, format_count
from cli.terminal.values import format_time
from cli.terminal.workloads import iterate_pods, show_workload, to_workload_exit_code
from engine.cases.workload_words import Subject, parse_subject
from page.views.log_pods import list_pods
from runtime.kubernetes.object_fields import get_text
from schemas.json_types import Json

if TYPE_CHECKING:
    from ingest.cases.read_case import ClusterCase

_MAX_ANSWERS: Final = 3
"""Limit of the pods, and of the workloads without pods, that are answered about without being named."""
_MAX_UNMADE: Final = 20
"""Limit of the workloads without pods that are listed."""


def explain(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH… [POD|KIND/NAME]",
            help="Logs, objects (YAML, JSON), folders and archives of both; - is standard input. Then NAME, "
            "NAMESPACE/NAME or job/NAME; default: a table of all pods.",
        ),
    ],
    output: Annotated[
        Format, typer.Option("--output", "-o", metavar="wide|json|yaml|name", help="More columns, or for programs.")
    ] = "text",
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="With -o json: the API's full answer, every node and device, in place of the diagnosis."
        ),
    ] = False,
    nodes: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Output of `kubectl get nodes -o json`: nodes, memory and pools of devices."),
    ] = None,
    timezone: Annotated[
        str, typer.Option(metavar="ZONE", help="Time zone of the log, such as Asia/Shanghai; klog lines have none.")
    ] = "UTC",
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for the answer as a page that needs no other file.")
    ] = None,
    hami_version: Annotated[
        str,
        typer.Option(metavar="VERSION", help="Release of HAMi, such as 2.8; default: that of the objects, or 2.10."),
    ] = "",
    *,
    language: SentenceLanguage,
) -> None:
    """Explain from files why pods wait, or why they are where they are; needs no server.

    \b
    Examples:
      schedulerlog explain hami.log
      schedulerlog explain hami.log llm/deepseek-0
      schedulerlog explain objects.yaml hami.log llm/deepseek-0
      schedulerlog explain objects.yaml job/train
      schedulerlog explain hami.log llm/deepseek-0 -o json --full
      schedulerlog explain hami.log --html why.html
      kubectl logs -n kube-system deploy/hami-scheduler -c vgpu-scheduler-extender | schedulerlog explain -
      kubectl get pods,nodes,events,pvc,resourcequotas -A -o yaml | schedulerlog explain - llm/deepseek-0

    Reads logs of schedulers, and Kubernetes objects, on which it judges the pod as the scheduler would. With a pod it
    ends with the exit codes of `why`.
    """
    paths, pod = _divide_words(words)
    if full and (not pod or output not in ("json", "yaml")):
        _stop("--full: name a pod and write -o json or -o yaml", USAGE)
    from ingest.cases.answers import explain_emptiness

    subject, case = parse_subject(pod), _read_files(paths, nodes, timezone)
    if hami_version:
        from cli.terminal.simulation import parse_hami_version

        case.objects = replace(case.objects, hami_release=parse_hami_version(hami_version))
    if subject.word and not _has_pod(case, pod):
        raise typer.Exit(_explain_workload(case, subject, _name_source(paths), output))
    names = _select(case, paths, pod if subject.word else _name_subject(subject))
    source = _name_source(paths)
    has_details = bool(pod) or bool(html) or len(names) <= _MAX_ANSWERS
    rows = build_rows(case, names, has_details=has_details)
    if html and rows:
        _write_page(html, Path(source).name, rows, language)
    elif html and not _diagnose_unmade(case):
        _stop(f"--html: no page without a pod: {explain_emptiness(source, case)}", UNKNOWN)
    elif html:
        _stop(
            f"--html: a page is about pods, and {source} has only workloads; leave it out to read about them", UNKNOWN
        )
    if not pod:
        unmade = _diagnose_unmade(case)
        document = {"items": rows, **({"workloads": unmade} if unmade else {})}
        if not rows and not unmade and output == "text":
            _stop(explain_emptiness(source, case), UNKNOWN)
        if not print_document(output, document, lambda answer: [row["diagnosis"] for row in answer["items"]]):
            _show_table(Screen(), source, rows, is_wide=output == "wide")
            _show_answers(rows, is_wide=output == "wide")
            _show_unmade(Screen(), unmade, source, is_wide=output == "wide")
            if 0 < len(unmade) <= _MAX_ANSWERS and len(rows) <= _MAX_ANSWERS:
                _show_workloads(case, unmade, is_wide=output == "wide")
            _show_log_notes(Screen(), case)
        raise typer.Exit(PLACED)
    diagnosis = rows[0]["diagnosis"]
    if not print_document(output, _write_full(case, names[0]) if full else write_pod(rows[0]), lambda answer: [answer]):
        _show_answer(rows[0], is_wide=output == "wide")
    raise typer.Exit(to_state_exit_code(diagnosis["state"]))


def _has_few_questions(rows: list[Json]) -> bool:
    """Tell whether the files are about so few pods that the answers to all of them fit the screen."""
    return len(rows) <= _MAX_ANSWERS and any(row["diagnosis"]["obstacle"] for row in rows)


def _show_answers(rows: list[Json], *, is_wide: bool) -> None:
    """Show the answers about a few pods, pods with the same sentence once."""
    if not _has_few_questions(rows):
        return
    questions: dict[str, Mapping[str, Any]] = {}
    for row in list_pods(rows)[0]:
        if row["diagnosis"]["obstacle"]:
            questions.setdefault(row["diagnosis"]["sentence"]["en"], row)
    for row in questions.values():
        if len(rows) > 1:
            Screen().print_line(f"{row['diagnosis']['namespace']}/{row['diagnosis']['name']}", "bold")
        _show_answer(row, is_wide=is_wide)


def _show_workloads(case: "ClusterCase", unmade: list[Json], *, is_wide: bool) -> None:
    for answer in unmade:
        show_workload(Screen(), answer, lambda diagnosis: suggest(case, diagnosis), is_wide=is_wide)


def _show_answer(row: Mapping[str, Any], *, is_wide: bool) -> None:
    screen, diagnosis = Screen(), row["diagnosis"]
    show_diagnosis(screen, diagnosis, row["suggestions"], is_wide=is_wide)
    show_scores(screen, row["scores"])
    show_details(screen, diagnosis, row["node"], is_wide=is_wide)
    show_findings(screen, row["findings"])


def _divide_words(words: list[str]) -> tuple[list[Path], str]:
    """Divide the words of the command into paths and a pod, the last word unless it is a path."""
    *paths, last = words
    is_path = not paths or last == "-" or Path(last).exists()
    return [Path(word) for word in (words if is_path else paths)], "" if is_path else last


def _name_subject(subject: Subject) -> str:
    return f"{subject.namespace}/{subject.name}" if subject.namespace else subject.name


def _read_files(paths: list[Path], nodes: Path | None, timezone: str) -> "ClusterCase":
    """Read the case; ends the command if nothing of it can be read."""
    from ingest.cases.read_case import read_case
    from ingest.errors import MistakeError
    from ingest.readers.registry import LogFacts
    from ingest.sources.log_facts import parse_zone, read_node_list
    from ingest.sources.pieces import UnreadableFileError

    progress = ReadingProgress()
    try:
        facts = LogFacts(read_node_list(nodes, bytes) if nodes else b"", parse_zone(timezone))
        case = read_case(paths, facts._replace(show_progress=progress.show))
    except (MistakeError, UnreadableFileError) as error:
        progress.erase()
        _stop(str(error), USAGE)
    finally:
        progress.erase()
    for problem in case.problems:
        complain(problem)
    return case


def _has_pod(case: "ClusterCase", pod: str) -> bool:
    """Tell whether the words name a pod: a namespace may be called as a kind, such as ``jobs``."""
    from ingest.cases.answers import select_pods

    return bool(select_pods(case, pod))


def _select(case: "ClusterCase", paths: list[Path], pod: str) -> list[str]:
    """Select the named pod, or all; ends the command if there is none."""
    from ingest.cases.answers import explain_absence, select_pods
    from ingest.reading.protocol import report_counts

    names = select_pods(case, pod)
    if pod and not names:
        if not case.pods.pods and case.counts:
            complain(report_counts(case.counts))
        _stop(explain_absence(_name_source(paths), pod, case), UNKNOWN)
    if pod and len(names) > 1:
        _stop(f"{pod} is in several namespaces: name one of {', '.join(names)}", USAGE)
    return names


def _explain_workload(case: "ClusterCase", subject: Subject, source: str, output: Format) -> int:
    """Explain a workload of the case and return the exit code; ends the command if it is not there."""
    from engine.cases.workloads import find_workloads
    from ingest.cases.workload_answers import diagnose_workload, explain_missing_workload

    keys = find_workloads(case.objects, subject.word, subject.name, subject.namespace)
    if not keys:
        _stop(explain_missing_workload(source, case.objects, subject.word, subject.name), UNKNOWN)
    if len(namespaces := sorted({key.namespace for key in keys})) > 1:
        names = ", ".join(f"{namespace}/{subject.word}/{subject.name}" for namespace in namespaces)
        _stop(f"{subject.word}/{subject.name} is in several namespaces: name one of {names}", USAGE)
    answer = diagnose_workload(case, keys[0]).model_dump(mode="json")
    if not print_document(output, answer, iterate_pods):
        show_workload(Screen(), answer, lambda diagnosis: suggest(case, diagnosis), is_wide=output == "wide")
    return to_workload_exit_code(answer)


def _write_full(case: "ClusterCase", name: str) -> Json:
    from ingest.cases.answers import write_schedulerlog

    if name not in case.pods.pods:
        _stop(f"--full: no log or event reports an attempt of {name}", UNKNOWN)
    return write_schedulerlog(case.pods.pods[name])


def _name_source(paths: list[Path]) -> str:
    return " ".join("standard input" if str(path) == "-" else str(path) for path in paths)


def _write_page(file: Path, source: str, rows: list[Json], language: Literal["en", "zh"]) -> None:
    from page.log_file import render_log_file

    try:
        file.write_text(render_log_file(source, rows, language), "utf-8")
    except OSError as error:
        _stop(f"--html: {file} can't be written: {error.strerror}", USAGE)


def _stop(text: str, code: int) -> NoReturn:
    """End the command; the text may name pods of the log."""
    complain(text)
    raise typer.Exit(code)


def _show_table(screen: Screen, source: str, rows: list[Json], *, is_wide: bool) -> None:
    ordered, placed = list_pods(rows)
    waiting = len(rows) - placed
    screen.print_line(f"{format_count(len(rows), 'pod')} in {source}: {placed:,} placed, {waiting:,} not.", "bold")
    if not rows:
        return
    screen.skip_line()
    columns = ["POD", "STATUS", "NODE", "#ATTEMPTS", "MAIN OBSTACLE"]
    cells = [_to_cells(row)[: 6 if is_wide else 5] for row in ordered]
    screen.print_table([*columns, "LAST (UTC)"] if is_wide else columns, cells, is_wide=is_wide)
    screen.skip_line()
    if waiting and not _has_few_questions(rows):
        first = ordered[0]["diagnosis"]
        screen.print_line(f"Why one of them: schedulerlog explain {source} {first['namespace']}/{first['name']}", "dim")


def _diagnose_unmade(case: "ClusterCase") -> list[Json]:
    """Diagnose workloads of which no pod exists: what keeps them lies before every scheduler."""
    if not case.objects.tables:
        return []
    pods = case.objects.tables.get("Pod", {}).values()
    has_pasted = any(not get_text(pod, "metadata", "uid") for pod in pods)
    from engine.cases.unmade_causes import list_unmade
    from ingest.cases.workload_answers import diagnose_workload

    keys = list_unmade(case.objects)[:_MAX_UNMADE]
    answers = [diagnose_workload(case, key).model_dump(mode="json") for key in keys]
    # A workload next to the events of a pod is what the pod was made of, as far as anybody knows.
    unknown = ("NotFromCluster", "PodsNotRead") if has_pasted else ()
    return [answer for answer in answers if _get_main_code(answer["groups"]) not in unknown]


def _show_unmade(screen: Screen, unmade: list[Json], source: str, *, is_wide: bool) -> None:
    if not unmade:
        return
    screen.skip_line()
    screen.print_line(f"{format_count(len(unmade), 'workload')} without any pod.", "bold")
    screen.skip_line()
    words = [f"{answer['kind'].partition('.')[0].lower()}/{answer['name']}" for answer in unmade]
    cells = [
        [f"{answer['namespace']}/{word}", f"{answer['waiting']:,}", _get_main_code(answer["groups"])]
        for answer, word in zip(unmade, words, strict=True)
    ]
    screen.print_table(["WORKLOAD", "#PODS", "MAIN OBSTACLE"], cells, is_wide=is_wide)
    screen.skip_line()
    screen.print_line(f"Why one of them: schedulerlog explain {source} {words[0]}", "dim")


def _get_main_code(groups: list[Json]) -> str:
    return groups[0]["obstacle"]["code"] if groups and groups[0]["obstacle"] else ""


def _show_log_notes(screen: Screen, case: "ClusterCase") -> None:
    """Show the states of the scheduler that its log reports, which concern every pod."""
    from ingest.cases.answers import list_log_notes

    if notes := list_log_notes(case):
        screen.skip_line()
        screen.print_line("The log also says", "bold")
        for note in notes:
            screen.print_line(note, indent=2)


def _to_cells(row: Mapping[str, Any]) -> list[str]:
    diagnosis = row["diagnosis"]
    obstacle = diagnosis["obstacle"]
    return [
        f"{diagnosis['namespace']}/{diagnosis['name']}",
        diagnosis["state"],
        "–" if row["node"] == "?" else row["node"],
        str(row["attempts"]),
        obstacle["code"] if obstacle else "",
        format_time(row["started_at"]) if row["started_at"] else "",
    ]
