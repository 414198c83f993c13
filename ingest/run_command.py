"""What a command asks for, done: a log into Kafka, or one pod of it explained."""

import asyncio
import gc
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import orjson
import typer
from prometheus_client import start_http_server
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from ingest.checkpoint import Checkpoint, CheckpointState
from ingest.explain import Explanation
from ingest.kafka import KafkaSink
from ingest.metrics import Metrics
from ingest.protocol import LogReader
from ingest.pump import LinesRead, run
from ingest.report import report
from ingest.sources.blocks import UnreadableFileError
from ingest.sources.follow import Reached, follow, read_file, read_standard_input
from ingest.sources.pod_log import PodContainer, Since, follow_pod
from kube.client import Client
from kube.credentials import ApiCredentials, from_kubeconfig, in_cluster
from schemas.events import Event

KAFKA_VARIABLE = "SCHEDULERLOG_KAFKA"
STANDARD_INPUT = "-"
NODES_A_PAGE = 500
INTERRUPTED = 130
"""The exit code of shells for what SIGINT has ended."""

_COLUMNS = (
    TextColumn("{task.description}"),
    BarColumn(),
    DownloadColumn(),
    TransferSpeedColumn(),
    TimeRemainingColumn(),
)


class MistakeError(Exception):
    """Something that the person who called can mend, in one line."""


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
    pod: str | None = None
    kubeconfig: Path | None = None
    metrics_port: int | None = None


def collect_seldom() -> None:
    """Readers make many values and none in circles: looking for circles is a seventh of the time of reading."""
    gc.set_threshold(200_000, 50, 100)


def read(asked: Asked, reader: LogReader) -> None:
    """Raises ``MistakeError`` and what the sources, the checkpoint and Kafka raise."""
    collect_seldom()
    if bool(asked.logs) == bool(asked.pod):
        raise MistakeError("what is to be read? Give files, - for standard input, or --pod NAMESPACE/NAME")
    if asked.pod and asked.explain:
        raise MistakeError("a pod's log has no end: pipe `kubectl logs` into - to explain from it")
    if asked.is_followed and asked.explain:
        raise MistakeError("a log that is followed has no end: leave out --follow to explain from it")
    kept = _checkpoint(asked)
    with kept.held() if kept else nullcontext():
        _read(asked, reader, kept)
    typer.echo(report(reader.counts), err=True)


def _read(asked: Asked, reader: LogReader, kept: Checkpoint | None) -> None:
    state = kept.load() if kept else CheckpointState()
    if state.memory:
        try:
            reader.restore(state.memory)
        except ValueError as error:
            typer.echo(f"{asked.checkpoint}: {error}; reading from the start, which tells nothing twice", err=True)
            state = CheckpointState()
    if asked.explain:
        _explain(asked, reader, asked.explain)
    else:
        _publish_until_stopped(asked, reader, kept, state)


def _publish_until_stopped(asked: Asked, reader: LogReader, kept: Checkpoint | None, state: CheckpointState) -> None:
    """Raises ``typer.Exit`` where a log that has an end was not read to it."""
    try:
        asyncio.run(_publish(asked, reader, kept, state))
    except KeyboardInterrupt:  # the way to end a log that is followed
        if asked.is_followed or asked.pod:
            return
        typer.echo(report(reader.counts), err=True)
        again = "go on behind what Kafka took" if kept else "read the log anew, which tells nothing twice"
        typer.echo(f"interrupted before the end of the log; start again to {again}", err=True)
        raise typer.Exit(INTERRUPTED) from None


def servers_of(kafka: str | None) -> str:
    if servers := kafka or os.environ.get(KAFKA_VARIABLE):
        return servers
    raise MistakeError(f"where is Kafka? Give --kafka HOST:PORT or ${KAFKA_VARIABLE}, or ask a log --explain POD")


def _checkpoint(asked: Asked) -> Checkpoint | None:
    if asked.checkpoint is None:
        return None
    if asked.explain or (not asked.pod and (len(asked.logs) != 1 or str(asked.logs[0]) == STANDARD_INPUT)):
        raise MistakeError("--checkpoint goes with one file or pod, and not with --explain")
    return Checkpoint(asked.checkpoint, asked.name, asked.pod or str(asked.logs[0]))


def _explain(asked: Asked, reader: LogReader, pod: str) -> None:
    explanation = Explanation(pod)
    try:
        asyncio.run(run(_found(asked, CheckpointState()), reader, _Explaining(explanation), Metrics(asked.name)))
    except UnreadableFileError as error:
        explanation.add(reader.close())
        if not explanation.pods:
            raise
        typer.echo(f"{error}; the answer is from what stands before that", err=True)
    answer = explanation.answer(is_full=asked.is_full)
    if answer is None:
        raise MistakeError(f"{explanation.absence(reader.counts)}\n{report(reader.counts)}")
    if len(explanation.pods) > 1:
        pods, latest = ", ".join(explanation.pods), explanation.summaries()[-1].pod
        typer.echo(f"{pods}: the latest attempt, which follows, is of {latest}", err=True)
    typer.echo(answer, nl=False)


@dataclass(frozen=True, slots=True)
class _Explaining:
    explanation: Explanation

    async def send(self, events: Sequence[Event]) -> None:
        self.explanation.add(events)


def served_metrics(source: str, port: int | None) -> Metrics:
    """Metrics at ``/metrics`` of the port, where one is given."""
    metrics = Metrics(source)
    if port:
        try:
            start_http_server(port, "127.0.0.1", metrics.registry)
        except OSError as error:
            raise MistakeError(f"--metrics-port {port}: {error.strerror}") from None
    return metrics


async def _publish(asked: Asked, reader: LogReader, checkpoint: Checkpoint | None, state: CheckpointState) -> None:
    metrics = served_metrics(asked.name, asked.metrics_port)
    async with KafkaSink(servers_of(asked.kafka)) as sink:
        await run(_found(asked, state), reader, sink, metrics, checkpoint)


async def _found(asked: Asked, state: CheckpointState) -> AsyncIterator[LinesRead]:
    if asked.pod:
        async for found in _pod(asked, state):
            yield found
    for path in asked.logs:
        if str(path) == STANDARD_INPUT:
            async for lines in read_standard_input():
                yield LinesRead(lines, Reached(lines.end))
        elif asked.is_followed:
            async for lines, reached in follow(path, state.reached):
                yield LinesRead(lines, reached)
        else:
            for found in _whole(path, state.reached):
                yield found


async def _client(kubeconfig: Path | None) -> Client:
    return Client(await ApiCredentials.open(from_kubeconfig(kubeconfig) if kubeconfig else in_cluster))


async def nodes_of_cluster(kubeconfig: Path | None) -> AsyncIterator[bytes]:
    """The cluster's node list, in pages of JSON."""
    client = await _client(kubeconfig)
    try:
        query: dict[str, str | int] = {"limit": NODES_A_PAGE}
        while True:
            page = await client.page("/api/v1/nodes", **query)
            yield orjson.dumps(page)
            if not (token := page["metadata"].get("continue")):
                return
            query["continue"] = token
    finally:
        await client.close()


async def _pod(asked: Asked, state: CheckpointState) -> AsyncIterator[LinesRead]:
    namespace, _, rest = (asked.pod or "").partition("/")
    name, _, container = rest.partition("/")
    if not namespace or not name:
        raise MistakeError(f"--pod {asked.pod}: write NAMESPACE/NAME or NAMESPACE/NAME/CONTAINER")
    client = await _client(asked.kubeconfig)
    try:
        async for lines, since in follow_pod(
            client, PodContainer(namespace, name, container), Since.parse(state.since)
        ):
            yield LinesRead(lines, Reached(), str(since))
    finally:
        await client.close()


def _whole(path: Path, reached: Reached) -> Iterator[LinesRead]:
    """A file from where it was left, with a bar where somebody is looking."""
    with Progress(*_COLUMNS, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as progress:
        task = progress.add_task(path.name, total=path.stat().st_size if path.exists() else 0)
        for lines, behind, packed_bytes in read_file(path, reached):
            progress.update(task, completed=packed_bytes)
            yield LinesRead(lines, behind)
