"""Index pattern of every index family. Fields that name an attempt or a pod are links to its page. Pure."""

from typing import Any, Final

from deploy.dashboards.saved_objects import SavedObject, to_json_text
from schemas.index_family import Index
from schemas.indices import ATTEMPTS, FINDINGS, INDICES, OCCUPANCY, POD_STATES

POD_LINK: Final = "pod_link"
"""Field that Dashboards computes: the path of a pod's page at the API, below ``/ui``."""
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
    if _has_pod_link(index):
        attributes["fields"] = to_json_text([_build_pod_link(index)])
    return SavedObject("index-pattern", pattern_id, attributes)


def _build_pod_link(index: Index) -> dict[str, Any]:
    return {
        "name": POD_LINK,
        "type": "string",
        "count": 0,
        "scripted": True,
        "script": _POD_PATH + (_AT_ATTEMPT if index in (ATTEMPTS, FINDINGS) else "") + _END,
        "lang": "painless",
        # Without `aggregatable`, `searchable` and `readFromDocValues`: if a field has all three, Dashboards takes the
        # list as complete and does not fetch the fields of the index.
    }


def _has_pod_link(index: Index) -> bool:
    return index in (ATTEMPTS, FINDINGS, OCCUPANCY, POD_STATES)


def _map_formats(index: Index, api_url: str) -> dict[str, Any]:
    """Map each field to its format."""
    # Pages, and not the JSON of the API: a browser has no token for it, and is asked for one by a page.
    attempt = _build_link(f"{api_url}/ui/attempts/{{{{value}}}}", "{{value}}")
    formats: dict[str, Any] = {name: attempt for name in _ATTEMPT_IDS if name in index.properties}
    if _has_pod_link(index):
        formats[POD_LINK] = _build_link(f"{api_url}/ui{{{{rawValue}}}}", "why")
    return formats


def _build_link(url: str, label: str) -> dict[str, Any]:
    # `value` is encoded for a URL, `rawValue` is not.
    return {"id": "url", "params": {"type": "a", "urlTemplate": url, "labelTemplate": label}}
