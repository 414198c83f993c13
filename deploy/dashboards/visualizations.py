"""All visualizations: each answers one question. Pure."""

from typing import Final

from deploy.dashboards.index_patterns import PLACEMENTS_NOW
from deploy.dashboards.panels import (
    GROUP,
    RESULT_COLOURS,
    ROWS,
    X_AXIS,
    aggregate_field,
    build_text_panel,
    build_visualization,
    count_documents,
    group_by_time,
    group_by_value,
    set_widths,
    take_latest,
)
from deploy.dashboards.saved_objects import SavedObject
from deploy.dashboards.searches import LASTING, WAITING
from schemas.indices import ATTEMPTS, FINDINGS, LAYERS, OCCUPANCY, POD_STATES, TRENDS

_PERCENTILES: Final = (50, 90, 99)
_IN_TABLE: Final = (50, 99)
"""Percentiles in columns, whose names are long."""


def list_visualizations(api_url: str) -> list[SavedObject]:
    """List all visualizations in the order of the dashboard. ``api_url`` is the API's base URL."""
    return [
        _build_introduction(api_url),
        *_list_attempt_panels(),
        *_list_reason_panels(),
        *_list_wait_panels(),
        *_list_placement_panels(),
    ]


def _build_introduction(api_url: str) -> SavedObject:
    words = (
        f"Every scheduling attempt: [pending pods now]({api_url}/ui/pending), [findings]({api_url}/ui/findings)"
        f", [trends]({api_url}/ui/trends). A link in a row answers why the pod is where it is, or why it waits."
    )
    return build_text_panel("schedulerlog-introduction", "schedulerlog", words)


def _list_attempt_panels() -> list[SavedObject]:
    numbers = [
        count_documents(label="Attempts"),
        aggregate_field("cardinality", "pod_uid", "Pods tried"),
        group_by_value("status", GROUP, 3, label="Result"),
    ]
    aggregations_over_time = [
        count_documents(label="Attempts"),
        group_by_time(),
        group_by_value("status", GROUP, 3, label="Result"),
    ]
    return [
        build_visualization(
            "schedulerlog-attempts",
            "Attempts and pods",
            "How much is scheduled?",
            "metric",
            ATTEMPTS.alias,
            "",
            numbers,
        ),
        build_visualization(
            "schedulerlog-attempts-by-result",
            "Attempts by result",
            "How many attempts place their pod?",
            "histogram",
            ATTEMPTS.alias,
            "",
            aggregations_over_time,
            RESULT_COLOURS,
        ),
    ]


def _list_reason_panels() -> list[SavedObject]:
    attempts = aggregate_field("sum", "attempts", "Attempts")
    # A trend counts each attempt once for its obstacle, also retries without a change.
    top = [attempts, group_by_value("value", ROWS, 15, label="Obstacle")]
    aggregations_over_time = [attempts, group_by_time(), group_by_value("value", GROUP, 10, label="Obstacle")]
    by_node = [
        count_documents(label="Attempts"),
        group_by_value("node_reasons", ROWS, 100, label="Node | reason"),
        aggregate_field("cardinality", "pod_uid", "Pods"),
        aggregate_field("max", "@timestamp", "Last"),
    ]
    by_namespace = [attempts, group_by_value("namespace", X_AXIS, 15, label="Namespace")]
    obstacles = "dimension:obstacle"
    return [
        build_visualization(
            "schedulerlog-top-obstacles",
            "Top obstacles",
            "What decided attempts that placed no pod? Each counts once.",
            "table",
            TRENDS.alias,
            obstacles,
            top,
            set_widths(300, 160),
        ),
        build_visualization(
            "schedulerlog-obstacles-over-time",
            "Obstacles over time",
            "Since when?",
            "histogram",
            TRENDS.alias,
            obstacles,
            aggregations_over_time,
        ),
        build_visualization(
            "schedulerlog-reasons-by-node",
            "Reasons by node",
            "Which node refuses, and for what? Retries that changed nothing are not counted.",
            "table",
            ATTEMPTS.alias,
            "",
            by_node,
            set_widths(270, 100, 80, 175),
        ),
        build_visualization(
            "schedulerlog-refused-by-namespace",
            "Attempts without a placement, by namespace",
            "Whose pods are refused?",
            "horizontal_bar",
            TRENDS.alias,
            "dimension:all AND NOT result:succeeded",
            by_namespace,
        ),
    ]


def _list_wait_panels() -> list[SavedObject]:
    waiting = [
        count_documents(label="Pods"),
        group_by_value("group", ROWS, 100, label="Workload"),
        aggregate_field("min", "first_judged_at", "First judged"),
        take_latest("obstacle", "Main obstacle"),
        take_latest("attempt_id", "Latest attempt"),
    ]
    placement = [
        aggregate_field("percentiles", "placement_seconds", "bind (s)", percents=_PERCENTILES),
        group_by_time(),
    ]
    by_namespace = [
        count_documents(label="Placements"),
        group_by_value("namespace", ROWS, 50, label="Namespace"),
        aggregate_field("percentiles", "placement_seconds", "bind (s)", percents=_IN_TABLE),
        aggregate_field("percentiles", "start_seconds", "start (s)", percents=_IN_TABLE),
    ]
    by_layer = [
        *(aggregate_field("sum", f"{layer}_wait_seconds", f"Seconds: {layer}") for layer in LAYERS),
        group_by_time(),
    ]
    return [
        build_visualization(
            "schedulerlog-waits-by-layer",
            "Waits by layer",
            "Where do pods wait until they start: queue, gate, nodes, bind, start?",
            "histogram",
            OCCUPANCY.alias,
            "",
            by_layer,
        ),
        build_visualization(
            "schedulerlog-waiting",
            "Waiting pods by workload",
            "Which pods wait now, since when, for what? Whenever they were judged last.",
            "table",
            POD_STATES.alias,
            WAITING,
            waiting,
            set_widths(200, 75, 175, 210, 120),
        ),
        build_visualization(
            "schedulerlog-time-to-placement",
            "Time to placement",
            "How long do pods wait until they are bound?",
            "line",
            OCCUPANCY.alias,
            "",
            placement,
        ),
        build_visualization(
            "schedulerlog-waits-by-namespace",
            "Time to placement and start, by namespace",
            "Whose pods wait longest?",
            "table",
            OCCUPANCY.alias,
            "",
            by_namespace,
        ),
    ]


def _list_placement_panels() -> list[SavedObject]:
    occupancy = [
        aggregate_field("cardinality", "pod_uid", "Pods"),
        group_by_value("node", ROWS, 100, label="Node"),
        aggregate_field("cardinality", "devices", "Devices in use"),
    ]
    findings = [
        count_documents(label="Findings"),
        group_by_time("found_at"),
        group_by_value("finding", GROUP, 10, label="Finding"),
    ]
    return [
        build_visualization(
            "schedulerlog-occupancy-by-node",
            "Occupancy now, by node",
            "How many pods and devices are in use on each node?",
            "table",
            PLACEMENTS_NOW,
            LASTING,
            occupancy,
        ),
        build_visualization(
            "schedulerlog-findings-over-time",
            "Findings",
            "What contradicts the state of the cluster?",
            "histogram",
            FINDINGS.alias,
            "",
            findings,
        ),
    ]
