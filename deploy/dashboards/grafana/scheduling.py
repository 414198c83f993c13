"""The dashboard of GPU scheduling: decisions, reasons, waits, and what HAMi's metrics say of devices. Pure.

HAMi's names are those of its own scheduler; ours exports the same ones.
"""

from typing import Any, Final

from deploy.dashboards.grafana.panels import PanelRow, dashboard, half_and_slowest, label_variable, panel, rates

_PLACEMENT: Final = "schedulerlog_placements_time_to_placement_seconds"
_START: Final = "schedulerlog_placements_time_to_start_seconds"
_CHOSEN: Final = '{cluster=~"$cluster", namespace=~"$namespace"}'


def scheduling() -> dict[str, Any]:
    variables = (
        label_variable("cluster", "Cluster", f"{_PLACEMENT}_count"),
        label_variable("namespace", "Namespace", f"{_PLACEMENT}_count"),
    )
    rows = (_decisions(), _waits(), _nodes(), _devices())
    about = "What is placed, what is refused and why, how long pods wait, and what is free."
    return dashboard("schedulerlog-scheduling", "schedulerlog / GPU scheduling", about, rows, variables)


def _decisions() -> PanelRow:
    return PanelRow(
        "Decisions",
        (
            panel(
                "Filter calls",
                "By result.",
                (rates("schedulerlog_scheduler_decisions_total", "result"), "{{result}}"),
                unit="ops",
                stacked=True,
            ),
            panel(
                "Devices refused, by reason",
                "The ten most frequent reasons.",
                ("topk(10, " + rates("schedulerlog_scheduler_devices_refused_total", "reason") + ")", "{{reason}}"),
                unit="ops",
                stacked=True,
                width=16,
            ),
            panel(
                "Binds",
                "By result.",
                (rates("schedulerlog_scheduler_binds_total", "result"), "{{result}}"),
                unit="ops",
                stacked=True,
            ),
            panel(
                "Time of a filter call",
                "Half of the calls, and the slowest hundredth.",
                *half_and_slowest("schedulerlog_scheduler_filter_seconds"),
                unit="s",
            ),
            panel(
                "Time of a bind",
                "Half of the calls, and the slowest hundredth.",
                *half_and_slowest("schedulerlog_scheduler_bind_seconds"),
                unit="s",
            ),
        ),
    )


def _waits() -> PanelRow:
    return PanelRow(
        "Waits",
        (
            panel(
                "Time to placement",
                "From the creation of a pod to its bind, of those bound in the interval.",
                *((_wait(_PLACEMENT, quantile), f"{name} %") for quantile, name in _QUANTILES),
                unit="s",
            ),
            panel(
                "Time to placement by namespace, 90 %",
                "The slowest tenth begins there.",
                (_wait(_PLACEMENT, "0.9", "namespace"), "{{namespace}}"),
                unit="s",
            ),
            panel(
                "Time to start",
                "From the creation of a pod to its first running container.",
                *((_wait(_START, quantile), f"{name} %") for quantile, name in _QUANTILES),
                unit="s",
            ),
            panel(
                "Bound within five minutes",
                "Share of the pods bound in the last day.",
                f'sum(increase({_PLACEMENT}_bucket{{le="300.0", cluster=~"$cluster", namespace=~"$namespace"}}[1d]))'
                f" / sum(increase({_PLACEMENT}_count{_CHOSEN}[1d]))",
                unit="percentunit",
                kind="stat",
            ),
            panel(
                "Findings",
                "What contradicts the state of the cluster, by finding, in an hour.",
                (
                    "sum by (finding) (increase(schedulerlog_placements_findings_total[1h]))",
                    "{{finding}}",
                ),
            ),
            panel(
                "Alerts that fire",
                "By severity.",
                ("sum by (severity) (schedulerlog_alerts_firing)", "{{severity}}"),
            ),
        ),
    )


_QUANTILES: Final = (("0.5", "50"), ("0.9", "90"), ("0.99", "99"))


def _wait(histogram: str, quantile: str, *by: str) -> str:
    labels = ", ".join(("le", *by))
    return f"histogram_quantile({quantile}, sum by ({labels}) (rate({histogram}_bucket{_CHOSEN}[$__rate_interval])))"


def _nodes() -> PanelRow:
    return PanelRow(
        "Nodes",
        (
            panel(
                "Nodes with devices",
                "Registered at the scheduler.",
                "max(schedulerlog_scheduler_registered_nodes)",
                kind="stat",
                width=4,
            ),
            panel(
                "Nodes with a problem",
                "Of registration or handshake.",
                ("max by (problem) (schedulerlog_scheduler_nodes_with_problem)", "{{problem}}"),
                width=10,
            ),
            panel(
                "Node locks held, open binds",
                "Nodes that a pod is being bound to; binds without a recorded end.",
                ("max(schedulerlog_scheduler_node_locks_held)", "locks"),
                ("max(schedulerlog_scheduler_binds_open)", "open binds"),
                width=10,
            ),
        ),
    )


def _devices() -> PanelRow:
    return PanelRow(
        "Devices (HAMi's metrics)",
        (
            panel(
                "Memory allocated",
                "Of the memory of all devices.",
                "sum(hami_gpu_memory_allocated_bytes) / sum(hami_gpu_memory_limit_bytes)",
                unit="percentunit",
                kind="stat",
                width=4,
            ),
            panel(
                "Memory by type of device",
                "Allocated, and what there is.",
                ("sum by (device_type) (hami_gpu_memory_allocated_bytes)", "{{device_type}} allocated"),
                ("sum by (device_type) (hami_gpu_memory_limit_bytes)", "{{device_type}} in all"),
                unit="bytes",
                width=10,
            ),
            panel(
                "Free devices",
                "Devices that no container shares, by type.",
                ("count by (device_type) (hami_gpu_shared_count == 0)", "{{device_type}}"),
                width=10,
            ),
            panel(
                "Fullest nodes",
                "Share of the memory that is allocated.",
                (
                    f"topk(10, {_of_node('allocated')} / {_of_node('limit')})",
                    "{{node}}",
                ),
                unit="percentunit",
                width=12,
            ),
            panel(
                "Memory by namespace",
                "Allocated to containers.",
                ('sum by (namespace) (hami_vgpu_memory_allocated_bytes{namespace=~"$namespace"})', "{{namespace}}"),
                unit="bytes",
                stacked=True,
                width=12,
            ),
        ),
    )


def _of_node(amount: str) -> str:
    return f"sum by (node) (hami_gpu_memory_{amount}_bytes)"
