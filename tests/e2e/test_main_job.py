"""The main job on real processes, a real broker and a real index: the answers of docs/demo.md, and nothing lost.

Expected answers are the hand-worked ones of examples/expected/.
"""

import json
import random
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.dashboards.overview import export
from dev.demo import scenarios
from dev.demo.kube_scheduler import read_pod
from dev.demo.reader import build_schedulerlog_path, until
from dev.demo.stack import Stack, stack
from tests.support.panel_search import Imported, search_body
from tests.support.promql import list_selected, parse

NODES = scenarios.ALL_NODES


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with stack(tmp_path_factory.mktemp("stack"), scenarios.EXAMPLES / "cluster.yaml") as running:
        yield running


@pytest.fixture(scope="module")
def answers(running: Stack) -> dict[str, scenarios.ScenarioAnswer]:
    return {answer.title: answer for answer in scenarios.play(running)}


@pytest.mark.parametrize(
    "title",
    [
        "A pod of three containers, one without GPU, is placed",
        "Five devices on one node: every node refuses, each for its own reasons",
        "The devices of node3, one by one",
        "Two of five nodes refuse, three fit, the fullest is chosen",
        "The filter passes, but another pod holds the node's lock",
        "Refused three times: the only node of its kind is full",
        "Placed, now that llm/pretrain has ended",
        "Its history shows both, latest first",
    ],
)
def test_the_answer_is_the_one_worked_out_by_hand(answers: dict[str, scenarios.ScenarioAnswer], title: str) -> None:
    assert answers[title].actual == answers[title].expected


def test_every_pod_gets_its_event_messages(running: Stack, answers: dict[str, scenarios.ScenarioAnswer]) -> None:
    for answer in scenarios.compare_messages(running):
        assert answer.actual == answer.expected, answer.pod


@pytest.mark.usefixtures("answers")
def test_a_search_finds_placed_pods_as_well_as_refused_ones(running: Stack) -> None:
    answer = running.reader.search(scheduler="hami-scheduler", limit="100")
    assert {item["status"] for item in answer["items"]} >= {"succeeded", "failed"}
    assert len(answer["items"]) == answer["total"]


def test_a_search_by_reason_finds_the_one_attempt(running: Stack, answers: dict[str, scenarios.ScenarioAnswer]) -> None:
    answer = scenarios.search(running)
    assert answer.actual == answer.expected


def a_hopeless_pod(number: int) -> dict[str, Any]:
    """A pod that every node refuses and that no other attempt in this file is about."""
    pod = read_pod(scenarios.EXAMPLES / "pods" / "2-gpu-pod-default.yaml")
    pod["metadata"] |= {"name": f"hopeless-{number}", "uid": str(uuid.UUID(int=number)), "namespace": "faults"}
    return pod


def list_indexed(running: Stack) -> dict[str, list[str]]:
    """List attempt ids in the index by pod, of the namespace ``faults``."""
    url = running.backends.opensearch_url
    httpx.post(f"{url}/schedulerlog-attempts/_refresh", timeout=30)
    body = {"size": 10_000, "query": {"term": {"namespace": "faults"}}, "_source": ["pod", "attempt_id"]}
    hits = httpx.post(f"{url}/schedulerlog-attempts/_search", json=body, timeout=30).json()["hits"]["hits"]
    ids: dict[str, list[str]] = {}
    for hit in hits:
        ids.setdefault(hit["_source"]["pod"], []).append(hit["_source"]["attempt_id"])
    return ids


def assert_each_is_there_exactly_once(running: Stack, numbers: range) -> None:
    wanted = {f"hopeless-{number}": 1 for number in numbers}

    def count_attempts() -> dict[str, int]:
        attempts = list_indexed(running)
        return {name: len(attempts.get(name, [])) for name in wanted}

    assert until(count_attempts, wanted, timeout_seconds=60) == wanted
    sample = f"faults/hopeless-{numbers[-1]}"
    log = until(lambda: running.reader.get_status(sample), "failed")
    assert log == "failed"
    assert (
        running.reader.get(build_schedulerlog_path(sample))["filter"]["summary"]
        == "no available node, 10 nodes do not meet"
    )


def test_a_worker_killed_in_the_middle_loses_and_repeats_nothing(running: Stack) -> None:
    numbers = range(1000, 1120)
    kill_at = random.Random(7).sample(numbers, 3)
    for number in numbers:
        running.kube_scheduler.filter(a_hopeless_pod(number), NODES)
        if number in kill_at:
            running.processes.kill("worker")
            running.start("worker")
    assert_each_is_there_exactly_once(running, numbers)


def test_an_index_that_restarts_in_the_middle_loses_and_repeats_nothing(running: Stack) -> None:
    numbers = range(2000, 2080)
    for number in numbers:
        running.kube_scheduler.filter(a_hopeless_pod(number), NODES)
        if number == 2020:
            running.backends.opensearch.kill()
        if number == 2060:
            running.backends.opensearch.start()
    assert_each_is_there_exactly_once(running, numbers)


def test_while_the_index_is_down_the_latest_pods_are_still_answered(running: Stack) -> None:
    running.kube_scheduler.filter(a_hopeless_pod(3000), NODES)
    assert until(lambda: running.reader.get_status("faults/hopeless-3000"), "failed") == "failed"
    running.backends.opensearch.kill()
    try:
        assert running.reader.get_status("faults/hopeless-3000") == "failed"
    finally:
        running.backends.opensearch.start()


def test_while_the_broker_is_down_scheduling_continues_and_nothing_is_lost(running: Stack) -> None:
    numbers = range(4000, 4040)
    running.backends.kafka[0].kill()
    try:
        for number in numbers:
            assert running.kube_scheduler.filter(a_hopeless_pod(number), NODES) is None
        assert read_metric(running, "schedulerlog_scheduler_spool_bytes") > 0
    finally:
        running.backends.kafka[0].start()
    assert_each_is_there_exactly_once(running, numbers)


def read_metric(running: Stack, name: str) -> float:
    lines = httpx.get(running.build_url("scheduler") + "/metrics", timeout=30).text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


def fetch_exposition(running: Stack, service: str) -> str:
    return httpx.get(f"{running.build_url(service)}/metrics", timeout=30).text


def test_the_delay_of_decisions_is_measured_where_they_arrive(running: Stack) -> None:
    running.kube_scheduler.filter(a_hopeless_pod(5000), NODES)
    assert until(lambda: running.reader.get_status("faults/hopeless-5000"), "failed") == "failed"
    series = 'schedulerlog_api_decision_delay_seconds_bucket{le="5.0",source="scheduler"}'
    assert read_number(fetch_exposition(running, "api"), series) >= 1
    arrived = until(
        lambda: read_number(fetch_exposition(running, "index"), "schedulerlog_index_attempt_delay_seconds_count") > 0,
        True,
    )
    assert arrived


def read_number(text: str, series: str) -> float:
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(f"{series} "))


def test_every_series_of_grafanas_dashboards_is_exposed_by_its_process(running: Stack) -> None:
    services = ("scheduler", "worker", "index", "api")
    families = {
        name
        for service in services
        for name in re.findall(r"^# TYPE (\w+) ", fetch_exposition(running, service), re.MULTILINE)
    }
    names = {
        re.sub("_(bucket|count|sum)$", "", series.name)
        for content in map(Path.read_text, Path("deploy/kustomize/components/grafana").glob("*.json"))
        for expression in re.findall(r'"expr": "(.*)"', content)
        for series in list_selected(parse(expression.replace('\\"', '"')))
    }
    of_these = {name for name in names if name.startswith(tuple(f"schedulerlog_{service}_" for service in services))}
    assert len(of_these) > 20
    assert of_these - families == set()


def test_every_panel_of_attempts_has_rows_after_the_scenarios(
    running: Stack, answers: dict[str, scenarios.ScenarioAnswer]
) -> None:
    imported = Imported.read(export("http://127.0.0.1:9090"))
    panel_count = 0
    for name, panel in imported.select_type("visualization").items():
        pattern = imported.get_pattern(panel)
        title = pattern["attributes"]["title"] if pattern else ""
        # Nothing observes pods here: no placements, and no findings.
        if not title.startswith(("schedulerlog-attempts", "schedulerlog-trends", "schedulerlog-pod-states")):
            continue
        body = search_body(panel, pattern, "now-1h", "now")
        url = f"{running.backends.opensearch_url}/{title}/_search"

        def has_buckets(url: str = url, body: Any = body) -> bool:
            answer = httpx.post(url, json=body, timeout=30).raise_for_status().json()
            return any(agg.get("buckets") for agg in answer["aggregations"].values())

        assert until(has_buckets, True), name
        panel_count += 1
    assert panel_count >= 6


def test_the_hand_worked_answers_are_well_formed() -> None:
    for path in Path(scenarios.EXAMPLES / "expected").glob("*.json"):
        assert json.loads(path.read_text()), path.name
