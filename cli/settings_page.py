"""Tables of settings and lists of known variables, from the commands: ``python -m cli.settings_page``."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from cli.command import COMMANDS
from cli.terminal.commands import QUESTIONS
from runtime.cli.lazy_commands import load
from runtime.settings import variables
from runtime.settings.settings_table import Setting, list_command_settings

_OTHERS: Final = "All others"
_FOLDER: Final = Path(__file__).parents[1] / "docs"
PAGES: Final = {
    _FOLDER / "settings.md": ("Kafka", "OpenSearch"),
    _FOLDER / "settings-scheduler.md": ("The scheduler",),
    _FOLDER / "settings-services.md": ("The API", _OTHERS),
}
"""The groups of each page."""
SERVICES: Final = ("scheduler", "pipeline", "ingest", "api", "all", "dashboards", "doctor", *QUESTIONS, "mcp")
CHART_FILE: Final = _FOLDER.parent / "deploy/helm/files/settings.json"
"""The settings of each command, for the chart: a process starts again when one of its own changes."""
_BEGIN: Final = "<!-- begin: made by `make generate` -->\n"
_END: Final = "<!-- end -->\n"
_GROUPS: Final = (
    ("Kafka", "SCHEDULERLOG_KAFKA_"),
    ("OpenSearch", "SCHEDULERLOG_OPENSEARCH_"),
    ("The scheduler", "SCHEDULERLOG_SCHEDULER_"),
    ("The API", "SCHEDULERLOG_API_"),
)


def collect_settings() -> list[Setting]:
    """Collect the settings of every command of every service."""
    return [setting for name in SERVICES for setting in list_command_settings(load(COMMANDS[name]), name)]


def render_tables(groups: Iterable[str], settings: Iterable[Setting]) -> str:
    """Render Markdown: a table for each group, a row for each variable."""
    ordered = sorted(settings, key=lambda setting: setting.variable)
    rows = {group: [setting for setting in ordered if _find_group(setting.variable) == group] for group in groups}
    return "\n".join(_render_table(group, rows[group]) for group in groups)


def render_page(page: Path, settings: Iterable[Setting]) -> str:
    """Render one of ``PAGES`` with its tables replaced."""
    head, _, tail = page.read_text(encoding="utf-8").partition(_BEGIN)
    return f"{head}{_BEGIN}\n{render_tables(PAGES[page], settings)}\n{_END}{tail.partition(_END)[2]}"


def render_names(settings: Iterable[Setting]) -> str:
    """Render the variables, one on each line."""
    return "".join(f"{name}\n" for name in sorted({setting.variable for setting in settings}))


def render_commands(settings: Iterable[Setting]) -> str:
    """Render the variables of each command as JSON, a line for each command."""
    commands: dict[str, set[str]] = {}
    for setting in settings:
        commands.setdefault(setting.command, set()).add(setting.variable)
    lines = [f'"{command}": {json.dumps(sorted(names))}' for command, names in sorted(commands.items())]
    return "{\n" + ",\n".join(lines) + "\n}\n"


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
    """Write the pages and the list."""
    settings = collect_settings()
    for page in PAGES:
        page.write_text(render_page(page, settings), encoding="utf-8")
    variables.NAMES_FILE.write_text(render_names(settings), encoding="ascii")
    CHART_FILE.write_text(render_commands(settings), encoding="ascii")


if __name__ == "__main__":
    main()
