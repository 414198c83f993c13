"""The dashboard that puts searches and visualizations together, and all objects as one file. Pure."""

from typing import Any, Final, NamedTuple

from deploy.dashboards.index_patterns import index_patterns
from deploy.dashboards.saved_objects import Reference, SavedObject, ndjson, search_source, text
from deploy.dashboards.searches import saved_searches
from deploy.dashboards.visualizations import visualizations

DASHBOARD: Final = "schedulerlog-overview"
COLUMNS: Final = 48
"""Columns of the grid; a row is 20 pixels high."""
# Dashboards changes panels of 6.1 to 7.2 when it opens them, and no others.
_PANEL_VERSION: Final = "7.9.3"
_REFRESH_MS: Final = 60_000


class PanelPlace(NamedTuple):
    """A panel on the grid."""

    type: str
    id: str
    x: int
    y: int
    width: int
    height: int


_PLACES: Final = (
    PanelPlace("visualization", "schedulerlog-introduction", 0, 0, 48, 4),
    PanelPlace("visualization", "schedulerlog-attempts", 0, 4, 14, 12),
    PanelPlace("visualization", "schedulerlog-attempts-by-result", 14, 4, 34, 12),
    PanelPlace("visualization", "schedulerlog-top-reasons", 0, 16, 18, 15),
    PanelPlace("visualization", "schedulerlog-reasons-over-time", 18, 16, 30, 15),
    PanelPlace("visualization", "schedulerlog-waiting", 0, 31, 30, 17),
    PanelPlace("visualization", "schedulerlog-refused-by-namespace", 30, 31, 18, 17),
    PanelPlace("search", "schedulerlog-waiting-pods", 0, 48, 48, 15),
    PanelPlace("visualization", "schedulerlog-reasons-by-node", 0, 63, 24, 15),
    PanelPlace("visualization", "schedulerlog-occupancy-by-node", 24, 63, 24, 15),
    PanelPlace("visualization", "schedulerlog-time-to-placement", 0, 78, 24, 15),
    PanelPlace("visualization", "schedulerlog-waits-by-namespace", 24, 78, 24, 15),
    PanelPlace("visualization", "schedulerlog-findings-over-time", 0, 93, 16, 15),
    PanelPlace("search", "schedulerlog-findings-list", 16, 93, 32, 15),
    PanelPlace("search", "schedulerlog-bind-failures", 0, 108, 48, 12),
)


def saved_objects(api_url: str) -> list[SavedObject]:
    """List all objects, referenced objects first. ``api_url``: base URL of the API, as people's browsers reach it."""
    return [*index_patterns(api_url), *saved_searches(), *visualizations(api_url), _dashboard()]


def export(api_url: str) -> bytes:
    """Export the file that Dashboards imports."""
    return ndjson(saved_objects(api_url))


def _dashboard() -> SavedObject:
    source, _ = search_source("", None)
    attributes = {
        "title": "schedulerlog",
        "description": "GPU scheduling: what is placed, what waits and why, and what contradicts the cluster.",
        "hits": 0,
        "panelsJSON": text([_panel(number, place) for number, place in enumerate(_PLACES)]),
        "optionsJSON": text({"hidePanelTitles": False, "useMargins": True}),
        "version": 1,
        "timeRestore": True,
        "timeFrom": "now-24h",
        "timeTo": "now",
        "refreshInterval": {"pause": False, "value": _REFRESH_MS},
        **source,
    }
    references = (Reference(f"panel_{number}", place.type, place.id) for number, place in enumerate(_PLACES))
    return SavedObject("dashboard", DASHBOARD, attributes, tuple(references))


def _panel(number: int, place: PanelPlace) -> dict[str, Any]:
    grid = {"x": place.x, "y": place.y, "w": place.width, "h": place.height, "i": str(number)}
    return {
        "version": _PANEL_VERSION,
        "gridData": grid,
        "panelIndex": str(number),
        "embeddableConfig": {},
        "panelRefName": f"panel_{number}",
    }
