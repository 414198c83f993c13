"""The state of the programs of a folder, and how commands print it.

Standard output carries what other programs read; messages for people go to standard error.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import typer
from rich.console import Console

from dev.embedded.process import ProcessId

messages: Final = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Status:
    """One line of ``status``; ``memory_mib`` is None when it does not run."""

    name: str
    pid: int | None
    port: int
    memory_mib: float | None
    log: Path

    @property
    def is_up(self) -> bool:
        return self.memory_mib is not None

    def json_line(self) -> str:
        """For programs."""
        found = {"name": self.name, "is_up": self.is_up, "pid": self.pid, "port": self.port}
        return json.dumps(found | {"memory_mib": self.memory_mib, "log": str(self.log)})

    def line(self, width: int) -> str:
        """``width``: characters for the name."""
        state = "up" if self.is_up else "dead"
        rest = f"pid {self.pid}  {self.memory_mib:.0f} MiB" if self.memory_mib is not None else f"log {self.log}"
        return f"{self.name:<{width}} {state:<5} 127.0.0.1:{self.port}  {rest}"


def status_of(folder: Path, name: str, port: int, process: ProcessId | None) -> Status:
    memory = process.memory_mib() if process else None
    pid = process.pid if process and memory is not None else None
    return Status(name, pid, port, memory, folder / name / "server.log")


def say(text: str) -> None:
    messages.print(text, highlight=False, markup=False, soft_wrap=True)


def say_stopped(names: Sequence[str], folder: Path) -> None:
    say(f"stopped {', '.join(names)}" if names else f"nothing was running in {folder}")


Output = Annotated[
    Literal["text", "json"],
    typer.Option("--output", "-o", metavar="text|json", help="For people, or one JSON object a line for each."),
]


def show(found: Sequence[Status], folder: Path, output: Output = "text") -> None:
    """Print a line for each server; raises ``typer.Exit(1)`` if one is dead or none was started."""
    for status in found:
        typer.echo(status.json_line() if output == "json" else status.line(_width(found)))
    if not found:
        say(f"nothing was started in {folder}")
    if not found or not all(status.is_up for status in found):
        raise typer.Exit(1)


def say_started(found: Sequence[Status]) -> None:
    for status in found:
        say(status.line(_width(found)))


def _width(found: Sequence[Status]) -> int:
    return max((len(status.name) for status in found), default=0)
