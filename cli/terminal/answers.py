"""From an answer of the API to the screen: a problem ends the command, ``-o`` prints the answer for programs."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NoReturn

import typer

from cli.client.problems import Problem
from cli.terminal.exit_codes import USAGE, to_exit_code
from cli.terminal.screen import complain, emit
from runtime.cli.cli import fail
from schemas.json_types import Json

Format = Literal["text", "wide", "json", "yaml", "name"]
Names = Callable[[Json], Iterable[Mapping[str, Any]]]
"""The pods that an answer is about, for ``-o name``."""


def require_answer(answer: Json | Problem, language: str = "en") -> Json:
    """Return the answer; a problem ends the command."""
    if isinstance(answer, Problem):
        end_with(answer, language)
    return answer


def end_with(problem: Problem, language: str = "en") -> NoReturn:
    """Print the problem with its cause and the next step, and end the command.

    In another language than English, first the meaning of the problem: cause and next step are English.
    """
    if language != "en":
        from page.views.translations import get_meaning

        complain(get_meaning(problem.code, language))
    complain(f"{problem.cause}.")
    if problem.next_step:
        complain(problem.next_step)
    raise typer.Exit(to_exit_code(problem))


def print_document(output: Format, answer: Any, names: Names | None = None) -> bool:
    """Print the answer in a form for programs; False if the caller has to print it for a person."""
    if output in ("text", "wide"):
        return False
    from cli.terminal import documents

    match output:
        case "json":
            text = documents.to_json(answer)
        case "yaml":
            text = documents.to_yaml(answer)
        case "name" if names:
            text = documents.to_names(names(answer))
        case "name":
            fail("--output: this answer names no pods: write wide, json or yaml", USAGE)
    if text:
        emit(text)
    return True
