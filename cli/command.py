"""The command line of ``schedulerlog``. It imports a package when one of that package's commands is called."""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final

import typer

from cli.terminal.commands import QUESTIONS
from cli.terminal.exit_codes import complain_of_interruption
from runtime.cli.installation import VERSION, write_install_command
from runtime.cli.lazy_commands import LazyCommand, create_lazy_application

COMMANDS: Final[Mapping[str, LazyCommand]] = MappingProxyType(
    {
        **QUESTIONS,
        "scheduler": LazyCommand(
            "Run a kube-scheduler extender that publishes its decisions.", "scheduler.__main__:app"
        ),
        "pipeline": LazyCommand(
            "Make summaries, documents, placements and alerts from the topics.", "pipeline.__main__:app"
        ),
        "all": LazyCommand(
            "Run the pipeline, the API and the readers as one process, for small clusters.",
            "cli.single_process.command:run_all",
        ),
        "ingest": LazyCommand("Read logs and events of other schedulers.", "ingest.__main__:app"),
        "api": LazyCommand("Serve the answers over HTTP.", "api.__main__:app"),
        "dashboards": LazyCommand("Install dashboards over the index.", "deploy.dashboards.__main__:app"),
        "doctor": LazyCommand(
            "Find what keeps an installation from working, and its remedy.", "cli.doctor.__main__:app"
        ),
        "embedded": LazyCommand("Run Kafka, OpenSearch and Kubernetes on this machine.", "dev.embedded.__main__:app"),
        "mcp": LazyCommand("Answer assistants (MCP) over stdio or HTTP.", "cli.assistant.command:mcp"),
        "demo": LazyCommand("Show five pods from end to end on real servers.", "dev.demo.__main__:app"),
    }
)
EXTRAS: Final[Mapping[str, str]] = MappingProxyType(
    {"all": "services", "demo": "all", "grpc": "sniffer", "google": "sniffer"}
)
"""Extra (``schedulerlog[…]``) of a command or of a missing package; by default it has the command's name."""

app = create_lazy_application(
    "Answer why a GPU pod was placed where it is, or why it waits and what would have to change.",
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
    """Answer why a GPU pod was placed where it is, or why it waits and what would have to change."""


def run() -> None:
    """Run the command that the process was started with. One that lacks a package names the extra that brings it."""
    try:
        app(prog_name="schedulerlog")
    except SystemExit as end:
        if any(word in QUESTIONS for word in sys.argv[1:]):
            complain_of_interruption(end)
        raise
    except ModuleNotFoundError as error:
        absent = (error.name or "").partition(".")[0]
        if not absent or (Path(__file__).parents[1] / absent).is_dir():
            raise  # a mistake of this project: no extra brings its own modules
        called = next((word for word in sys.argv[1:] if word in COMMANDS), "")
        extra = EXTRAS.get(absent) or EXTRAS.get(called, called) or "all"
        sys.exit(f"schedulerlog {called} needs the package {absent}: {write_install_command(f'schedulerlog[{extra}]')}")
