"""Generates docs/settings.md and the list of known variables from the commands: ``python -m cli.settings_page``."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from cli.command import COMMANDS
from cli.terminal.commands import QUESTIONS
from runtime.cli.lazy_commands import load
from runtime.settings import unknown_variables
from runtime.settings.settings_table import Setting, list_command_settings

PAGE: Final = Path(__file__).parents[1] / "docs" / "settings.md"
SERVICES: Final = ("scheduler", "pipeline", "ingest", "api", "dashboards", "doctor", *QUESTIONS, "mcp")
_BEGIN: Final = "<!-- begin: made by `make generate` -->\n"
_END: Final = "<!-- end -->\n"
_GROUPS: Final = (
    ("Kafka", "SCHEDULERLOG_KAFKA_"),
    ("OpenSearch", "SCHEDULERLOG_OPENSEARCH_"),
    ("The scheduler", "SCHEDULERLOG_SCHEDULER_"),
    ("The API", "SCHEDULERLOG_API_"),
)
_OTHERS: Final = "All others"


def collect_settings() -> list[Setting]:
    """Collect the settings of every command of every service."""
    return [setting for name in SERVICES for setting in list_command_settings(load(COMMANDS[name]), name)]


def render_tables(settings: Iterable[Setting]) -> str:
    """Render Markdown: a table for each group, a row for each variable."""
    ordered = sorted(settings, key=lambda setting: (_find_group(setting.variable), setting.variable))
    return "\n".join(
        _render_table(title, list(rows)) for title, rows in groupby(ordered, lambda row: _find_group(row.variable))
    )


def render_page(before: str, settings: Iterable[Setting]) -> str:
    """Render the page with its tables replaced."""
    head, _, tail = before.partition(_BEGIN)
    return f"{head}{_BEGIN}\n{render_tables(settings)}\n{_END}{tail.partition(_END)[2]}"


def render_names(settings: Iterable[Setting]) -> str:
    """Render the variables, one on each line."""
    return "".join(f"{name}\n" for name in sorted({setting.variable for setting in settings}))


def _find_group(variable: str) -> str:
    return next((title for title, prefix in _GROUPS if variable.startswith(prefix)), _OTHERS)


def _render_table(title: str, rows: list[Setting]) -> str:
    lines = [
        f"### {title}\n",
        "| variable | flag | form | default | what for | commands |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_render_row(list(same)) for _, same in groupby(rows, lambda row: row.variable)]
    return "\n".join(lines) + "\n"


def _render_row(same: list[Setting]) -> str:
    """Render one variable, which several commands may read, maybe with different defaults."""
    flags = ", ".join(f"`{flag}`" for flag in dict.fromkeys(flag for setting in same for flag in setting.flags))
    defaults = " or ".join(dict.fromkeys(f"`{setting.default}`" for setting in same if setting.default))
    commands = ", ".join(_name_commands(same))
    # The text of most commands: one of them may have a reason to say it in another way.
    description = Counter(setting.description for setting in same).most_common(1)[0][0]
    cells = f"`{same[0].variable}`", flags or "–", f"`{same[0].form}`", defaults or "–", description, commands
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _name_commands(same: list[Setting]) -> Iterator[str]:
    by_service = groupby(dict.fromkeys(setting.command for setting in same), lambda command: command.partition(" ")[0])
    for service, commands in by_service:
        below = ", ".join(command.partition(" ")[2] for command in commands)
        yield f"{service} ({below})" if below else service


def main() -> None:
    """Write both files."""
    settings = collect_settings()
    PAGE.write_text(render_page(PAGE.read_text(encoding="utf-8"), settings), encoding="utf-8")
    unknown_variables.NAMES_FILE.write_text(render_names(settings), encoding="ascii")


if __name__ == "__main__":
    main()
