"""Index pattern of every index family. Fields that name an attempt or a pod are links to its page. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from deploy.dashboards.saved_objects import SavedObject, to_json_text
from schemas.index_family import Index
from schemas.index_fields import KEYWORD, build_otel_aliases
from schemas.indices import ATTEMPTS, FINDINGS, INDICES, OCCUPANCY, POD_STATES

POD_LINK: Final = "pod_link"
"""Field that Dashboards computes: the path of a pod's page at the API, below ``/ui``."""
DEVICE_COUNT: Final = "device_count"
"""Field that Dashboards computes: as many devices as a placement has; the list of them fills a row's whole height."""
PLACEMENTS_NOW: Final = "schedulerlog-occupancy-at-any-time"
"""Occupancy without a time field: a lasting placement began at any time, and the time picker must not hide it."""

# The states of pods have no time field: a waiting pod was judged at any time, and the time picker must not hide it.
_TIME_FIELDS: Final = {FINDINGS.alias: "found_at", POD_STATES.alias: None}
_ATTEMPT_IDS: Final = ("attempt_id", "episode", "repeats")
# A link of Dashboards knows the value of one field, and the page of a pod needs three. Documents that were written
# before clusters had names have no cluster.
_POD_PATH: Final = (
    "def path = '/pods/' + doc['namespace'].value + '/' + doc['pod'].value + '?';"
    " if (doc['cluster'].size() > 0) { path += 'cluster=' + doc['cluster'].value + '&' }"
)
_AT_ATTEMPT: Final = " if (doc['attempt_id'].size() > 0) { path += 'attempt=' + doc['attempt_id'].value + '&' }"
"""Part of the path in rows about one attempt; of others the page shows what is so now."""
_END: Final = " return path.substring(0, path.length() - 1)"


def list_index_patterns(api_url: str) -> list[SavedObject]:
    """List one pattern of each family, and occupancy without a time field. ``api_url`` is the API's base URL."""
    families = [
        _build_pattern(index.alias, f"{index.alias}-*", index, api_url, _TIME_FIELDS.get(index.alias, "@timestamp"))
        for index in INDICES
    ]
    # By the alias: Dashboards refuses to edit one of two patterns with equal titles.
    return [*families, _build_pattern(PLACEMENTS_NOW, OCCUPANCY.alias, OCCUPANCY, api_url, None)]


def _build_pattern(pattern_id: str, title: str, index: Index, api_url: str, time_field: str | None) -> SavedObject:
    attributes: dict[str, Any] = {
        "title": title,
        "description": index.description,
        "fieldFormatMap": to_json_text(_map_formats(index, api_url)),
    }
    if time_field:
        attributes["timeFieldName"] = time_field
    computed = [_build_computed(POD_LINK, "string", _write_pod_path(index))] if _has_pod_link(index) else []
    if index is OCCUPANCY:
        computed.append(_build_computed(DEVICE_COUNT, "number", "return doc['devices'].size()"))
    attributes["fields"] = to_json_text([*_list_fields(index.properties), *computed])
    return SavedObject("index-pattern", pattern_id, attributes)


# Types of OpenSearch, and those of Dashboards.
_TYPES: Final = {
    "keyword": "string",
    "text": "string",
    "date": "date",
    "long": "number",
    "double": "number",
    "boolean": "boolean",
}
_META_FIELDS: Final = {"_id": "string", "_index": "string", "_score": "number", "_source": "_source"}


def _list_fields(properties: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the fields of the index as Dashboards would fetch them.

    It fetches none for a pattern that has them, and before the first document there are none to fetch: the panels of a
    new installation would show errors. A later version brings its own list; "Refresh field list" replaces it by hand.
    """
    mapped = [
        _build_field(name, _TYPES[mapping["type"]], mapping["type"])
        for name, mapping in _iterate_fields({**properties, **build_otel_aliases(properties)})
        if mapping["type"] in _TYPES
    ]
    return [*mapped, *(_build_field(name, kind, name) for name, kind in _META_FIELDS.items())]


def _iterate_fields(properties: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Iterate over fields by their whole names; an alias has the type of names, a keyword."""
    for name, mapping in properties.items():
        if "properties" in mapping:
            yield from _iterate_fields(mapping["properties"], f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", KEYWORD if mapping["type"] == "alias" else mapping


def _build_field(name: str, kind: str, stored_as: str) -> dict[str, Any]:
    # `_id` and `_index` can be grouped by; the values of neither are in columns.
    is_in_columns = stored_as in _TYPES and stored_as != "text"
    return {
        "count": 0,
        "name": name,
        "type": kind,
        "esTypes": [stored_as],
        "scripted": False,
        "searchable": stored_as in _TYPES or stored_as in ("_id", "_index"),
        "aggregatable": is_in_columns or stored_as in ("_id", "_index"),
        "readFromDocValues": is_in_columns,
    }


def _write_pod_path(index: Index) -> str:
    return _POD_PATH + (_AT_ATTEMPT if index in (ATTEMPTS, FINDINGS) else "") + _END


def _build_computed(name: str, kind: str, script: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "count": 0,
        "scripted": True,
        "script": script,
        "lang": "painless",
        "searchable": True,
        "aggregatable": True,
        "readFromDocValues": False,
    }


def _has_pod_link(index: Index) -> bool:
    return index in (ATTEMPTS, FINDINGS, OCCUPANCY, POD_STATES)


def _map_formats(index: Index, api_url: str) -> dict[str, Any]:
    """Map each field to its format."""
    # Pages, and not the JSON of the API: a browser has no token for it, and is asked for one by a page.
    attempt = _build_link(f"{api_url}/ui/attempts/{{{{value}}}}", "{{value}}")
    formats: dict[str, Any] = {name: attempt for name in _ATTEMPT_IDS if name in index.properties}
    # Shorter than "Nov 27, 2026 @ 02:14:51.055", which columns cut.
    date = {"id": "date", "params": {"pattern": "YYYY-MM-DD HH:mm:ss"}}
    formats |= {name: date for name, mapping in index.properties.items() if mapping["type"] == "date"}
    if _has_pod_link(index):
        formats[POD_LINK] = _build_link(f"{api_url}/ui{{{{rawValue}}}}", "why")
    return formats


def _build_link(url: str, label: str) -> dict[str, Any]:
    # `value` is encoded for a URL, `rawValue` is not.
    return {"id": "url", "params": {"type": "a", "urlTemplate": url, "labelTemplate": label}}
