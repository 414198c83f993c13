"""From an answer of the API to the screen: a problem ends the command, ``-o`` prints the answer for programs.

And the language of its sentences: that of the option, or that of the terminal's own settings.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Final, Literal, NoReturn

import typer

from cli.client.problems import Problem
from cli.terminal.exit_codes import USAGE, to_exit_code
from cli.terminal.safe_text import find_hidden
from cli.terminal.screen import complain, emit
from runtime.cli.cli import fail
from schemas.json_types import Json

Format = Literal["text", "wide", "json", "yaml", "name"]
Names = Callable[[Json], Iterable[Mapping[str, Any]]]
"""The pods that an answer is about, for ``-o name``."""
_LANGUAGE_VARIABLES: Final = ("LC_ALL", "LC_MESSAGES", "LANG")


def get_language_of_terminal() -> Literal["en", "zh"]:
    """Get the language by the first variable that is set, as POSIX reads them; English where it is another one."""
    value = next((value for name in _LANGUAGE_VARIABLES if (value := os.environ.get(name))), "")
    return "zh" if value.lower().startswith("zh") else "en"


SentenceLanguage = Annotated[
    Literal["en", "zh"],
    typer.Option(
        "--lang",
        metavar="en|zh",
        help="Language of sentences; default: that of LC_ALL, LC_MESSAGES or LANG.",
        default_factory=get_language_of_terminal,
        show_default=False,
    ),
]


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
    complain(problem.cause if problem.cause.endswith((".", "?", "!")) else f"{problem.cause}.")
    if problem.next_step:
        complain(problem.next_step)
    raise typer.Exit(to_exit_code(problem))


def print_document(output: Format, answer: Any, names: Names | None = None) -> bool:
    """Print the answer in a form for programs; False if the caller has to print it for a person."""
    if output in ("text", "wide"):
        return False
    match output:
        case "json":
            text = to_json(answer)
        case "yaml":
            text = to_yaml(answer)
        case "name" if names:
            text = to_names(names(answer))
        case "name":
            fail("--output: this answer names no pods: write wide, json or yaml", USAGE)
    if text:
        emit(text)
    return True


def to_json(answer: Any) -> str:
    """Convert to indented JSON; escapes only the characters that a terminal would obey."""
    text = json.dumps(answer, indent=2, ensure_ascii=False)
    hidden = find_hidden(text)
    if not hidden:
        return text
    return re.sub(f"[{re.escape(''.join(hidden))}]", lambda match: json.dumps(match[0])[1:-1], text)


def to_json_line(answer: Any) -> str:
    """Convert to JSON on one line, for one answer of many."""
    return json.dumps(answer)


def to_yaml(answer: Any) -> str:
    """Convert to YAML, in the order of the fields."""
    import yaml

    has_hidden = bool(find_hidden(json.dumps(answer, ensure_ascii=False)))
    return str(yaml.safe_dump(answer, sort_keys=False, allow_unicode=not has_hidden)).rstrip("\n")


def to_names(items: Iterable[Mapping[str, Any]]) -> str:
    """Convert to lines of ``pod/NAME`` without repetitions, as ``kubectl -o name`` prints them."""
    return "\n".join(dict.fromkeys(f"pod/{item['name']}" for item in items))
