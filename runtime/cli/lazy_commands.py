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

from runtime.cli.cli import create_application

CLOSED_OUTPUT: Final = 128 + 13
"""Exit code of a process that SIGPIPE ends, as it ends most programs."""


class LazyCommand(NamedTuple):
    """Command, or group of commands, that another module defines."""

    summary: str
    """Line of the command in the help of the group."""
    import_path: str
    """``MODULE:NAME`` of a ``typer.Typer``, or of a function that is one command."""


def create_lazy_application(summary: str, commands: Mapping[str, LazyCommand], **options: Any) -> typer.Typer:
    """Create an application, as ``create_application`` does, of commands that other modules define. The application may
    have further commands.
    """
    app = create_application(summary, cls=_create_group(commands), **options)
    # Without a callback, typer takes an application of one further command for that command.
    app.callback()(_do_nothing)
    return app


def load(command: LazyCommand) -> Any:
    """Import the command."""
    module, _, name = command.import_path.partition(":")
    target = getattr(import_module(module), name)
    if isinstance(target, typer.Typer):
        return get_command(target)
    application = create_application("")
    application.command()(target)
    return get_command(application)


def end_for_closed_output() -> None:
    """End the process quietly if the reader of standard output has closed it, as `head` does; else return."""
    output = select.poll()
    output.register(sys.stdout.fileno())
    if any(event & select.POLLERR for _, event in output.poll(0)):
        # Python flushes its buffer at its end, and would fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(CLOSED_OUTPUT)


def _do_nothing() -> None: ...


def _create_group(commands: Mapping[str, LazyCommand]) -> type[TyperGroup]:
    class LazyGroup(TyperGroup):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            for name, command in commands.items():
                # A stand-in for the command in every list of names.
                self.add_command(TyperCommand(name, help=command.summary, short_help=command.summary))

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            name, command, arguments = super().resolve_command(ctx, args)
            if lazy := commands.get(name or ""):
                command = load(lazy)
            return name, command, arguments

        def invoke(self, ctx: Any) -> Any:
            try:
                outcome = super().invoke(ctx)
                # Otherwise Python would complain at its end about what is still buffered.
                sys.stdout.flush()
            except BrokenPipeError:
                end_for_closed_output()
                raise
            return outcome

    return LazyGroup
