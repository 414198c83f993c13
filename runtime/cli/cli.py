"""Command lines that behave alike: plain help, options that several have, one line for the caller's mistakes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal, NoReturn, TypeVar

import typer
from typer.core import TyperGroup

from runtime import durations
from runtime.errors import FixedCredentialsError

T = TypeVar("T")


Output = Annotated[
    Literal["text", "json"],
    typer.Option("--output", "-o", metavar="text|json", help="For people, or one JSON object a line for each item."),
]


def create_application(
    summary: str, *, cls: type[TyperGroup] | None = None, add_completion: bool = False
) -> typer.Typer:
    """Create a command line that shows its help when it is called without a command; ``summary`` is the first line of
    the help."""
    return typer.Typer(
        help=summary,
        cls=cls,
        add_completion=add_completion,
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
    """Show only the message of these exceptions, and of refused credentials, without a traceback."""
    try:
        yield
    except mistakes as error:
        fail(str(error), status)
    except FixedCredentialsError as error:
        fail(str(error), 1)


def build_option_arguments(read: Callable[[str], T]) -> dict[str, Any]:
    """Build the arguments of ``typer.Option`` for a text that ``read`` understands.

    The message of its ``ValueError`` becomes one line that names the flag, or the variable that the text came from.
    """

    def convert(context: typer.Context, parameter: typer.CallbackParam, text: str | None) -> T | None:
        if text is None:
            return None
        try:
            return read(text)
        except ValueError as error:
            source = context.get_parameter_source(parameter.name or "")
            is_variable = source is not None and source.name == "ENVIRONMENT"
            fail(f"{parameter.envvar if is_variable else parameter.opts[0]}: {error}", 2)

    # A callback and no parser: only a callback knows whether the text came from the flag or from the variable.
    return {"parser": str, "callback": convert}


def create_duration_option(flag: str, summary: str) -> Any:
    """Create an option of typer for ``10s`` or ``1h30m``; its default is written as a text, as typer reads it."""
    return typer.Option(flag, metavar="DURATION", help=summary, **build_option_arguments(durations.read))
