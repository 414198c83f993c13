"""``python -m ingest NAME LOG…`` reads what a scheduler prints, into Kafka or, with ``--explain POD``, for a person."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from ingest.checkpoint import Checkpoint, CheckpointError, State
from ingest.explain import Explanation
from ingest.hami.reader import HamiLog
from ingest.hami.registry import Cards, cards_of_nodes
from ingest.kafka import KafkaSink, KafkaUnavailableError
from ingest.kai import KaiLog
from ingest.kai.cards import labels_of_nodes
from ingest.kube import KubeEvents
from ingest.kube.watch import watch
from ingest.metrics import Metrics
from ingest.reader import Reader
from ingest.report import report
from ingest.run import Found, run
from ingest.sniffer.reader import UNNAMED_NAMESPACE, SnifferLog
from ingest.sniffer.service import server
from ingest.sources.blocks import UnreadableError
from ingest.sources.follow import Reached, follow, read_file, read_standard_input
from kube.credentials import Load, from_kubeconfig, in_cluster
from kube.errors import KubeConfigError
from schemas.events import Event

KAFKA_VARIABLE = "SCHEDULERLOG_KAFKA"
STANDARD_INPUT = "-"

app = typer.Typer(
    help="Turn what unmodified schedulers say into schedulerlog's events.",
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)

Logs = Annotated[
    list[Path],
    typer.Argument(help="Files, plain or packed (gzip, zstd, tar), in the order they were written; - is stdin."),
]
Explain = Annotated[
    str | None, typer.Option(help="Print the schedulerlog of this pod (name or namespace/name); needs no Kafka.")
]
Detail = Annotated[
    bool, typer.Option("--detail", help="With --explain: all that is known, and what the log leaves open.")
]
Follow = Annotated[bool, typer.Option("--follow", help="Go on as the file grows, over rotation and truncation.")]
CheckpointFile = Annotated[
    Path | None, typer.Option(help="Where to keep how far the log was read; a restart goes on there.")
]
Kafka = Annotated[str | None, typer.Option(help=f"HOST:PORT[,HOST:PORT…]; default: ${KAFKA_VARIABLE}.")]
Scheduler = Annotated[str, typer.Option(help="The scheduler's name, as in the pods' spec.schedulerName.")]


_COLUMNS = (
    TextColumn("{task.description}"),
    BarColumn(),
    DownloadColumn(),
    TransferSpeedColumn(),
    TimeRemainingColumn(),
)


class MistakeError(Exception):
    """Something that the person who called can mend, in one line."""


@contextmanager
def _one_line_for_mistakes() -> Iterator[None]:
    try:
        yield
    except (MistakeError, CheckpointError, UnreadableError, KafkaUnavailableError, KubeConfigError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


@dataclass(frozen=True, slots=True)
class Asked:
    """What the options say, whichever the reader."""

    name: str
    logs: Sequence[Path]
    explain: str | None
    is_full: bool
    is_followed: bool
    checkpoint: Path | None
    kafka: str | None


@app.callback()
def main() -> None:
    """A callback makes the reader's name part of the command, however few readers there are."""


@app.command("hami-log")
def hami_log(
    logs: Logs,
    explain: Explain = None,
    detail: Detail = False,
    follow: Follow = False,
    checkpoint: CheckpointFile = None,
    kafka: Kafka = None,
    scheduler: Scheduler = "hami-scheduler",
    nodes: Annotated[
        Path | None, typer.Option(help="`kubectl get nodes -o json`: says which card sits on which node.")
    ] = None,
    timezone: Annotated[str, typer.Option(help="Of the log's times, which name none.")] = "UTC",
) -> None:
    """HAMi's scheduler log, v2.5 to v2.10, at -v=0 to 5."""
    asked = Asked("hami-log", logs, explain, detail, follow, checkpoint, kafka)
    with _one_line_for_mistakes():
        _read(asked, HamiLog(scheduler, _cards(nodes), _zone(timezone)))


@app.command("kai-log")
def kai_log(
    logs: Logs,
    explain: Explain = None,
    detail: Detail = False,
    follow: Follow = False,
    checkpoint: CheckpointFile = None,
    kafka: Kafka = None,
    nodes: Annotated[
        Path | None, typer.Option(help="`kubectl get nodes -o json`: says how much memory the cards of a node have.")
    ] = None,
) -> None:
    """KAI-Scheduler's log: v0.13 console, v0.17 JSON, and the tags of the GPU debugging patch."""
    asked = Asked("kai-log", logs, explain, detail, follow, checkpoint, kafka)
    with _one_line_for_mistakes():
        _read(asked, KaiLog(_labels(nodes)))


@app.command("sniffer")
def sniffer(
    logs: Annotated[list[Path] | None, typer.Argument(help="The sniffer's log; - is stdin.")] = None,
    listen: Annotated[
        str | None, typer.Option(help="HOST:PORT: serve the sniffer's gRPC service instead of reading its log.")
    ] = None,
    follow: Follow = False,
    checkpoint: CheckpointFile = None,
    kafka: Kafka = None,
    namespace: Annotated[
        str, typer.Option(help="Of the pods; the sniffer's log does not name it.")
    ] = UNNAMED_NAMESPACE,
) -> None:
    """scheduler-sniffer's JSON lines, or what its scheduler sends over gRPC: pods and nodes as they change."""
    with _one_line_for_mistakes():
        if listen and not logs:
            asyncio.run(_serve_sniffer(listen, SnifferLog(namespace), _servers(kafka)))
        elif logs and not listen:
            _read(Asked("sniffer", logs, None, False, follow, checkpoint, kafka), SnifferLog(namespace))
        else:
            raise MistakeError("give the sniffer's log, or --listen HOST:PORT")


async def _serve_sniffer(address: str, reader: SnifferLog, servers: str) -> None:
    stop = _stop_by_signal()
    metrics = Metrics("sniffer")
    async with KafkaSink(servers) as sink:

        async def take(request: dict[str, str]) -> None:
            await sink.send(reader.send(request, datetime.now(UTC)))
            metrics.note(reader.counts)

        try:
            running, port = server(address, take)
        except OSError as error:
            raise MistakeError(str(error)) from None
        await running.start()
        typer.echo(f"listening on {address.rpartition(':')[0]}:{port}", err=True)
        await stop.wait()
        await running.stop(grace=5)
    typer.echo(report(reader.counts), err=True)


def _stop_by_signal() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


@app.command("kube-events")
def kube_events(
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Default: the service account of the pod that this runs in.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="Of the kubeconfig; default: its current one.")] = None,
    namespace: Annotated[str, typer.Option(help="Watch pods and events of this namespace alone.")] = "",
    kafka: Kafka = None,
) -> None:
    """Pods, nodes and events of a Kubernetes cluster, whoever schedules there."""
    with _one_line_for_mistakes():
        load = from_kubeconfig(kubeconfig, context) if kubeconfig else in_cluster
        asyncio.run(_watch(load, namespace, _servers(kafka)))


async def _watch(load: Load, namespace: str, servers: str) -> None:
    stop = _stop_by_signal()
    reader = KubeEvents()
    async with KafkaSink(servers) as sink:
        await watch(load, reader, sink, Metrics("kube-events"), namespace=namespace, until=stop.is_set)
    typer.echo(report(reader.counts), err=True)


def _labels(nodes: Path | None) -> dict[str, int]:
    try:
        return labels_of_nodes(nodes.read_bytes()) if nodes else {}
    except (OSError, ValueError) as error:
        raise MistakeError(f"{nodes}: {error}") from None


def _cards(nodes: Path | None) -> Cards:
    if nodes is None:
        return {}
    try:
        return cards_of_nodes(nodes.read_bytes())
    except (OSError, ValueError) as error:
        raise MistakeError(f"{nodes}: {error}") from None


def _zone(name: str) -> tzinfo:
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise MistakeError(f"--timezone {name}: no such zone; write it as in Asia/Shanghai") from None


def _read(asked: Asked, reader: Reader) -> None:
    kept = _checkpoint(asked)
    state = kept.load() if kept else State()
    if state.memory:
        try:
            reader.restore(state.memory)
        except ValueError as error:
            typer.echo(f"{asked.checkpoint}: {error}; reading from the start, which tells nothing twice", err=True)
            state = State()
    if asked.explain:
        _explain(asked, reader, asked.explain)
    else:
        asyncio.run(_publish(asked, reader, kept, state))
    typer.echo(report(reader.counts), err=True)


def _checkpoint(asked: Asked) -> Checkpoint | None:
    if asked.checkpoint is None:
        return None
    if asked.explain or len(asked.logs) != 1 or str(asked.logs[0]) == STANDARD_INPUT:
        raise MistakeError("--checkpoint goes with one file, and not with --explain")
    return Checkpoint(asked.checkpoint, asked.name, str(asked.logs[0]))


def _explain(asked: Asked, reader: Reader, pod: str) -> None:
    explanation = Explanation(pod)
    asyncio.run(run(_found(asked, State()), reader, _Explaining(explanation), Metrics(asked.name)))
    answer = explanation.answer(is_full=asked.is_full)
    if answer is None:
        raise MistakeError(f"the log says nothing about a pod {pod}\n{report(reader.counts)}")
    if len(explanation.pods) > 1:
        typer.echo(f"{', '.join(explanation.pods)}: the latest attempt of all of them follows", err=True)
    typer.echo(answer, nl=False)


@dataclass(frozen=True, slots=True)
class _Explaining:
    explanation: Explanation

    async def send(self, events: Sequence[Event]) -> None:
        self.explanation.add(events)


async def _publish(asked: Asked, reader: Reader, checkpoint: Checkpoint | None, state: State) -> None:
    async with KafkaSink(_servers(asked.kafka)) as sink:
        await run(_found(asked, state), reader, sink, Metrics(asked.name), checkpoint)


def _servers(kafka: str | None) -> str:
    if servers := kafka or os.environ.get(KAFKA_VARIABLE):
        return servers
    raise MistakeError(f"where is Kafka? Give --kafka HOST:PORT or ${KAFKA_VARIABLE}, or ask a log --explain POD")


async def _found(asked: Asked, state: State) -> AsyncIterator[Found]:
    for path in asked.logs:
        if str(path) == STANDARD_INPUT:
            async for lines in read_standard_input():
                yield Found(lines, Reached(lines.end))
        elif asked.is_followed:
            async for lines, reached in follow(path, state.reached):
                yield Found(lines, reached)
        else:
            for found in _whole(path, state.reached):
                yield found


def _whole(path: Path, reached: Reached) -> Iterator[Found]:
    """A file from where it was left, with a bar where somebody is looking."""
    with Progress(*_COLUMNS, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as progress:
        task = progress.add_task(path.name, total=path.stat().st_size if path.exists() else 0)
        for lines, behind, packed_bytes in read_file(path, reached):
            progress.update(task, completed=packed_bytes)
            yield Found(lines, behind)


if __name__ == "__main__":
    app()
