"""The visualizations: each answers one question. Pure."""

from typing import Final

from deploy.dashboards.index_patterns import PLACEMENTS_NOW
from deploy.dashboards.panels import (
    GROUP,
    ROWS,
    X_AXIS,
    count,
    latest,
    markdown,
    metric,
    over_time,
    terms,
    visualization,
)
from deploy.dashboards.saved_objects import SavedObject
from deploy.dashboards.searches import LASTING, WAITING
from schemas.indices import ATTEMPTS, FINDINGS, OCCUPANCY, POD_STATES, TRENDS

_PERCENTILES: Final = (50, 90, 99)


def visualizations(api_url: str) -> list[SavedObject]:
    """List all visualizations in the order of the dashboard. ``api_url`` is the API's base URL."""
    return [_introduction(api_url), *_of_attempts(), *_of_reasons(), *_of_waits(), *_of_placements()]


def _introduction(api_url: str) -> SavedObject:
    words = (
        f"Every scheduling attempt: [pending pods now]({api_url}/api/v1/pending), [findings]({api_url}/api/v1/findings)"
        f", [the API]({api_url}/docs). A link in a row answers why the pod is where it is, or why it waits."
    )
    return markdown("schedulerlog-introduction", "schedulerlog", words)


def _of_attempts() -> list[SavedObject]:
    numbers = [
        count(label="Attempts"),
        metric("cardinality", "pod_uid", "Pods tried"),
        terms("status", GROUP, 3, label="Result"),
    ]
    over = [count(label="Attempts"), over_time(), terms("status", GROUP, 3, label="Result")]
    return [
        visualization(
            "schedulerlog-attempts",
            "Attempts and pods",
            "How much is scheduled?",
            "metric",
            ATTEMPTS.alias,
            "",
            numbers,
        ),
        visualization(
            "schedulerlog-attempts-by-result",
            "Attempts by result",
            "How many attempts place their pod?",
            "histogram",
            ATTEMPTS.alias,
            "",
            over,
        ),
    ]


def _of_reasons() -> list[SavedObject]:
    attempts = metric("sum", "attempts", "Attempts")
    # A trend counts each attempt once for every reason, retries that changed nothing included.
    top = [attempts, terms("value", X_AXIS, 15, label="Reason"), metric("sum", "devices", "Devices refused")]
    over = [attempts, over_time(), terms("value", GROUP, 10, label="Reason")]
    by_node = [
        count(label="Attempts"),
        terms("node_reasons", ROWS, 100, label="Node | reason"),
        metric("cardinality", "pod_uid", "Pods"),
        metric("max", "@timestamp", "Last"),
    ]
    by_namespace = [attempts, terms("namespace", X_AXIS, 15, label="Namespace")]
    reasons = "dimension:reason"
    return [
        visualization(
            "schedulerlog-top-reasons",
            "Top reasons",
            "What are nodes and devices refused for?",
            "table",
            TRENDS.alias,
            reasons,
            [{**agg, "schema": ROWS} if agg["schema"] == X_AXIS else agg for agg in top],
        ),
        visualization(
            "schedulerlog-reasons-over-time",
            "Reasons over time",
            "Since when?",
            "histogram",
            TRENDS.alias,
            reasons,
            over,
        ),
        visualization(
            "schedulerlog-reasons-by-node",
            "Reasons by node",
            "Which node refuses, and for what? Retries that changed nothing are not counted.",
            "table",
            ATTEMPTS.alias,
            "",
            by_node,
        ),
        visualization(
            "schedulerlog-refused-by-namespace",
            "Attempts without a placement, by namespace",
            "Whose pods are refused?",
            "horizontal_bar",
            TRENDS.alias,
            "dimension:all AND NOT result:succeeded",
            by_namespace,
        ),
    ]


def _of_waits() -> list[SavedObject]:
    waiting = [
        count(label="Pods"),
        terms("group", ROWS, 100, label="Workload"),
        metric("min", "first_judged_at", "First judged"),
        latest("reasons", "Reasons"),
        latest("attempt_id", "Latest attempt"),
    ]
    placement = [metric("percentiles", "placement_seconds", "Seconds to the bind", percents=_PERCENTILES), over_time()]
    by_namespace = [
        count(label="Placements"),
        terms("namespace", ROWS, 50, label="Namespace"),
        metric("percentiles", "placement_seconds", "Seconds to the bind", percents=_PERCENTILES),
        metric("percentiles", "start_seconds", "Seconds to the start", percents=_PERCENTILES),
    ]
    return [
        visualization(
            "schedulerlog-waiting",
            "Waiting pods by workload",
            "Which pods wait now, since when, for what? Whenever they were judged last.",
            "table",
            POD_STATES.alias,
            WAITING,
            waiting,
        ),
        visualization(
            "schedulerlog-time-to-placement",
            "Time to placement",
            "How long do pods wait until they are bound?",
            "line",
            OCCUPANCY.alias,
            "",
            placement,
        ),
        visualization(
            "schedulerlog-waits-by-namespace",
            "Time to placement and start, by namespace",
            "Whose pods wait longest?",
            "table",
            OCCUPANCY.alias,
            "",
            by_namespace,
        ),
    ]


def _of_placements() -> list[SavedObject]:
    occupancy = [
        metric("cardinality", "pod_uid", "Pods"),
        terms("node", ROWS, 100, label="Node"),
        metric("cardinality", "devices", "Devices in use"),
    ]
    findings = [count(label="Findings"), over_time("found_at"), terms("finding", GROUP, 10, label="Finding")]
    return [
        visualization(
            "schedulerlog-occupancy-by-node",
            "Occupancy now, by node",
            "How many pods and devices are in use on each node?",
            "table",
            PLACEMENTS_NOW,
            LASTING,
            occupancy,
        ),
        visualization(
            "schedulerlog-findings-over-time",
            "Findings",
            "What contradicts the state of the cluster?",
            "histogram",
            FINDINGS.alias,
            "",
            findings,
        ),
    ]
