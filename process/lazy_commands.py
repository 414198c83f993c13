"""A group of commands that imports a command when it is called: its help, completion and suggestions need no import."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from process.cli import application


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command, or a group of them, that another module holds."""

    about: str
    """Its line in the help of the group."""
    place: str
    """``MODULE:NAME`` of a ``typer.Typer``, or of a function that is one command."""


def lazy_application(about: str, commands: Mapping[str, LazyCommand], **options: Any) -> typer.Typer:
    """An application, as of ``process.cli``, of commands that other modules hold; it may have own ones beside them."""
    app = application(about, cls=_group_of(commands), **options)
    # Without a callback of its own, typer takes an application of one own command for that command.
    app.callback()(_nothing)
    return app


def load(command: LazyCommand) -> Any:
    """The command itself, imported."""
    module, _, name = command.place.partition(":")
    found = getattr(import_module(module), name)
    if isinstance(found, typer.Typer):
        return get_command(found)
    alone = application("")
    alone.command()(found)
    return get_command(alone)


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

    return LazyGroup
