"""The pages of metrics are true: their tables are what the registries say of themselves, one for each process."""

import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

import api.metrics
import ingest.reading.metrics
import pipeline.metrics
import scheduler.hami_compat.metrics
import scheduler.metrics
from runtime.kafka.broker_clock import BrokerClock
from runtime.kafka.record import RecordPosition
from tests.support.metrics_page import read_pages

PAGE = read_pages()


def write_rows(registry: CollectorRegistry) -> Iterator[str]:
    """Write a line of the table for each metric."""
    for collector in registry._collector_to_names:
        if isinstance(collector, MetricWrapperBase):
            labels = ", ".join(f"`{label}`" for label in collector._labelnames)
            yield write_row(collector._name, str(collector._type), labels, collector._documentation)
        else:
            for family in collector.collect():
                yield write_row(family.name, family.type, "", family.documentation)


def write_row(name: str, kind: str, labels: str, description: str) -> str:
    return f"| `{name}{'_total' if kind == 'counter' else ''}` | {kind} | {labels} | {description} |"


def register_scheduler() -> CollectorRegistry:
    metrics = scheduler.metrics.Metrics()
    for name in (*scheduler.metrics.GAUGES, *scheduler.metrics.COUNTERS):
        metrics.watch(name, lambda: 0)
    return metrics.registry


async def send_nothing(_outgoing: object) -> list[RecordPosition]:
    return []


CLOCK = BrokerClock(SimpleNamespace(send=send_nothing))


def register_worker() -> CollectorRegistry:
    metrics = pipeline.metrics.WorkerMetrics()
    for name in pipeline.metrics.WORKER_GAUGES:
        metrics.watch(name, lambda: 0)
    pipeline.metrics.TrendsMetrics(metrics.registry)
    metrics.topics.watch_clock(CLOCK)
    return metrics.registry


def register_index_writer() -> CollectorRegistry:
    metrics = pipeline.metrics.IndexWriterMetrics()
    for name in pipeline.metrics.INDEX_GAUGES:
        metrics.watch(name, lambda: 0)
    metrics.topics.watch_clock(CLOCK)
    return metrics.registry


def register_placements() -> CollectorRegistry:
    metrics = pipeline.metrics.PlacementsMetrics()
    for name in pipeline.metrics.PLACEMENTS_GAUGES:
        metrics.watch(name, lambda: 0)
    metrics.topics.watch_clock(CLOCK)
    return metrics.registry


def register_alerts() -> CollectorRegistry:
    metrics = pipeline.metrics.AlertsMetrics()
    pipeline.metrics.TopicsMetrics("alerts", metrics.registry).watch_clock(CLOCK)
    return metrics.registry


def register_events() -> CollectorRegistry:
    metrics = pipeline.metrics.EventsMetrics()
    pipeline.metrics.TopicsMetrics("events", metrics.registry)
    return metrics.registry


def register_api() -> CollectorRegistry:
    metrics = api.metrics.Metrics()
    for name in (*api.metrics.GAUGES, *api.metrics.COUNTERS):
        metrics.watch(name, lambda: 0)
    return metrics.registry


def register_alertmanager_bridge() -> CollectorRegistry:
    return pipeline.metrics.BridgeMetrics().registry


def register_notify() -> CollectorRegistry:
    return pipeline.metrics.NotifyMetrics().registry


def register_ingest() -> CollectorRegistry:
    return ingest.reading.metrics.Metrics("hami-log").registry


PROCESSES: dict[str, Callable[[], CollectorRegistry]] = {
    "Scheduler": register_scheduler,
    "Worker": register_worker,
    "Index writer": register_index_writer,
    "Placements": register_placements,
    "Alerts": register_alerts,
    "Alertmanager bridge": register_alertmanager_bridge,
    "Messages": register_notify,
    "Kubernetes events": register_events,
    "API": register_api,
    "Ingest": register_ingest,
}


def read_section(title: str, prefix: str = "schedulerlog_") -> list[str]:
    """Read the table in the section of this title."""
    text = PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    return [line for line in text.splitlines() if line.startswith(f"| `{prefix}")]


@pytest.mark.parametrize("process", PROCESSES)
def test_the_page_holds_every_metric_of_the_process_and_no_other(process: str) -> None:
    assert read_section(process) == sorted(write_rows(PROCESSES[process]()))


def test_the_page_holds_every_metric_of_hami_that_there_is_and_no_other() -> None:
    families = scheduler.hami_compat.metrics.FAMILIES.items()
    expected = [
        write_row(name, "gauge", ", ".join(f"`{label}`" for label in labels), text) for name, (text, labels) in families
    ]
    assert read_section("HAMi's metrics", "hami_") == sorted(expected)


@pytest.mark.parametrize("process", PROCESSES)
def test_no_two_metrics_of_a_process_have_one_name(process: str) -> None:
    names = [line.split("`")[1] for line in write_rows(PROCESSES[process]())]
    assert len(names) == len(set(names))


def test_the_queries_on_the_page_name_metrics_that_there_are() -> None:
    metrics = set(re.findall(r"^\| `(\w+)`", PAGE, re.MULTILINE))
    queries = "\n".join(re.findall(r"```promql\n(.*?)```", PAGE, re.DOTALL))
    queried = {
        re.sub("_seconds_(bucket|count)$", "_seconds", name) for name in re.findall(r"schedulerlog_\w+", queries)
    }
    assert queried
    assert queried <= metrics
