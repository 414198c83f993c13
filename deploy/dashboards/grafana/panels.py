"""Panels of Grafana, and how they lie on the grid. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from schemas.json_types import Json

SCHEMA_VERSION: Final = 39
"""The schema of Grafana 11, which later versions read too."""
COLUMNS: Final = 24
_ROW_HEIGHT: Final = 1
_RATE: Final = "$__rate_interval"
_DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True)
class PanelQuery:
    expression: str
    legend: str = ""
    """With labels as ``{{name}}``."""


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    about: str
    queries: tuple[PanelQuery, ...]
    unit: str = "short"
    """``s``, ``bytes``, ``ops``, ``percentunit``, ``short``."""
    kind: str = "timeseries"
    """``timeseries`` or ``stat``."""
    width: int = 8
    stacked: bool = False
    red_from: float | None = None
    """The value from which it is shown in red."""


@dataclass(frozen=True, slots=True)
class PanelRow:
    title: str
    panels: tuple[Panel, ...]
    height: int = 7


def panel(title: str, about: str, *queries: tuple[str, str] | str, **how: Any) -> Panel:
    """``queries``: expressions, with a legend where there are several series."""
    found = (PanelQuery(query) if isinstance(query, str) else PanelQuery(*query) for query in queries)
    return Panel(title, about, tuple(found), **how)


def quantiles(histogram: str, *by: str, quantile: str = "0.99") -> str:
    """A quantile of a histogram over the interval of the panel."""
    labels = ", ".join(("le", *by))
    return f"histogram_quantile({quantile}, sum by ({labels}) (rate({histogram}_bucket[{_RATE}])))"


def rates(counter: str, *by: str) -> str:
    labels = f" by ({', '.join(by)})" if by else ""
    return f"sum{labels} (rate({counter}[{_RATE}]))"


def half_and_slowest(histogram: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """The queries of a panel about times: the median, and what one in a hundred exceeds."""
    return (quantiles(histogram, quantile="0.5"), "half of them"), (quantiles(histogram), "99 %")


def dashboard(uid: str, title: str, about: str, rows: Sequence[PanelRow], variables: Sequence[Json] = ()) -> Json:
    return {
        "uid": uid,
        "title": title,
        "description": about,
        "tags": ["schedulerlog"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "",
        "templating": {"list": [_datasource_variable(), *variables]},
        "annotations": {"list": []},
        "links": [],
        "panels": _on_the_grid(rows),
    }


def label_variable(name: str, label: str, metric: str) -> Json:
    """A variable with all values of a label, any number of which may be chosen."""
    query = f"label_values({metric}, {name})"
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _DATASOURCE,
        "definition": query,
        "query": {"query": query, "refId": "variable"},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _datasource_variable() -> Json:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "refresh": 1}


def _on_the_grid(rows: Sequence[PanelRow]) -> list[Json]:
    """Rows one below the other, their panels from left to right and line by line."""
    found: list[Json] = []
    y = 0
    for row in rows:
        grid = {"x": 0, "y": y, "w": COLUMNS, "h": _ROW_HEIGHT}
        found.append(
            {"id": len(found) + 1, "type": "row", "title": row.title, "gridPos": grid, "collapsed": False, "panels": []}
        )
        y += _ROW_HEIGHT
        x = 0
        for spec in row.panels:
            if x + spec.width > COLUMNS:
                x, y = 0, y + row.height
            grid = {"x": x, "y": y, "w": spec.width, "h": row.height}
            found.append({"id": len(found) + 1, "gridPos": grid} | _panel(spec))
            x += spec.width
        y += row.height
    return found


def _panel(spec: Panel) -> Json:
    return {
        "type": spec.kind,
        "title": spec.title,
        "description": spec.about,
        "datasource": _DATASOURCE,
        "targets": [_target(place, query) for place, query in enumerate(spec.queries)],
        "fieldConfig": {"defaults": _defaults(spec), "overrides": []},
        "options": _stat_options() if spec.kind == "stat" else _series_options(),
    }


def _target(place: int, query: PanelQuery) -> Json:
    name = {"refId": chr(ord("A") + place), "expr": query.expression, "legendFormat": query.legend or "__auto"}
    return {"datasource": _DATASOURCE, "editorMode": "code", "range": True} | name


def _defaults(spec: Panel) -> Json:
    steps: list[Json] = [{"color": "green", "value": None}]
    if spec.red_from is not None:
        steps.append({"color": "red", "value": spec.red_from})
    found: Json = {"unit": spec.unit, "thresholds": {"mode": "absolute", "steps": steps}}
    if spec.kind == "timeseries":
        stacking = {"mode": "normal" if spec.stacked else "none", "group": "A"}
        found["custom"] = {"fillOpacity": 25 if spec.stacked else 5, "lineWidth": 1, "stacking": stacking}
        found["min"] = 0
    else:
        found["color"] = {"mode": "thresholds"}
    return found


def _series_options() -> Json:
    legend = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
    return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}


def _stat_options() -> Json:
    return {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "value",
        "graphMode": "area",
        "textMode": "auto",
        "orientation": "auto",
        "justifyMode": "auto",
    }
