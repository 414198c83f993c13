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

    def to_json_line(self) -> str:
        """Convert the status to a line of JSON."""
        fields = {"name": self.name, "is_up": self.is_up, "pid": self.pid, "port": self.port}
        return json.dumps(fields | {"memory_mib": self.memory_mib, "log": str(self.log)})

    def to_line(self, width: int) -> str:
        """Convert the status to a line of text. ``width``: characters for the name."""
        state = "up" if self.is_up else "dead"
        details = f"pid {self.pid}  {self.memory_mib:.0f} MiB" if self.memory_mib is not None else f"log {self.log}"
        return f"{self.name:<{width}} {state:<5} 127.0.0.1:{self.port}  {details}"


def read_status(folder: Path, name: str, port: int, process: ProcessId | None) -> Status:
    memory = process.measure_memory_mib() if process else None
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


def show(statuses: Sequence[Status], folder: Path, output: Output = "text") -> None:
    """Print a line for each server; raises ``typer.Exit(1)`` if one is dead or none was started."""
    for status in statuses:
        typer.echo(status.to_json_line() if output == "json" else status.to_line(_measure_width(statuses)))
    if not statuses:
        say(f"nothing was started in {folder}")
    if not statuses or not all(status.is_up for status in statuses):
        raise typer.Exit(1)


def say_started(statuses: Sequence[Status]) -> None:
    for status in statuses:
        say(status.to_line(_measure_width(statuses)))


def _measure_width(statuses: Sequence[Status]) -> int:
    return max((len(status.name) for status in statuses), default=0)
