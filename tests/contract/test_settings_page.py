"""The pages of settings and the list of known variables are what the commands say of themselves."""

from pathlib import Path

import pytest

from cli.settings_page import PAGES, collect_settings, render_names, render_page
from runtime.settings.variables import NAMES_FILE

AGAIN = "run `make generate`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_up_to_date(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == render_page(page, collect_settings()), AGAIN


def test_every_setting_is_on_one_page() -> None:
    rows = [line.split("`")[1] for page in PAGES for line in page.read_text().splitlines() if line.startswith("| `SCH")]
    assert sorted(rows) == sorted({setting.variable for setting in collect_settings()})


def test_the_list_of_known_variables_is_up_to_date() -> None:
    assert NAMES_FILE.read_text(encoding="ascii") == render_names(collect_settings()), AGAIN


def test_a_variable_means_the_same_in_every_command() -> None:
    forms: dict[str, set[str]] = {}
    for setting in collect_settings():
        forms.setdefault(setting.variable, set()).add(setting.form)
    assert {name for name, values in forms.items() if len(values) > 1} == set()


def test_a_flag_is_called_as_its_variable_in_every_command() -> None:
    variables = render_names(collect_settings())
    # Of a tool that speaks to one server alone, `--url` says enough.
    for entry in (setting for setting in collect_settings() if not setting.command.startswith("dashboards ")):
        dashed = entry.variable.removeprefix("SCHEDULERLOG_").removeprefix("SCHEDULER_").lower().replace("_", "-")
        # Only a secret has no flag.
        assert not entry.flags or f"--{dashed}" in entry.flags or entry.variable.startswith("SCHEDULERLOG_SCHEDULER_")
        assert entry.flags or f"{entry.variable}_FILE" in variables
