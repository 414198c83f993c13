"""docs/alerting.md: its table of kinds lists every kind of rule, each with its settings and their defaults."""

import re
from typing import Any, get_args

import pytest
from pydantic.fields import FieldInfo

from pipeline.alerts.conditions.condition import AlertRule
from pipeline.alerts.rules import KINDS, Rule
from schemas.generate import ROOT

PAGE = (ROOT / "docs/alerting.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `([\w-]+)` \| .* \| (.*) \| `[^|]*` \|$", PAGE, re.MULTILINE))
MODELS: dict[str, type[AlertRule]] = {
    get_args(rule.model_fields["kind"].annotation)[0]: rule for rule in get_args(Rule)
}


def format_setting(name: str, field: FieldInfo) -> str:
    """Format a setting as the table does: its name, and its default if it has one."""
    default: Any = field.default
    if field.is_required():
        return f"`{name}`"
    return f"`{name}` {'any' if default == frozenset() else f'{default:g}'}"


def test_every_kind_is_on_the_page() -> None:
    assert set(ROWS) == KINDS


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_the_settings_of_a_kind_are_on_the_page_with_their_defaults(kind: str) -> None:
    settings = {
        name: field for name, field in MODELS[kind].model_fields.items() if name not in ("name", "severity", "kind")
    }
    assert sorted(ROWS[kind].split(", ")) == sorted(format_setting(name, field) for name, field in settings.items())
