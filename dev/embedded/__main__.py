"""``python -m dev.embedded``: a real Kafka and a real OpenSearch on this machine, without Docker."""

import os
import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dev.embedded import folder as folders
from dev.embedded.aot_cache import train
from dev.embedded.control_plane import command_line as kubernetes
from dev.embedded.download import get_repository, install, locate_cache
from dev.embedded.errors import EmbeddedError
from dev.embedded.installed import install_jvms
from dev.embedded.jvm import read_settings
from dev.embedded.lock import KINDS, LOCKED, ServerKind, list_jars, read_lock
from dev.embedded.progress import create_progress
from dev.embedded.status import Output, messages, say, say_started, say_stopped, show

app = typer.Typer(
    help="A real Kafka and a real OpenSearch on this machine, without Docker.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(kubernetes.app, name="kubernetes")


class Only(StrEnum):
    KAFKA = "kafka"
    OPENSEARCH = "opensearch"


class Brokers(StrEnum):
    ONE_BROKER = "1"
    THREE_BROKERS = "3"


Folder = Annotated[Path, typer.Option("--dir", help="Folder of data, logs and state.", resolve_path=True)]
DEFAULT_FOLDER = Path(".run/embedded")


@app.command("install")
def install_command() -> None:
    """Download the jars of all servers into the user's cache and verify them, and write Java's ahead-of-time cache."""
    jars, cache, progress = list_jars(read_lock(), LOCKED), locate_cache(os.environ), create_progress(messages)
    downloaded = install(jars, cache, get_repository(os.environ), progress)
    say(f"{len(jars)} jars in {cache}, {downloaded} of them downloaded now")
    # Not of the secured OpenSearch, which the tests start once: writing its cache takes longer than that start.
    train(install_jvms(read_settings(os.environ)), progress)


@app.command()
def up(
    folder: Folder = DEFAULT_FOLDER,
    brokers: Annotated[Brokers, typer.Option(help="Size of the Kafka cluster.")] = Brokers.ONE_BROKER,
    only: Annotated[Only | None, typer.Option(help="Start only this server.")] = None,
) -> None:
    """Start the servers that do not run yet, wait until they are ready for work, and leave them running."""
    kinds: tuple[ServerKind, ...] = (only.value,) if only else KINDS
    folders.start(folder, kinds, int(brokers), create_progress(messages))
    say_started(folders.list_statuses(folder))


@app.command()
def down(folder: Folder = DEFAULT_FOLDER) -> None:
    """Stop all servers of this folder; keep their data and logs."""
    say_stopped(folders.stop(folder), folder)


@app.command()
def status(folder: Folder = DEFAULT_FOLDER, output: Output = "text") -> None:
    """Print for each server: up or dead, process id, port, memory. Exit status 1 if one is dead or none was started."""
    show(folders.list_statuses(folder), folder, output)


@app.command()
def env(folder: Folder = DEFAULT_FOLDER) -> None:
    """Print the settings of schedulerlog's services for these servers, for ``eval "$(python -m dev.embedded env)"``."""
    for name, value in folders.build_environment(folder).items():
        typer.echo(f"export {name}={shlex.quote(value)}")


def main() -> None:
    try:
        app()
    # The text of an OSError (a file where a folder should be, a full disk) names the path itself.
    except (EmbeddedError, OSError) as error:
        say(f"embedded: {error}")
        sys.exit(1)


if __name__ == "__main__":
    main()
