"""The command line of ``schedulerlog``. It imports a package when one of that package's commands is called."""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final

import typer

from cli.terminal.commands import QUESTIONS
from runtime.cli.install_command import install_command
from runtime.cli.lazy_commands import LazyCommand, lazy_application
from runtime.cli.version import VERSION

COMMANDS: Final[Mapping[str, LazyCommand]] = MappingProxyType(
    {
        **QUESTIONS,
        "scheduler": LazyCommand("A kube-scheduler extender that publishes its decisions.", "scheduler.__main__:app"),
        "pipeline": LazyCommand(
            "Summaries, documents, placements and alerts from the topics.", "pipeline.__main__:app"
        ),
        "ingest": LazyCommand("Logs and clusters of other schedulers, read.", "ingest.__main__:app"),
        "api": LazyCommand("schedulerlog over HTTP.", "api.__main__:app"),
        "dashboards": LazyCommand("Dashboards over the index.", "deploy.dashboards.__main__:app"),
        "doctor": LazyCommand("What keeps an installation from working, and its remedy.", "cli.doctor.__main__:app"),
        "embedded": LazyCommand("Kafka, OpenSearch and Kubernetes on this machine.", "dev.embedded.__main__:app"),
        "mcp": LazyCommand("Answers for assistants (MCP): stdio, or HTTP.", "cli.assistant.command:mcp"),
        "demo": LazyCommand("The five scenarios, from end to end.", "dev.demo.__main__:app"),
    }
)
EXTRAS: Final[Mapping[str, str]] = MappingProxyType({"demo": "all", "grpc": "sniffer", "google": "sniffer"})
"""What the extra (``schedulerlog[…]``) of a package is called, or those that a command needs; else as the command."""

app = lazy_application(
    "Every GPU scheduling decision as a structured event: why here, why not there, what would have to change.",
    COMMANDS,
    add_completion=True,
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"schedulerlog {VERSION}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Every GPU scheduling decision as a structured event: why here, why not there, what would have to change."""


def run() -> None:
    """Run the command that the process was started with. One that lacks a package names the extra that brings it."""
    try:
        app(prog_name="schedulerlog")
    except ModuleNotFoundError as error:
        absent = (error.name or "").partition(".")[0]
        if not absent or (Path(__file__).parents[1] / absent).is_dir():
            raise  # a mistake of this project: no extra brings its own modules
        called = next((word for word in sys.argv[1:] if word in COMMANDS), "")
        extra = EXTRAS.get(absent) or EXTRAS.get(called, called) or "all"
        sys.exit(f"schedulerlog {called} needs the package {absent}: {install_command(f'schedulerlog[{extra}]')}")
