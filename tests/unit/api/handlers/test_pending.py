"""Pods that wait, by workload, by obstacle or one by one, and in each format: from the golden records."""

import csv
import io
from typing import Any

import pytest

from schemas.answers.waiting import PendingRow
from tests.support.harness.api_app import Caller
from tests.support.harness.golden_index import answer_search

PATH = "/api/v1/pending"


@pytest.fixture
def caller() -> Caller:
    return Caller(answer_search)


async def fetch_rows(caller: Caller, query: str) -> list[dict[str, Any]]:
    answer = await caller.get(f"{PATH}?{query}&format=flat")
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()
    return rows


async def test_without_new_parameters_the_answer_has_what_it_had(caller: Caller) -> None:
    body = (await caller.get(PATH)).json()
    assert {"pods", "layers", "obstacles", "reasons", "total", "items", "blocked", "continue"} == body.keys()
    before = {"namespace", "workload", "queue", "pods", "reasons", "first_judged_at", "last_judged_at", "examples"}
    assert before < body["items"][0].keys()
    assert body["blocked"], "workloads that could not make their pods"


async def test_a_row_is_about_a_pod_a_workload_or_an_obstacle(caller: Caller) -> None:
    (pod,) = await fetch_rows(caller, "group_by=pod")
    assert pod.keys() == PendingRow.model_fields.keys()
    assert (pod["pods"], pod["name"], pod["devices"]) == (1, "deepseek-5996b8569d-kgwgx", 2)
    assert pod["gpu_hours"] == pytest.approx(2 * pod["waited_seconds"] / 3600, abs=0.001)
    (workload,) = await fetch_rows(caller, "group_by=workload")
    assert (workload["workload"], workload["name"]) == ("Deployment/deepseek", pod["name"]), "it has one pod"
    (obstacle,) = await fetch_rows(caller, "group_by=obstacle")
    assert (obstacle["obstacle"], obstacle["name"], obstacle["workload"]) == (pod["obstacle"], "", "")


async def test_the_holder_of_a_lock_is_in_no_list(caller: Caller) -> None:
    (pod,) = await fetch_rows(caller, "group_by=pod")
    assert pod["sentence"], pod
    for query in ("group_by=pod", "group_by=obstacle", "group_by=workload", "group_by=pod&format=csv"):
        assert "qwen-0" not in (await caller.get(f"{PATH}?{query}")).text, "llm/qwen-0 held the lock of node5"


async def test_a_table_has_a_column_for_each_field_of_a_row(caller: Caller) -> None:
    answer = await caller.get(f"{PATH}?group_by=pod&format=csv")
    assert (answer.headers["content-type"], answer.headers["vary"]) == ("text/csv; charset=utf-8", "Accept")
    table = csv.DictReader(io.StringIO(answer.text, newline=""))
    assert table.fieldnames == list(PendingRow.model_fields)
    assert [row["namespace"] for row in table] == ["llm"]


async def test_the_format_of_the_parameter_comes_before_that_of_the_header(caller: Caller) -> None:
    by_header = await caller.get(PATH, accept="text/csv")
    assert by_header.headers["content-type"].startswith("text/csv")
    assert "items" in (await caller.get(f"{PATH}?format=json", accept="text/csv")).json()


@pytest.mark.parametrize(
    ("query", "cause"),
    [
        ("sort=attempts", "known are pods, wait, gpu_hours, devices"),
        ("sort=pods&group_by=pod", "known are wait, gpu_hours, devices, attempts, name"),
        ("group_by=node", "group_by"),
        ("format=xml", "format"),
        ("min_wait=long", "neither a time"),
        ("pool=", "pool"),
        ("watch=true&group_by=pod", "a watch does not have it"),
        ("watch=true&format=csv", "a watch does not have it"),
    ],
)
async def test_a_wrong_parameter_is_named(caller: Caller, query: str, cause: str) -> None:
    answer = await caller.get(f"{PATH}?{query}")
    assert answer.status_code == 400
    assert cause in answer.json()["error"]
