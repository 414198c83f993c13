"""Language of sentences at a terminal: that of the option, or that of the terminal's own settings."""

import os
from typing import Annotated, Literal

import typer

_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")


def get_language_of_terminal() -> Literal["en", "zh"]:
    """Get the language by the first variable that is set, as POSIX reads them; English where it is another one."""
    value = next((value for name in _VARIABLES if (value := os.environ.get(name))), "")
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
