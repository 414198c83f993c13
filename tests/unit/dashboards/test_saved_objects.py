"""Saved objects hold what OpenSearch Dashboards 3 accepts and shows: attributes, versions, references, fields.

The lists are those of the stand-in (tests/support/fakes/dashboards.py), written down from Dashboards and not from the
code.
"""

import json
import re
from itertools import combinations
from typing import Any

import pytest

from dashboards.overview import COLUMNS, export
from schemas.indices import INDICES
from tests.support.fakes.dashboards import NEWEST, STRICT
from tests.support.panel_search import Imported, aggs_of, fields_of, query_of, search_source

API = "https://schedulerlog.example/base"
FILE = export(API)
FOUND = Imported.read(FILE)
ALL = [pytest.param(each, id=f"{kind}-{name}") for (kind, name), each in FOUND.objects.items()]
SEARCHING = [
    pytest.param(each, id=name)
    for (kind, name), each in FOUND.objects.items()
    if kind in ("search", "visualization") and FOUND.pattern_of(each)
]
PROPERTIES = {f"{index.alias}-*": index.properties for index in INDICES} | {
    index.alias: index.properties for index in INDICES
}
_IN_QUERIES = re.compile(r"(?:_exists_:(\w+))|(?:(?<![\w:])(?!_exists_)(\w+):)")


def pattern(each: Any) -> Any:
    found = FOUND.pattern_of(each)
    assert found is not None
    return found


def fields(each: Any) -> dict[str, Any]:
    """Name to mapping of the fields of the object's pattern, those that Dashboards computes included."""
    attributes = pattern(each)["attributes"]
    computed = {one["name"]: {"type": "scripted"} for one in json.loads(attributes.get("fields", "[]"))}
    return PROPERTIES[attributes["title"]] | computed


def is_indexed(mapping: dict[str, Any]) -> bool:
    return bool(mapping.get("enabled", True) and mapping.get("index", True))


@pytest.mark.parametrize("each", ALL)
def test_an_object_has_the_newest_version_of_its_type_and_only_known_attributes(each: Any) -> None:
    assert each["migrationVersion"] == {each["type"]: ".".join(map(str, NEWEST[each["type"]]))}
    assert set(each) == {"type", "id", "attributes", "references", "migrationVersion"}
    assert set(each["attributes"]) <= STRICT.get(each["type"], set(each["attributes"]))


@pytest.mark.parametrize("each", ALL)
def test_attributes_that_hold_json_are_strings_of_it(each: Any) -> None:
    texts = [value for name, value in each["attributes"].items() if name.endswith("JSON") or name == "visState"]
    texts += [value for name, value in each["attributes"].items() if name in ("fields", "fieldFormatMap")]
    assert all(isinstance(json.loads(text), dict | list) for text in texts)
    if each["type"] != "index-pattern":
        assert list(each["attributes"]["kibanaSavedObjectMeta"]) == ["searchSourceJSON"]


@pytest.mark.parametrize("each", ALL)
def test_every_reference_is_used_and_leads_to_an_object_of_the_file(each: Any) -> None:
    names = [one["name"] for one in each["references"]]
    assert len(set(names)) == len(names)
    assert {(one["type"], one["id"]) for one in each["references"]} <= set(FOUND.objects)
    if each["type"] == "dashboard":
        assert sorted(names) == sorted(panel["panelRefName"] for panel in json.loads(each["attributes"]["panelsJSON"]))
    elif each["type"] != "index-pattern":
        used = search_source(each).get("indexRefName")
        assert names == ([used] if used else [])
        assert used in (None, "kibanaSavedObjectMeta.searchSourceJSON.index")


def test_ids_are_readable_and_used_once() -> None:
    lines = [json.loads(line) for line in FILE.splitlines()]
    assert len({(each["type"], each["id"]) for each in lines}) == len(lines)
    assert all(re.fullmatch(r"schedulerlog-[a-z-]+", each["id"]) for each in lines)


def test_every_index_family_has_a_pattern_whose_time_field_is_a_date() -> None:
    patterns = [each["attributes"] for each in FOUND.of_type("index-pattern").values()]
    assert {f"{index.alias}-*" for index in INDICES} <= {each["title"] for each in patterns}
    for each in patterns:
        if "timeFieldName" in each:
            assert PROPERTIES[each["title"]][each["timeFieldName"]]["type"] == "date"
    assert len({each["title"] for each in patterns}) == len(patterns)


@pytest.mark.parametrize("each", SEARCHING)
def test_every_field_of_a_panel_a_column_and_a_query_is_in_the_mapping(each: Any) -> None:
    known = fields(each)
    asked = fields_of(each) if each["type"] == "visualization" else {*each["attributes"]["columns"]}
    asked |= {field for field, _ in each["attributes"].get("sort", [])}
    words = search_source(each)["query"]["query"]
    asked |= {name for pair in _IN_QUERIES.findall(words) for name in pair if name}
    assert asked <= set(known)
    # What is stored and not indexed is shown by no column and found by no query.
    assert all(is_indexed(known[name]) for name in asked)


@pytest.mark.parametrize("each", SEARCHING)
def test_aggregations_are_of_fields_that_have_values_in_columns(each: Any) -> None:
    if each["type"] == "visualization":
        assert {fields(each)[name]["type"] for name in fields_of(each)} <= {"keyword", "date", "long", "double"}


@pytest.mark.parametrize("each", SEARCHING)
def test_an_order_and_a_series_name_metrics_that_there_are(each: Any) -> None:
    if each["type"] != "visualization":
        return
    metrics = {agg["id"] for agg in aggs_of(each) if agg["schema"] == "metric"}
    assert {agg["params"]["orderBy"] for agg in aggs_of(each) if agg["type"] == "terms"} <= metrics
    params = json.loads(each["attributes"]["visState"])["params"]
    series = params.get("seriesParams", [])
    assert {one["data"]["id"] for one in series} == (metrics if series else set())
    assert {one["valueAxis"] for one in series} <= {axis["id"] for axis in params.get("valueAxes", [])}


def test_links_have_the_base_url_and_the_paths_of_the_api() -> None:
    wanted = {
        "attempt_id": f"{API}/api/v1/attempts/{{{{value}}}}",
        "episode": f"{API}/api/v1/attempts/{{{{value}}}}",
        "repeats": f"{API}/api/v1/attempts/{{{{value}}}}",
        "pod_link": f"{API}/api/v1{{{{rawValue}}}}/schedulerlog",
    }
    attempts = FOUND.objects["index-pattern", "schedulerlog-attempts"]["attributes"]
    formats = json.loads(attempts["fieldFormatMap"])
    assert {name: each["params"]["urlTemplate"] for name, each in formats.items()} == wanted
    assert {each["id"] for each in formats.values()} == {"url"}


def test_every_search_of_attempts_and_findings_has_a_column_with_a_link() -> None:
    for each in FOUND.of_type("search").values():
        links = json.loads(pattern(each)["attributes"]["fieldFormatMap"])
        assert set(each["attributes"]["columns"]) & set(links), each["id"]


def test_panels_lie_on_the_grid_side_by_side() -> None:
    (overview,) = FOUND.of_type("dashboard").values()
    panels = json.loads(overview["attributes"]["panelsJSON"])
    grids = [panel["gridData"] for panel in panels]
    assert all(panel["gridData"]["i"] == panel["panelIndex"] for panel in panels)
    assert all(grid["x"] >= 0 and grid["x"] + grid["w"] <= COLUMNS == 48 for grid in grids)
    for one, other in combinations(grids, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below, (one, other)


def test_the_dashboard_has_every_visualization() -> None:
    (overview,) = FOUND.of_type("dashboard").values()
    shown = {one["id"] for one in overview["references"] if one["type"] == "visualization"}
    assert shown == set(FOUND.of_type("visualization"))


def test_the_time_range_of_the_dashboard_counts() -> None:
    (overview,) = FOUND.of_type("dashboard").values()
    assert overview["attributes"]["timeRestore"] is True


def test_a_query_of_a_pattern_without_a_time_field_has_no_time_range() -> None:
    now = FOUND.objects["search", "schedulerlog-placements-now"]
    assert "range" not in str(query_of(now, pattern(now), "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"))
