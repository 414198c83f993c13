"""`schedulerlog all` with a real Kafka and OpenSearch: answers worked out by hand, and nothing lost when it dies."""

import random
import re
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from dev.demo import scenarios
from dev.demo.kube_scheduler import read_pod
from dev.demo.reader import until
from dev.demo.stack import TOGETHER, Stack
from tests.support.reused_backends import shared_stack

PARTS = ("worker", "index", "placements", "alerts", "retention", "kube-events", "events", "api")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("stack")
    with shared_stack(
        folder,
        scenarios.EXAMPLES / "cluster.yaml",
        services=TOGETHER,
        SCHEDULERLOG_TOPIC_PARTITIONS="3",
        SCHEDULERLOG_INDEX_LINGER="2s",
    ) as running:
        yield running


def test_topics_that_are_divided_have_few_partitions(running: Stack) -> None:
    lines = running.processes.log("provision").read_text()
    partitions = dict(re.findall(r"topic schedulerlog\.(\S+): made \((\d+) partitions", lines))
    assert (partitions["decisions"], partitions["pod-histories"], partitions["alerts"]) == ("3", "3", "1")


def test_one_readiness_names_every_part(running: Stack) -> None:
    lines = httpx.get(f"{running.build_url('all')}/readyz", timeout=30).text.splitlines()
    assert sorted(lines) == sorted(f"{part}: ok" for part in PARTS)


def test_no_metric_of_two_parts_has_one_name(running: Stack) -> None:
    text = httpx.get(f"{running.build_url('all')}/metrics", timeout=30).text
    families = Counter(re.findall(r"^# HELP (\S+)", text, re.MULTILINE))
    assert {name.split("_")[1] for name in families if name.startswith("schedulerlog_")} >= {"worker", "index", "api"}
    assert [name for name, number in families.items() if number > 1] == []


def test_every_answer_is_the_one_worked_out_by_hand(running: Stack) -> None:
    for answer in scenarios.play(running):
        assert answer.actual == answer.expected, answer.title


def test_kubernetes_has_an_event_for_each_pod_of_the_scenarios(running: Stack) -> None:
    wanted = set(scenarios.read_expected("messages"))

    def list_pods_of_events() -> set[str]:
        regarding = [event["regarding"] for event in running.api_server.list_written()["items"]]
        return {f"{pod['namespace']}/{pod['name']}" for pod in regarding}

    assert until(list_pods_of_events, wanted, timeout_seconds=60) == wanted


def a_hopeless_pod(number: int) -> dict[str, Any]:
    """A pod that every node refuses and that no other attempt in this file is about."""
    pod = read_pod(scenarios.EXAMPLES / "pods" / "2-gpu-pod-default.yaml")
    pod["metadata"] |= {"name": f"hopeless-{number}", "uid": str(uuid.UUID(int=number)), "namespace": "faults"}
    return pod


def count_attempts(running: Stack, numbers: range) -> dict[str, int]:
    """Count the attempts in the index by pod."""
    url = running.backends.opensearch_url
    httpx.post(f"{url}/schedulerlog-attempts/_refresh", timeout=30)
    body = {"size": 10_000, "query": {"term": {"namespace": "faults"}}, "_source": ["pod"]}
    hits = httpx.post(f"{url}/schedulerlog-attempts/_search", json=body, timeout=30).json()["hits"]["hits"]
    attempts = Counter(hit["_source"]["pod"] for hit in hits)
    return {f"hopeless-{number}": attempts[f"hopeless-{number}"] for number in numbers}


def assert_each_is_there_exactly_once(running: Stack, numbers: range) -> None:
    wanted = {f"hopeless-{number}": 1 for number in numbers}
    assert until(lambda: count_attempts(running, numbers), wanted, timeout_seconds=120) == wanted
    assert until(lambda: running.reader.get_status(f"faults/hopeless-{numbers[-1]}"), "failed") == "failed"


def test_a_process_that_is_killed_loses_and_repeats_nothing(running: Stack) -> None:
    numbers = range(1000, 1060)
    kill_at = random.Random(7).sample(numbers, 2)
    for number in numbers:
        running.kube_scheduler.filter(a_hopeless_pod(number), scenarios.ALL_NODES)
        if number in kill_at:
            running.processes.kill("all")
            running.start("all")
    assert_each_is_there_exactly_once(running, numbers)


def test_a_process_that_is_asked_to_end_has_committed_what_it_read(running: Stack) -> None:
    numbers = range(2000, 2040)
    for number in numbers:
        running.kube_scheduler.filter(a_hopeless_pod(number), scenarios.ALL_NODES)
        if number == 2020:
            running.wait_ready("all")
            assert running.processes.stop("all", 30) == 0
            running.start("all")
    assert_each_is_there_exactly_once(running, numbers)


def test_stores_that_die_for_a_while_lose_nothing_and_end_no_part(running: Stack) -> None:
    numbers = range(3000, 3060)
    (broker,) = running.backends.kafka
    for number in numbers:
        running.kube_scheduler.filter(a_hopeless_pod(number), scenarios.ALL_NODES)
        if number == 3010:
            broker.kill()
        if number == 3020:
            running.backends.opensearch.kill()
        if number == 3030:
            broker.start()
        if number == 3050:
            running.backends.opensearch.start()
    assert_each_is_there_exactly_once(running, numbers)
    running.wait_ready("all")
