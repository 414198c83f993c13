"""A command that reads a log and publishes its events to Kafka, or explains one pod of it."""

import asyncio
import gc
import logging
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import typer

from ingest.commands.explain import PodExplanation
from ingest.errors import MistakeError
from ingest.reading.checkpoint import Checkpoint, CheckpointState
from ingest.reading.options import IngestSettings, LogOptions
from ingest.reading.protocol import LogReader
from ingest.reading.pump import LinesRead, run
from ingest.reading.report import report
from ingest.sources.follow import STANDARD_INPUT, Reached, follow, read_file, read_standard_input
from ingest.sources.pieces import UnreadableFileError
from runtime.printable import on_lines
from runtime.telemetry import logs
from schemas.events import Event

INTERRUPTED = 130
"""The exit code of shells for a process that SIGINT ended."""


def collect_seldom() -> None:
    """Run the garbage collector rarely: it takes a seventh of the time, and readers make no reference cycles."""
    gc.set_threshold(200_000, 50, 100)


def read(name: str, settings: IngestSettings, asked: LogOptions, reader: LogReader) -> None:
    """Read what the options ask for; ``name`` is that of the command. Raises ``ReadingError``, ``SettingError``."""
    # An explanation is read by a person at a terminal: the log of this process would only disturb.
    logs.configure(settings, level=logging.WARNING if asked.explain else None)
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
        _read(name, settings, asked, reader, kept)
    typer.echo(report(reader.counts), err=True)


def _read(name: str, settings: IngestSettings, asked: LogOptions, reader: LogReader, kept: Checkpoint | None) -> None:
    state = kept.load() if kept else CheckpointState()
    if state.memory:
        try:
            reader.restore(state.memory)
        except ValueError as error:
            typer.echo(f"{asked.checkpoint}: {error}; reading from the start, which repeats no id", err=True)
            # Ids follow from the text, so what is published again is known by its id.
            state = CheckpointState()
    if asked.explain:
        _explain(asked, reader)
    else:
        _publish_until_stopped(name, settings, asked, reader, kept, state)


def _publish_until_stopped(
    name: str,
    settings: IngestSettings,
    asked: LogOptions,
    reader: LogReader,
    kept: Checkpoint | None,
    state: CheckpointState,
) -> None:
    """Raises ``typer.Exit`` where a log that has an end was not read to it."""
    # An explanation needs neither Kafka's client nor metrics, which are slow to import.
    from ingest.commands.publishing import publish

    try:
        asyncio.run(publish(name, settings, reader, kept, _found(asked, state)))
    except KeyboardInterrupt:  # the way to end a log that is followed
        if asked.follow or asked.pod:
            return
        typer.echo(report(reader.counts), err=True)
        again = "continue after what Kafka took" if kept else "read the log again, whose events keep their ids"
        typer.echo(f"interrupted before the end of the log; start again to {again}", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _checkpoint(name: str, asked: LogOptions) -> Checkpoint | None:
    if asked.checkpoint is None:
        return None
    files = [str(path) for path in asked.logs or ()]
    # A pipe can't be read again from a place in it, and a place belongs to one log.
    if asked.explain or (not asked.pod and (len(files) != 1 or files[0] == STANDARD_INPUT)):
        raise MistakeError("--checkpoint goes with one file or pod, and not with --explain")
    return Checkpoint(asked.checkpoint, name, asked.pod or files[0])


def _explain(asked: LogOptions, reader: LogReader) -> None:
    explanation = PodExplanation(asked.explain or "")
    try:
        asyncio.run(run(_found(asked, CheckpointState()), reader, _Explaining(explanation)))
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
    # Names in a log may hold what a terminal obeys.
    typer.echo(on_lines(answer), nl=False)


@dataclass(frozen=True, slots=True)
class _Explaining:
    explanation: PodExplanation

    async def send(self, events: Sequence[Event]) -> None:
        self.explanation.add(events)


async def _found(asked: LogOptions, state: CheckpointState) -> AsyncIterator[LinesRead]:
    if asked.pod:
        from ingest.commands.from_cluster import pod_lines

        async for found in pod_lines(asked, state):
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


def _whole(path: Path, reached: Reached) -> Iterator[LinesRead]:
    """The rest of a file after ``reached``, with a progress bar on a terminal."""
    with _progress_of(path) as show:
        for lines, reached_there, packed_bytes in read_file(path, reached):
            show(packed_bytes)
            yield LinesRead(lines, reached_there)


@contextmanager
def _progress_of(path: Path) -> Iterator[Callable[[int], None]]:
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    # Slow to import, and only a person sees it.
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn()
    with Progress(
        *columns, TransferSpeedColumn(), TimeRemainingColumn(), console=Console(stderr=True), transient=True
    ) as progress:
        task = progress.add_task(path.name, total=path.stat().st_size if path.exists() else 0)
        yield lambda packed_bytes: progress.update(task, completed=packed_bytes)
