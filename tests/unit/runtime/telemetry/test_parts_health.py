import urllib.error
import urllib.request

from prometheus_client import CollectorRegistry, Counter

from runtime.settings.addresses import HostPort
from runtime.telemetry.health import report_no_problem
from runtime.telemetry.parts_health import PartsHealth

FREE = HostPort("127.0.0.1", 0)


def read(address: HostPort | None, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=5) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_one_address_answers_for_all_parts_by_their_names() -> None:
    health = PartsHealth(["worker", "api"])
    with health.open_server(FREE) as address:
        assert read(address, "/readyz") == (503, "worker: is starting\napi: is starting\n")
        with (
            health.serve_part("worker")(None, CollectorRegistry(), report_no_problem, lambda: "waiting for Kafka"),
            health.serve_part("api")(None, CollectorRegistry(), report_no_problem, report_no_problem),
        ):
            assert read(address, "/readyz") == (503, "worker: waiting for Kafka\napi: ok\n")
            assert read(address, "/readyz/api") == (200, "ok\n")
            assert read(address, "/readyz/worker") == (503, "waiting for Kafka\n")
            assert read(address, "/readyz/other")[0] == 404
        assert read(address, "/readyz") == (503, "worker: has ended\napi: has ended\n")


def test_readiness_names_all_parts_when_they_are_ready() -> None:
    health = PartsHealth(["worker"])
    show = health.serve_part("worker")
    with health.open_server(FREE) as address, show(None, CollectorRegistry(), report_no_problem, report_no_problem):
        assert read(address, "/readyz") == (200, "worker: ok\n")
        assert read(address, "/healthz") == (200, "ok\n")


def test_a_part_whose_loop_hangs_is_named_by_the_check_of_life() -> None:
    health = PartsHealth(["index", "worker"])
    show = health.serve_part("worker")
    with (
        health.open_server(FREE) as address,
        show(None, CollectorRegistry(), lambda: "blocked", report_no_problem),
    ):
        assert read(address, "/healthz") == (503, "worker: blocked\n")


def test_metrics_of_all_parts_are_in_one_answer_also_while_a_part_starts_again() -> None:
    health = PartsHealth(["worker", "api"])
    registries = {name: CollectorRegistry() for name in ("worker", "api")}
    for name, registry in registries.items():
        Counter(f"{name}_records", "Records.", registry=registry).inc(3)
    with health.open_server(FREE) as address:
        for name, registry in registries.items():
            with health.serve_part(name)(None, registry, report_no_problem, report_no_problem):
                pass
        _, text = read(address, "/metrics")
    assert "worker_records_total 3.0" in text
    assert "api_records_total 3.0" in text
    assert text.count("# HELP process_resident_memory_bytes ") == 1
