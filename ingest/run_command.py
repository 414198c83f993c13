"""A command that reads a log and publishes its events to Kafka, or explains one pod of it."""

import asyncio
import gc
import logging
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from ingest.checkpoint import Checkpoint, CheckpointState
from ingest.errors import MistakeError
from ingest.explain import PodExplanation
from ingest.kafka import KafkaSink
from ingest.metrics import Metrics
from ingest.options import LogOptions
from ingest.protocol import LogReader
from ingest.pump import LinesRead, run
from ingest.report import report
from ingest.sources.blocks import UnreadableFileError
from ingest.sources.follow import Reached, follow, read_file, read_standard_input
from ingest.sources.pod_log import PodContainer, Since, follow_pod
from kube.client import Client
from kube.credentials import ApiCredentials, from_kubeconfig, in_cluster
from process import logs, variables
from process.health import always, serving
from schemas.events import Event

STANDARD_INPUT = "-"
NODES_A_PAGE = 500
INTERRUPTED = 130
"""The exit code of shells for a process that SIGINT ended."""

_COLUMNS = (
    TextColumn("{task.description}"),
    BarColumn(),
    DownloadColumn(),
    TransferSpeedColumn(),
    TimeRemainingColumn(),
)


def collect_seldom() -> None:
    """Run the garbage collector rarely: it takes a seventh of the time, and readers make no reference cycles."""
    gc.set_threshold(200_000, 50, 100)


def read(name: str, asked: LogOptions, reader: LogReader) -> None:
    """Read what the options ask for; ``name`` is that of the command. Raises ``ReadingError``, ``SettingError``."""
    # An explanation is read by a person at a terminal: the log of this process would only disturb.
    logs.configure(logging.WARNING if asked.explain else logging.INFO)
    collect_seldom()
    if bool(asked.logs) == bool(asked.pod):
        raise MistakeError("what is to be read? Give files, - for standard input, or --pod NAMESPACE/NAME")
    if asked.pod and asked.explain:
        raise MistakeError("a pod's log has no end: pipe `kubectl logs` into - to explain from it")
    if asked.follow and asked.explain:
        raise MistakeError("a log that is followed has no end: leave out --follow to explain from it")
    # Held while reading: two processes with one checkpoint would each move it past what the other has read.
    kept = _checkpoint(name, asked)
    with kept.held() if kept else nullcontext():
        _read(name, asked, reader, kept)
    typer.echo(report(reader.counts), err=True)


def _read(name: str, asked: LogOptions, reader: LogReader, kept: Checkpoint | None) -> None:
    state = kept.load() if kept else CheckpointState()
    if state.memory:
        try:
            reader.restore(state.memory)
        except ValueError as error:
            typer.echo(f"{asked.checkpoint}: {error}; reading from the start, which repeats no id", err=True)
            # Ids follow from the text, so what is published again is known by its id.
            state = CheckpointState()
    if asked.explain:
        _explain(name, asked, reader)
    else:
        _publish_until_stopped(name, asked, reader, kept, state)


def _publish_until_stopped(
    name: str, asked: LogOptions, reader: LogReader, kept: Checkpoint | None, state: CheckpointState
) -> None:
    """Raises ``typer.Exit`` where a log that has an end was not read to it."""
    try:
        asyncio.run(_publish(name, asked, reader, kept, state))
    except KeyboardInterrupt:  # the way to end a log that is followed
        if asked.follow or asked.pod:
            return
        typer.echo(report(reader.counts), err=True)
        again = "continue after what Kafka took" if kept else "read the log again, whose events keep their ids"
        typer.echo(f"interrupted before the end of the log; start again to {again}", err=True)
        raise typer.Exit(INTERRUPTED) from None


def servers_of(kafka: str | None) -> str:
    """Raises ``MistakeError`` where neither the option nor the environment names a broker."""
    if kafka:
        return kafka
    raise MistakeError(f"where is Kafka? Give --kafka HOST:PORT or ${variables.KAFKA}, or ask a log --explain POD")


def _checkpoint(name: str, asked: LogOptions) -> Checkpoint | None:
    if asked.checkpoint is None:
        return None
    files = [str(path) for path in asked.logs or ()]
    # A pipe can't be read again from a place in it, and a place belongs to one log.
    if asked.explain or (not asked.pod and (len(files) != 1 or files[0] == STANDARD_INPUT)):
        raise MistakeError("--checkpoint goes with one file or pod, and not with --explain")
    return Checkpoint(asked.checkpoint, name, asked.pod or files[0])


def _explain(name: str, asked: LogOptions, reader: LogReader) -> None:
    explanation = PodExplanation(asked.explain or "")
    try:
        asyncio.run(run(_found(asked, CheckpointState()), reader, _Explaining(explanation), Metrics(name)))
    except UnreadableFileError as error:
        # A log that is torn (a truncated gzip) still answers for what was before the tear.
        explanation.add(reader.close())
        if not explanation.pods:
            raise
        typer.echo(f"{error}; the answer is from the part before that", err=True)
    answer = explanation.answer(is_full=asked.detail)
    if answer is None:
        raise MistakeError(f"{explanation.absence(reader.counts)}\n{report(reader.counts)}")
    if len(explanation.pods) > 1:
        pods, latest = ", ".join(explanation.pods), explanation.summaries()[-1].pod
        typer.echo(f"{pods}: the latest attempt, which follows, is of {latest}", err=True)
    # The answer alone goes to standard output, so that it can be piped.
    typer.echo(answer, nl=False)


@dataclass(frozen=True, slots=True)
class _Explaining:
    explanation: PodExplanation

    async def send(self, events: Sequence[Event]) -> None:
        self.explanation.add(events)


async def _publish(
    name: str, asked: LogOptions, reader: LogReader, checkpoint: Checkpoint | None, state: CheckpointState
) -> None:
    metrics, sink = Metrics(name), KafkaSink(servers_of(asked.kafka))
    with serving(asked.metrics_address, metrics.registry, always, sink.waiting_for):
        async with sink:
            await run(_found(asked, state), reader, sink, metrics, checkpoint)


async def _found(asked: LogOptions, state: CheckpointState) -> AsyncIterator[LinesRead]:
    if asked.pod:
        async for found in _pod(asked, state):
            yield found
    for path in asked.logs or ():
        if str(path) == STANDARD_INPUT:
            async for lines in read_standard_input():
                yield LinesRead(lines, Reached(lines.end))
        elif asked.follow:
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


async def _pod(asked: LogOptions, state: CheckpointState) -> AsyncIterator[LinesRead]:
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
    """The rest of a file after ``reached``, with a progress bar on a terminal."""
    with Progress(*_COLUMNS, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as progress:
        task = progress.add_task(path.name, total=path.stat().st_size if path.exists() else 0)
        for lines, reached_there, packed_bytes in read_file(path, reached):
            progress.update(task, completed=packed_bytes)
            yield LinesRead(lines, reached_there)
