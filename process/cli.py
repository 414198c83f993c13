"""How our command lines behave alike: plain help, and one line on stderr for what the caller can mend."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer


def application(about: str) -> typer.Typer:
    """A command line that shows its help when it is called without a command; ``about`` is that help's first line."""
    return typer.Typer(
        help=about,
        add_completion=False,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        # As markup, NAMESPACE/NAME[/CONTAINER] in a help text is a closing tag, and rich ends with a traceback.
        rich_markup_mode=None,
    )


def fail(message: str, status: int) -> NoReturn:
    """End the command with one line on stderr. Exit codes: 2 for a mistake of the caller, 1 for the world's."""
    typer.echo(message, err=True)
    raise typer.Exit(status)


@contextmanager
def one_line_for(*mistakes: type[Exception], status: int = 2) -> Iterator[None]:
    """Show these exceptions by their message alone, without a traceback."""
    try:
        yield
    except mistakes as error:
        fail(str(error), status)
