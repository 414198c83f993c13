"""The dashboard for operating schedulerlog: from the scheduler's spool over the topics to the API. Pure."""

from typing import Any

from deploy.dashboards.grafana.panels import PanelRow, dashboard, half_and_slowest, panel, quantiles, rates


def operating() -> dict[str, Any]:
    rows = (_objectives(), _spool(), _worker(), _index(), _others(), _api())
    return dashboard("schedulerlog-operating", "schedulerlog / operating", "Is every decision on its way?", rows)


def _objectives() -> PanelRow:
    burn = "How many times faster than allowed the month's error budget is used up; above 14.4 somebody is paged."
    names = ("decision_to_api", "accepted_to_visible", "api_availability")
    queries = tuple((f"slo:schedulerlog_{name}:burn_rate1h", name.replace("_", " ")) for name in names)
    return PanelRow("Objectives", (panel("Burn rates of an hour", burn, *queries, width=24, red_from=14.4),))


def _spool() -> PanelRow:
    return PanelRow(
        "Scheduler to Kafka",
        (
            panel(
                "Oldest decision that Kafka does not have",
                "Rises while Kafka is away; scheduling continues.",
                "max(schedulerlog_scheduler_spool_oldest_age_seconds)",
                unit="s",
                red_from=60,
            ),
            panel("Spool", "Bytes that wait on disk.", "sum(schedulerlog_scheduler_spool_bytes)", unit="bytes"),
            panel(
                "Records dropped from the spool",
                "Above zero the disk was full: details first, decisions last.",
                (rates("schedulerlog_scheduler_spool_dropped_detail_records_total"), "single devices"),
                (rates("schedulerlog_scheduler_spool_dropped_decision_records_total"), "decisions"),
                unit="ops",
            ),
        ),
    )


def _worker() -> PanelRow:
    return PanelRow(
        "Worker",
        (
            panel("Records behind", "Records that are not committed.", "sum(schedulerlog_worker_lag_records)"),
            panel(
                "Records read",
                "By outcome.",
                (rates("schedulerlog_worker_records_total", "outcome"), "{{outcome}}"),
                unit="ops",
                stacked=True,
            ),
            panel(
                "Attempts published",
                "By result.",
                (rates("schedulerlog_worker_attempts_published_total", "status"), "{{status}}"),
                unit="ops",
                stacked=True,
            ),
            panel(
                "Waits for a store",
                "1 while Kafka, or OpenSearch, does not answer.",
                ("max(schedulerlog_worker_is_waiting)", "worker: Kafka"),
                ("max(schedulerlog_index_is_waiting)", "index writer: OpenSearch"),
            ),
            panel(
                "Dead letters",
                "Records that could not be processed.",
                rates("schedulerlog_worker_dead_letters_total"),
                unit="ops",
            ),
            panel("Open attempts", "Records of them are missing.", "sum(schedulerlog_worker_open_attempts)"),
        ),
    )


def _index() -> PanelRow:
    return PanelRow(
        "Index writer",
        (
            panel(
                "Behind the topics",
                "Age of the oldest record that is read and not written.",
                "max(schedulerlog_index_behind_seconds)",
                unit="s",
                red_from=300,
            ),
            panel(
                "Documents",
                "By what OpenSearch answered.",
                (rates("schedulerlog_index_documents_total", "outcome"), "{{outcome}}"),
                unit="ops",
                stacked=True,
            ),
            panel(
                "Bulk requests",
                "Below half a second the writer is the limit, above it OpenSearch is.",
                *half_and_slowest("schedulerlog_index_bulk_seconds"),
                unit="s",
            ),
        ),
    )


def _others() -> PanelRow:
    return PanelRow(
        "Placements, alerts, events",
        (
            panel(
                "Behind the present",
                "How late audits and rules are.",
                ("max(schedulerlog_placements_lag_seconds)", "placements"),
                ("max(schedulerlog_alerts_clock_lag_seconds)", "alerts"),
                unit="s",
            ),
            panel(
                "Alerts published",
                "By rule and state.",
                (rates("schedulerlog_alerts_published_total", "rule", "state"), "{{rule}} {{state}}"),
                unit="ops",
            ),
            panel(
                "Messages as events of Kubernetes",
                "By outcome.",
                (rates("schedulerlog_events_messages_total", "outcome"), "{{outcome}}"),
                unit="ops",
            ),
        ),
    )


def _api() -> PanelRow:
    return PanelRow(
        "API",
        (
            panel(
                "Requests",
                "By status.",
                (rates("schedulerlog_api_requests_total", "status"), "{{status}}"),
                unit="ops",
                stacked=True,
            ),
            panel(
                "Time to answer, 99 %",
                "By route.",
                (quantiles("schedulerlog_api_request_seconds", "route"), "{{route}}"),
                unit="s",
            ),
            panel(
                "Requests to OpenSearch, 99 %",
                "By kind.",
                (quantiles("schedulerlog_api_opensearch_seconds", "request"), "{{request}}"),
                unit="s",
            ),
            panel(
                "Answered from memory",
                "Share of the lookups of pods.",
                'sum(rate(schedulerlog_api_lookups_total{outcome="hit"}[$__rate_interval])) / '
                + rates("schedulerlog_api_lookups_total"),
                unit="percentunit",
            ),
            panel("Behind the topic", "Records not read yet.", "max(schedulerlog_api_topic_lag_records)"),
            panel("Memory of attempts", "As JSON.", "max(schedulerlog_api_cache_bytes)", unit="bytes"),
        ),
    )
