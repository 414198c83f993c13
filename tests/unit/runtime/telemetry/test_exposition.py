from prometheus_client import CollectorRegistry, Counter
from prometheus_client.parser import text_string_to_metric_families as plain_text

from runtime.cli.installation import VERSION
from runtime.telemetry.exposition import encode_metrics, with_process

ASKS_FOR_OPEN_METRICS = "application/openmetrics-text; version=1.0.0, text/plain;version=0.0.4;q=0.5"


def a_registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    Counter("schedulerlog_test_things", "Things.", registry=registry).inc(3)
    return registry


def test_a_scrape_has_the_metrics_of_the_process_and_its_version() -> None:
    content_type, body = encode_metrics(with_process(a_registry()), "")
    assert content_type.startswith("text/plain; version=")
    samples = {sample.name: sample for family in plain_text(body.decode()) for sample in family.samples}
    assert samples["schedulerlog_test_things_total"].value == 3
    assert samples["schedulerlog_build_info"].labels == {"version": VERSION}
    assert samples["process_resident_memory_bytes"].value > 1_000_000
    assert {"process_cpu_seconds_total", "process_open_fds", "python_info", "python_gc_collections_total"} <= set(
        samples
    )


def test_open_metrics_are_answered_where_they_are_asked_for() -> None:
    content_type, body = encode_metrics(with_process(a_registry()), ASKS_FOR_OPEN_METRICS)
    assert content_type.startswith("application/openmetrics-text; version=1.0.0")
    assert body.endswith(b"# EOF\n")
    # The name of a counter's family has no suffix there.
    assert b"# TYPE schedulerlog_test_things counter\n" in body


def test_two_services_in_one_process_have_their_own_metrics() -> None:
    with_process(a_registry())
    assert b"schedulerlog_test_things" not in encode_metrics(with_process(CollectorRegistry()), "")[1]


def test_further_metrics_stand_before_the_end() -> None:
    more = ["# TYPE a gauge\na 1\n".__str__]
    assert encode_metrics(with_process(a_registry()), "", more)[1].endswith(b"\na 1\n")
    assert encode_metrics(with_process(a_registry()), ASKS_FOR_OPEN_METRICS, more)[1].endswith(b"\na 1\n# EOF\n")
