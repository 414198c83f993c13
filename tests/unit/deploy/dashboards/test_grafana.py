"""Grafana's dashboards: their form, and that every series and label in them exists."""

import json
import re
from itertools import combinations
from pathlib import Path

import pytest

from deploy.dashboards.slo import build_rules
from schemas.json_types import Json
from tests.support.metrics_page import read_labels
from tests.support.promql import list_groups, list_selected, parse

FOLDER = Path(__file__).parents[4] / "deploy/kustomize/components/grafana"
DASHBOARDS: dict[str, Json] = {path.name: json.loads(path.read_bytes()) for path in sorted(FOLDER.glob("*.json"))}
_DEVICE = {"node", "device_uuid", "device_index", "device_type"}
# HAMi's own scheduler exports these (cmd/scheduler/metrics.go of v2.10), each with the label `zone` too.
HAMI = {
    "hami_gpu_memory_limit_bytes": _DEVICE,
    "hami_gpu_memory_allocated_bytes": _DEVICE | {"device_cores"},
    "hami_gpu_shared_count": _DEVICE,
    "hami_vgpu_memory_allocated_bytes": {"namespace", "node", "pod", "container_index", "device_uuid"},
}
RECORDED = {rule["record"] for group in build_rules()["spec"]["groups"] for rule in group["rules"] if "record" in rule}
LABELS_BY_METRIC: dict[str, frozenset[str]] = (
    read_labels()
    | {name: frozenset(labels) for name, labels in HAMI.items()}
    | dict.fromkeys(RECORDED, frozenset[str]())
)


def list_panels(dashboard: Json) -> list[Json]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


TARGETS = [
    pytest.param(target, id=f"{name}-{panel['title']}-{target['refId']}")
    for name, dashboard in DASHBOARDS.items()
    for panel in list_panels(dashboard)
    for target in panel["targets"]
]


@pytest.mark.parametrize("target", TARGETS)
def test_an_expression_asks_for_series_and_labels_that_there_are(target: Json) -> None:
    tree = parse(target["expr"])
    for series in list_selected(tree):
        assert series.labels <= LABELS_BY_METRIC[series.name], series
    for labels, names in list_groups(tree):
        assert all(labels <= LABELS_BY_METRIC[name] for name in names), labels
    assert list(list_selected(tree))


@pytest.mark.parametrize("target", TARGETS)
def test_a_legend_names_labels_by_which_the_series_are_grouped(target: Json) -> None:
    legend_labels = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
    grouped_labels = {label for labels, _ in list_groups(parse(target["expr"])) for label in labels}
    assert legend_labels <= grouped_labels


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_have_ids_of_their_own_and_do_not_overlap(name: str) -> None:
    dashboard = DASHBOARDS[name]
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in dashboard["panels"]:
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
    for first, other in combinations((panel["gridPos"] for panel in dashboard["panels"]), 2):
        beside = first["x"] + first["w"] <= other["x"] or other["x"] + other["w"] <= first["x"]
        below = first["y"] + first["h"] <= other["y"] or other["y"] + other["h"] <= first["y"]
        assert beside or below, (first, other)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_can_be_provisioned(name: str) -> None:
    dashboard = DASHBOARDS[name]
    assert name == f"{dashboard['uid']}.json"
    assert re.fullmatch(r"[a-z-]{1,40}", dashboard["uid"])
    # With an id of another Grafana the import would replace another dashboard.
    assert "id" not in dashboard
    assert dashboard["title"]
    assert dashboard["schemaVersion"] >= 36


@pytest.mark.parametrize("name", DASHBOARDS)
def test_every_panel_reads_the_chosen_datasource_and_says_what_it_shows(name: str) -> None:
    variables = {variable["name"]: variable for variable in DASHBOARDS[name]["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    for panel in list_panels(DASHBOARDS[name]):
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["title"]
        assert panel["description"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) >= 1
        used = set(re.findall(r"\$(?!__)(\w+)", " ".join(target["expr"] for target in panel["targets"])))
        assert used <= set(variables)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_variable_lists_values_of_a_label_that_its_metric_has(name: str) -> None:
    for variable in DASHBOARDS[name]["templating"]["list"]:
        if variable["type"] == "query":
            metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["definition"]).groups()  # type: ignore[union-attr]
            assert label in LABELS_BY_METRIC[metric]


def test_titles_and_uids_are_used_once() -> None:
    for field in ("title", "uid"):
        assert len({dashboard[field] for dashboard in DASHBOARDS.values()}) == len(DASHBOARDS)
