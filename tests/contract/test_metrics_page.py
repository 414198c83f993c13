"""docs/metrics.md is true: its table is what the registry says of itself."""

import re
from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

import scheduler.metrics
from schemas.generate import ROOT

PAGE = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")


def rows(registry: CollectorRegistry) -> Iterator[str]:
    """A line of the table for each metric."""
    for collector in registry._collector_to_names:
        assert isinstance(collector, MetricWrapperBase)
        labels = ", ".join(f"`{label}`" for label in collector._labelnames)
        name = collector._name + ("_total" if collector._type == "counter" else "")
        yield f"| `{name}` | {collector._type} | {labels} | {collector._documentation} |"


def of_the_scheduler() -> list[str]:
    metrics = scheduler.metrics.Metrics()
    for name in scheduler.metrics.READ_WHEN_ASKED:
        metrics.watch(name, lambda: 0)
    return sorted(rows(metrics.registry))


def test_the_page_holds_every_metric_of_the_scheduler_and_no_other() -> None:
    assert [line for line in PAGE.splitlines() if line.startswith("| `schedulerlog_")] == of_the_scheduler()


def test_what_is_read_when_asked_is_told_apart_by_name() -> None:
    assert not set(scheduler.metrics.READ_WHEN_ASKED) & {
        name.removeprefix("schedulerlog_") for name in scheduler.metrics.Metrics().registry._names_to_collectors
    }


def test_the_queries_on_the_page_name_metrics_that_there_are() -> None:
    known = {name for line in of_the_scheduler() for name in re.findall(r"^\| `(\w+)`", line)}
    queries = "\n".join(re.findall(r"```promql\n(.*?)```", PAGE, re.DOTALL))
    asked = {name.removesuffix("_bucket") for name in re.findall(r"schedulerlog_\w+", queries)}
    assert asked
    assert asked <= known
