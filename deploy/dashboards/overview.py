"""Dashboard of the searches and visualizations, and all objects as one file. Pure."""

from typing import Any, Final, NamedTuple

from deploy.dashboards.index_patterns import list_index_patterns
from deploy.dashboards.saved_objects import Reference, SavedObject, build_search_source, to_json_text, to_ndjson
from deploy.dashboards.searches import list_saved_searches
from deploy.dashboards.visualizations import list_visualizations

DASHBOARD: Final = "schedulerlog-overview"
COLUMNS: Final = 48
"""Columns of the grid; a row is 20 pixels high."""
# Dashboards changes panels of 6.1 to 7.2 when it opens them, and no others.
_PANEL_VERSION: Final = "7.9.3"
_REFRESH_MS: Final = 60_000


class PanelPlace(NamedTuple):
    """Position of a panel on the grid."""

    type: str
    id: str
    x: int
    y: int
    width: int
    height: int


_PLACES: Final = (
    PanelPlace("visualization", "schedulerlog-introduction", 0, 0, 48, 4),
    PanelPlace("visualization", "schedulerlog-attempts", 0, 4, 48, 6),
    PanelPlace("visualization", "schedulerlog-attempts-by-result", 0, 10, 48, 11),
    PanelPlace("visualization", "schedulerlog-top-obstacles", 0, 21, 18, 15),
    PanelPlace("visualization", "schedulerlog-obstacles-over-time", 18, 21, 30, 15),
    PanelPlace("visualization", "schedulerlog-waiting", 0, 36, 30, 17),
    PanelPlace("visualization", "schedulerlog-refused-by-namespace", 30, 36, 18, 17),
    PanelPlace("search", "schedulerlog-waiting-pods", 0, 53, 48, 15),
    PanelPlace("visualization", "schedulerlog-reasons-by-node", 0, 68, 24, 15),
    PanelPlace("visualization", "schedulerlog-occupancy-by-node", 24, 68, 24, 15),
    PanelPlace("visualization", "schedulerlog-time-to-placement", 0, 83, 48, 13),
    PanelPlace("visualization", "schedulerlog-waits-by-namespace", 0, 96, 48, 13),
    PanelPlace("visualization", "schedulerlog-waits-by-layer", 0, 109, 48, 15),
    PanelPlace("visualization", "schedulerlog-findings-over-time", 0, 124, 16, 15),
    PanelPlace("search", "schedulerlog-findings-list", 16, 124, 32, 15),
    PanelPlace("search", "schedulerlog-bind-failures", 0, 139, 48, 12),
)


def list_saved_objects(api_url: str) -> list[SavedObject]:
    """List all objects, referenced objects first. ``api_url``: base URL of the API, as people's browsers reach it."""
    return [*list_index_patterns(api_url), *list_saved_searches(), *list_visualizations(api_url), _build_dashboard()]


def export(api_url: str) -> bytes:
    """Export the file that Dashboards imports."""
    return to_ndjson(list_saved_objects(api_url))


def _build_dashboard() -> SavedObject:
    source, _ = build_search_source("", None)
    attributes = {
        "title": "schedulerlog",
        "description": "GPU scheduling: what is placed, what waits and why, and what contradicts the cluster.",
        "hits": 0,
        "panelsJSON": to_json_text([_build_panel(number, panel) for number, panel in enumerate(_PLACES)]),
        "optionsJSON": to_json_text({"hidePanelTitles": False, "useMargins": True}),
        "version": 1,
        "timeRestore": True,
        "timeFrom": "now-24h",
        "timeTo": "now",
        "refreshInterval": {"pause": False, "value": _REFRESH_MS},
        **source,
    }
    references = (Reference(f"panel_{number}", panel.type, panel.id) for number, panel in enumerate(_PLACES))
    return SavedObject("dashboard", DASHBOARD, attributes, tuple(references))


def _build_panel(number: int, panel: PanelPlace) -> dict[str, Any]:
    grid = {"x": panel.x, "y": panel.y, "w": panel.width, "h": panel.height, "i": str(number)}
    return {
        "version": _PANEL_VERSION,
        "gridData": grid,
        "panelIndex": str(number),
        "embeddableConfig": {},
        "panelRefName": f"panel_{number}",
    }
