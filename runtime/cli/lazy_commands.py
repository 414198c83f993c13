"""A group of commands that imports a command when it is called: its help, completion and suggestions need no import."""

import os
import select
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from runtime.cli.cli import application

CLOSED_OUTPUT: Final = 128 + 13
"""The exit code of what SIGPIPE ends, which most programs leave to do its work."""


class LazyCommand(NamedTuple):
    """A command, or a group of them, that another module holds."""

    about: str
    """Its line in the help of the group."""
    place: str
    """``MODULE:NAME`` of a ``typer.Typer``, or of a function that is one command."""


def lazy_application(about: str, commands: Mapping[str, LazyCommand], **options: Any) -> typer.Typer:
    """Create an application, like ``cli``, from commands that other modules define; commands of its own may stand next
    to them."""
    app = application(about, cls=_group_of(commands), **options)
    # Without a callback of its own, typer takes an application of one own command for that command.
    app.callback()(_nothing)
    return app


def load(command: LazyCommand) -> Any:
    """Import the command."""
    module, _, name = command.place.partition(":")
    found = getattr(import_module(module), name)
    if isinstance(found, typer.Typer):
        return get_command(found)
    alone = application("")
    alone.command()(found)
    return get_command(alone)


def end_for_closed_output() -> None:
    """End the process quietly where who read standard output went away, as `head` does; else return."""
    output = select.poll()
    output.register(sys.stdout.fileno())
    if any(event & select.POLLERR for _, event in output.poll(0)):
        # Python flushes what is buffered at its end, and would fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(CLOSED_OUTPUT)


def _nothing() -> None: ...


def _group_of(commands: Mapping[str, LazyCommand]) -> type[TyperGroup]:
    class LazyGroup(TyperGroup):
        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            for name, command in commands.items():
                # Stands for the command in every list of names.
                self.add_command(TyperCommand(name, help=command.about, short_help=command.about))

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            name, command, rest = super().resolve_command(ctx, args)
            if lazy := commands.get(name or ""):
                command = load(lazy)
            return name, command, rest

        def invoke(self, ctx: Any) -> Any:
            try:
                found = super().invoke(ctx)
                # What is still buffered, or Python would complain about it at its end.
                sys.stdout.flush()
            except BrokenPipeError:
                end_for_closed_output()
                raise
            return found

    return LazyGroup
