"""From an answer of the API to the screen: a problem ends the command, ``-o`` prints the answer for programs."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NoReturn

import typer

from cli.client.problems import Problem
from cli.terminal.exit_codes import USAGE, code_of
from cli.terminal.screen import complain, emit
from runtime.cli.cli import fail
from schemas.json_types import Json

Format = Literal["text", "wide", "json", "yaml", "name"]
Names = Callable[[Json], Iterable[Mapping[str, Any]]]
"""The pods that an answer is about, for ``-o name``."""


def answered(answer: Json | Problem, language: str = "en") -> Json:
    """The answer; a problem ends the command."""
    if isinstance(answer, Problem):
        end_with(answer, language)
    return answer


def end_with(problem: Problem, language: str = "en") -> NoReturn:
    """Print the problem with its cause and the next step, and end the command.

    ``language``: before them what such a problem means, for they are English.
    """
    if language != "en":
        from page.views.error_meanings import meaning_of

        complain(meaning_of(problem.code, language))
    complain(f"{problem.cause}.")
    if problem.next_step:
        complain(problem.next_step)
    raise typer.Exit(code_of(problem))


def is_printed(output: Format, answer: Any, names: Names | None = None) -> bool:
    """Prints the answer for programs, and returns whether it did: a person's form is left to the caller."""
    if output in ("text", "wide"):
        return False
    from cli.terminal import documents

    match output:
        case "json":
            text = documents.as_json(answer)
        case "yaml":
            text = documents.as_yaml(answer)
        case "name" if names:
            text = documents.names_of(names(answer))
        case "name":
            fail("--output: this answer names no pods: write wide, json or yaml", USAGE)
    if text:
        emit(text)
    return True
