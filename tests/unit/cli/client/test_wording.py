"""The API's words at a terminal: what it asks a program to do is a command or an option there."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.client.wording import to_terminal_words

SOURCES = ("api/http", "api/handlers", "api/authority", "api/answers", "engine/capacity")
OF_PROGRAMS = re.compile(r"\b(GET|POST) /|\bparameter [a-z_]+\b|\bnamespace=")
PLACEHOLDER = "limit"


def iterate_texts() -> Iterator[tuple[str, str]]:
    """Iterate over the arguments of errors in the API's sources; what is filled in reads as a parameter."""
    for folder in SOURCES:
        for file in sorted(Path(folder).rglob("*.py")):
            for call in ast.walk(ast.parse(file.read_text())):
                if isinstance(call, ast.Call) and re.search(r"Error$", ast.unparse(call.func)):
                    yield from ((f"{file}:{part.lineno}", text) for part in call.args if (text := read_text(part)))


def read_text(part: ast.expr) -> str:
    if isinstance(part, ast.Constant) and isinstance(part.value, str):
        return part.value
    if isinstance(part, ast.JoinedStr):
        return "".join(read_text(piece) or PLACEHOLDER for piece in part.values)
    return ""


def test_no_error_of_the_api_names_a_path_or_a_parameter_at_a_terminal() -> None:
    texts = dict(iterate_texts())
    assert sum(bool(OF_PROGRAMS.search(text)) for text in texts.values()) > 5
    left = {line: words for line, text in texts.items() if OF_PROGRAMS.search(words := to_terminal_words(text))}
    assert not left


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("parameter limit: Input should be less than or equal to 200", "--limit: should be less than or equal to 200"),
        ("parameter min_wait: '5x' is not a duration", "--min-wait: '5x' is not a duration"),
        ("parameter name: 'A b' has capitals", "the name: 'A b' has capitals"),
        ("parameter 'x' is unknown here; known are: limit, since", "--x is unknown here"),
        ("GET /docs lists every path with its parameters.", "The command's --help lists what it takes."),
        ("no attempt of pod llm/a is recorded", "no attempt of pod llm/a is recorded"),
    ],
)
def test_a_parameter_is_an_option_and_a_path_is_a_command(text: str, words: str) -> None:
    assert to_terminal_words(text) == words
