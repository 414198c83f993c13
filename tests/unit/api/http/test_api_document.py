"""docs/api.md lists the settings and parameters of the code."""

from pathlib import Path

from api.http.query_params import (
    FindingsQuery,
    HistoryQuery,
    NodeOccupancyQuery,
    PendingQuery,
    PodsQuery,
    RefusalsQuery,
    SchedulerlogQuery,
    SearchQuery,
)
from api.settings import Settings
from process.variables import PREFIX

TEXT = (Path(__file__).parents[4] / "docs" / "api.md").read_text(encoding="utf-8")


def test_every_setting_is_documented_with_its_default() -> None:
    lines = [line for line in TEXT.splitlines() if line.startswith(f"| `{PREFIX}")]
    for name, field in Settings.model_fields.items():
        [line] = [line for line in lines if f"`{PREFIX}{name.upper()}`" in line]
        default = "needed" if field.is_required() else str(field.default).removesuffix(".0").replace("True", "true")
        assert default in line, line


def test_every_parameter_is_documented() -> None:
    about_pods = (SchedulerlogQuery, HistoryQuery, SearchQuery, PendingQuery, PodsQuery, RefusalsQuery)
    for query in (*about_pods, FindingsQuery, NodeOccupancyQuery):
        for name, field in query.model_fields.items():
            word = field.alias or name
            assert f"`{word}=" in TEXT or f"&{word}=" in TEXT or f"?{word}=" in TEXT, word
