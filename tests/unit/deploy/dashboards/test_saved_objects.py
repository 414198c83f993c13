"""Saved objects hold what OpenSearch Dashboards 3 accepts and shows: attributes, versions, references, fields.

The lists are those of the stand-in (tests/support/fakes/dashboards.py), written down from Dashboards and not from the
code.
"""

import json
import re
from itertools import combinations
from typing import Any

import pytest

from deploy.dashboards.overview import COLUMNS, export
from schemas.indices import INDICES
from tests.support.fakes.dashboards import NEWEST, STRICT
from tests.support.panel_search import Imported, collect_fields, list_aggs, query_of, search_source

API = "https://schedulerlog.example/base"
FILE = export(API)
IMPORTED = Imported.read(FILE)
ALL = [pytest.param(saved, id=f"{kind}-{name}") for (kind, name), saved in IMPORTED.objects.items()]
SEARCHING = [
    pytest.param(saved, id=name)
    for (kind, name), saved in IMPORTED.objects.items()
    if kind in ("search", "visualization") and IMPORTED.get_pattern(saved)
]
PROPERTIES = {f"{index.alias}-*": index.properties for index in INDICES} | {
    index.alias: index.properties for index in INDICES
}
_IN_QUERIES = re.compile(r"(?:_exists_:(\w+))|(?:(?<![\w:])(?!_exists_)(\w+):)")


def get_pattern(saved: Any) -> Any:
    pattern = IMPORTED.get_pattern(saved)
    assert pattern is not None
    return pattern


def map_fields(saved: Any) -> dict[str, Any]:
    """Map the fields of the object's pattern by their names, those that Dashboards computes included."""
    attributes = get_pattern(saved)["attributes"]
    computed = {field["name"]: {"type": "scripted"} for field in json.loads(attributes["fields"]) if field["scripted"]}
    return PROPERTIES[attributes["title"]] | computed


def is_indexed(mapping: dict[str, Any]) -> bool:
    return bool(mapping.get("enabled", True) and mapping.get("index", True))


@pytest.mark.parametrize("saved", ALL)
def test_an_object_has_the_newest_version_of_its_type_and_only_known_attributes(saved: Any) -> None:
    assert saved["migrationVersion"] == {saved["type"]: ".".join(map(str, NEWEST[saved["type"]]))}
    assert set(saved) == {"type", "id", "attributes", "references", "migrationVersion"}
    assert set(saved["attributes"]) <= STRICT.get(saved["type"], set(saved["attributes"]))


@pytest.mark.parametrize("saved", ALL)
def test_attributes_that_hold_json_are_strings_of_it(saved: Any) -> None:
    texts = [value for name, value in saved["attributes"].items() if name.endswith("JSON") or name == "visState"]
    texts += [value for name, value in saved["attributes"].items() if name in ("fields", "fieldFormatMap")]
    assert all(isinstance(json.loads(text), dict | list) for text in texts)
    if saved["type"] != "index-pattern":
        assert list(saved["attributes"]["kibanaSavedObjectMeta"]) == ["searchSourceJSON"]


@pytest.mark.parametrize("saved", ALL)
def test_every_reference_is_used_and_leads_to_an_object_of_the_file(saved: Any) -> None:
    names = [ref["name"] for ref in saved["references"]]
    assert len(set(names)) == len(names)
    assert {(ref["type"], ref["id"]) for ref in saved["references"]} <= set(IMPORTED.objects)
    if saved["type"] == "dashboard":
        assert sorted(names) == sorted(panel["panelRefName"] for panel in json.loads(saved["attributes"]["panelsJSON"]))
    elif saved["type"] != "index-pattern":
        used = search_source(saved).get("indexRefName")
        assert names == ([used] if used else [])
        assert used in (None, "kibanaSavedObjectMeta.searchSourceJSON.index")


def test_ids_are_readable_and_used_once() -> None:
    lines = [json.loads(line) for line in FILE.splitlines()]
    assert len({(saved["type"], saved["id"]) for saved in lines}) == len(lines)
    assert all(re.fullmatch(r"schedulerlog-[a-z-]+", saved["id"]) for saved in lines)


def test_every_index_family_has_a_pattern_whose_time_field_is_a_date() -> None:
    patterns = [saved["attributes"] for saved in IMPORTED.select_type("index-pattern").values()]
    assert {f"{index.alias}-*" for index in INDICES} <= {index_pattern["title"] for index_pattern in patterns}
    for attributes in patterns:
        if "timeFieldName" in attributes:
            assert PROPERTIES[attributes["title"]][attributes["timeFieldName"]]["type"] == "date"
    assert len({index_pattern["title"] for index_pattern in patterns}) == len(patterns)


@pytest.mark.parametrize("saved", SEARCHING)
def test_every_field_of_a_panel_a_column_and_a_query_is_in_the_mapping(saved: Any) -> None:
    mappings = map_fields(saved)
    used_fields = collect_fields(saved) if saved["type"] == "visualization" else {*saved["attributes"]["columns"]}
    used_fields |= {field for field, _ in saved["attributes"].get("sort", [])}
    words = search_source(saved)["query"]["query"]
    used_fields |= {name for pair in _IN_QUERIES.findall(words) for name in pair if name}
    assert used_fields <= set(mappings)
    # What is stored and not indexed is shown by no column and found by no query.
    assert all(is_indexed(mappings[name]) for name in used_fields)


@pytest.mark.parametrize("saved", SEARCHING)
def test_aggregations_are_of_fields_that_have_values_in_columns(saved: Any) -> None:
    if saved["type"] == "visualization":
        assert {map_fields(saved)[name]["type"] for name in collect_fields(saved)} <= {
            "keyword",
            "date",
            "long",
            "double",
        }


@pytest.mark.parametrize("saved", SEARCHING)
def test_an_order_and_a_series_name_metrics_that_there_are(saved: Any) -> None:
    if saved["type"] != "visualization":
        return
    metrics = {agg["id"] for agg in list_aggs(saved) if agg["schema"] == "metric"}
    assert {agg["params"]["orderBy"] for agg in list_aggs(saved) if agg["type"] == "terms"} <= metrics
    params = json.loads(saved["attributes"]["visState"])["params"]
    series = params.get("seriesParams", [])
    assert {item["data"]["id"] for item in series} == (metrics if series else set())
    assert {item["valueAxis"] for item in series} <= {axis["id"] for axis in params.get("valueAxes", [])}


def test_links_lead_to_pages_below_the_base_url() -> None:
    wanted = {
        "attempt_id": f"{API}/ui/attempts/{{{{value}}}}",
        "episode": f"{API}/ui/attempts/{{{{value}}}}",
        "repeats": f"{API}/ui/attempts/{{{{value}}}}",
        "pod_link": f"{API}/ui{{{{rawValue}}}}",
    }
    attempts = IMPORTED.objects["index-pattern", "schedulerlog-attempts"]["attributes"]
    formats = json.loads(attempts["fieldFormatMap"])
    links = {name: field_format["params"] for name, field_format in formats.items() if field_format["id"] == "url"}
    assert {name: params["urlTemplate"] for name, params in links.items()} == wanted
    assert {field_format["id"] for field_format in formats.values()} == {"url", "date"}


def test_every_search_of_attempts_and_findings_has_a_column_with_a_link() -> None:
    for saved_search in IMPORTED.select_type("search").values():
        links = json.loads(get_pattern(saved_search)["attributes"]["fieldFormatMap"])
        assert set(saved_search["attributes"]["columns"]) & set(links), saved_search["id"]


def test_the_columns_of_a_search_fit_beside_the_list_of_fields() -> None:
    """Seen in Dashboards 3.3.0 at 1,280 pixels: the seventh column after the time began at the edge."""
    for saved_search in IMPORTED.select_type("search").values():
        has_time = "timeFieldName" in get_pattern(saved_search)["attributes"]
        assert len(saved_search["attributes"]["columns"]) <= (6 if has_time else 9), saved_search["id"]


def test_panels_lie_on_the_grid_side_by_side() -> None:
    (overview,) = IMPORTED.select_type("dashboard").values()
    panels = json.loads(overview["attributes"]["panelsJSON"])
    grids = [panel["gridData"] for panel in panels]
    assert all(panel["gridData"]["i"] == panel["panelIndex"] for panel in panels)
    assert all(grid["x"] >= 0 and grid["x"] + grid["w"] <= COLUMNS == 48 for grid in grids)
    for first, other in combinations(grids, 2):
        beside = first["x"] + first["w"] <= other["x"] or other["x"] + other["w"] <= first["x"]
        below = first["y"] + first["h"] <= other["y"] or other["y"] + other["h"] <= first["y"]
        assert beside or below, (first, other)


def test_the_dashboard_has_every_visualization() -> None:
    (overview,) = IMPORTED.select_type("dashboard").values()
    visualizations = {ref["id"] for ref in overview["references"] if ref["type"] == "visualization"}
    assert visualizations == set(IMPORTED.select_type("visualization"))


def test_the_time_range_of_the_dashboard_counts() -> None:
    (overview,) = IMPORTED.select_type("dashboard").values()
    assert overview["attributes"]["timeRestore"] is True


def test_a_query_of_a_pattern_without_a_time_field_has_no_time_range() -> None:
    now = IMPORTED.objects["search", "schedulerlog-placements-now"]
    assert "range" not in str(query_of(now, get_pattern(now), "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"))


def test_a_pattern_has_its_fields_with_what_dashboards_would_fetch_of_them() -> None:
    """``_field_caps`` of OpenSearch has no object that is only stored; Dashboards asks for no list if one is there."""
    for saved in IMPORTED.select_type("index-pattern").values():
        attributes = saved["attributes"]
        fields = {field["name"]: field for field in json.loads(attributes["fields"])}
        assert all({"searchable", "aggregatable", "readFromDocValues"} <= field.keys() for field in fields.values())
        mapped = {
            name for name, field in fields.items() if not field["scripted"] and not name.startswith(("_", "k8s."))
        }
        assert mapped == {name for name, mapping in PROPERTIES[attributes["title"]].items() if is_indexed(mapping)}
        # The names by which logs of the same pod are filtered (docs/operations.md).
        assert ("k8s.pod.name" in fields) == ("pod" in fields)
        assert set(json.loads(attributes["fieldFormatMap"])) <= fields.keys()
        assert fields["@timestamp"]["type"] == "date" if "@timestamp" in fields else "found_at" in fields


def test_a_text_is_searched_and_not_counted() -> None:
    attempts = IMPORTED.objects["index-pattern", "schedulerlog-attempts"]["attributes"]
    (text,) = [field for field in json.loads(attempts["fields"]) if field["name"] == "text"]
    assert (text["searchable"], text["aggregatable"], text["readFromDocValues"]) == (True, False, False)


def test_each_column_of_a_table_with_widths_has_one() -> None:
    for saved in IMPORTED.select_type("visualization").values():
        widths = json.loads(saved["attributes"]["uiStateJSON"]).get("vis", {}).get("columnsWidth", [])
        assert [width["colIndex"] for width in widths] == list(range(len(list_aggs(saved)) if widths else 0))
