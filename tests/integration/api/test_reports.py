"""The report of failures from what the index holds, in each format, over HTTP and from the command line."""

import csv
import io
import subprocess
import sys
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import numpy as np
import pytest

from api.index.report_queries import build_waiting_query, find_smallest_request
from engine.diagnosis.waiting import derive_wait
from schemas.codec.records import format_rfc3339
from schemas.events import DeviceAllocation, PodDescription, PodRef, Request
from schemas.indices import POD_STATES
from schemas.placements import PodPlacement
from tests.support.builders.events import build_trends
from tests.support.harness.api_process import Served
from tests.support.harness.index_filling import NOW, Filling, a_finding, an_attempt

NAMESPACE = f"api-reports-{uuid.uuid4().hex[:8]}"
"""Namespace for each worker of a test run, which share one index."""
SLOW, QUICK = {"queue": 3600.0, "nodes": 3600.0, "start": 5.0}, {"gate": 30.0, "nodes": 30.0, "start": 5.0}
"""Seconds in each layer of two placed pods: of two hours, and of a minute."""
MEMORY, NUMA, CONTENTION = "CardInsufficientMemory", "NumaNotFit", "node lock contention"


def build_count(minutes: int, result: str, dimension: str, value: str, attempts: int) -> Any:
    minute = (NOW - timedelta(minutes=minutes)).replace(second=0, microsecond=0)
    count = np.array([attempts])
    row: dict[str, Any] = {"result": [result], "dimension": [dimension], "value": [value], "namespace": [NAMESPACE]}
    return build_trends(
        started_at=minute, recorded_at=minute, attempts=count, pods=count, nodes=2 * count, devices=8 * count, **row
    )


def a_waiting_attempt(pod: str, devices: int, hours: float, reason: str, memory_mib: int = 3000) -> Any:
    request = Request(container="main", vendor="NVIDIA", count=devices, memory_mib=memory_mib)
    attempt = an_attempt(f"{NAMESPACE}/{pod}-{NAMESPACE}", started_at=NOW - timedelta(minutes=2), reason=reason)
    attempt = attempt.model_copy(update={"requests": [request], "first_judged_at": NOW - timedelta(hours=hours)})
    return attempt.model_copy(update={"wait": derive_wait(attempt)})


def a_placed_pod(pod: str, devices: int, waited: timedelta, *reasons: str) -> PodPlacement:
    bound = NOW - timedelta(hours=1)
    uuids = [f"GPU-{pod}-{number}" for number in range(devices)]
    return PodPlacement(
        id=f"{NAMESPACE}-{pod}",
        cluster="default",
        pod=PodRef(namespace=NAMESPACE, name=pod, uid=f"uid-{pod}"),
        node="node1",
        started_at=bound,
        bound_at=bound,
        running_at=bound + timedelta(seconds=5),
        scheduler="hami-scheduler",
        first_judged_at=bound - waited,
        judged_at=bound,
        description=PodDescription(created_at=bound - waited),
        waited_for=sorted(reasons),
        obstacle=reasons[0] if reasons else "",
        allocations=[
            DeviceAllocation(uuid=uuid, container="main", memory_mib=3000, cores_percent=0, slots=1) for uuid in uuids
        ],
    )


@pytest.fixture(scope="module")
def filled(filling: Filling) -> Filling:
    filling.index_trends(
        build_count(30, "failed", "reason", MEMORY, 6),
        build_count(20, "failed", "reason", NUMA, 2),
        build_count(30, "failed", "all", "", 7),
        build_count(30, "failed", "reason", CONTENTION, 1),
        # Only before: the range of this report has none.
        build_count(30 * 60, "failed", "reason", "BindingFailed", 2),
        build_count(30, "succeeded", "all", "", 3),
        # In the range of the same length before this day.
        build_count(30 * 60, "failed", "reason", MEMORY, 4),
        build_count(30 * 60, "failed", "all", "", 4),
        build_count(30, "failed", "pool", "=a100", 5),
    )
    filling.index(
        a_waiting_attempt("one", 2, 3, MEMORY),
        a_waiting_attempt("two", 4, 1, MEMORY),
        a_waiting_attempt("three", 1, 2, NUMA, 2000),
    )
    filling.index_placements(
        a_placed_pod("slow", 4, timedelta(hours=2), NUMA, MEMORY).model_copy(update={"layer_seconds": SLOW}),
        a_placed_pod("quick", 1, timedelta(seconds=60), MEMORY).model_copy(update={"layer_seconds": QUICK}),
        a_placed_pod("at-once", 1, timedelta(seconds=0)),
        # Placed before the range, and gone an hour after its beginning.
        a_placed_pod("left", 2, timedelta(0)).model_copy(
            update={"started_at": NOW - timedelta(hours=30), "ended_at": NOW - timedelta(hours=23)}
        ),
    )
    filling.index_findings(a_finding(f"{NAMESPACE}/one"), a_finding(f"{NAMESPACE}/two"))
    return filling


def test_waits_by_layer_add_up_to_those_of_the_pods(filled: Filling, api: Served) -> None:
    report = api.get("/api/v1/reports/failures", namespace=NAMESPACE, since="24h").json()
    layers = {layer["layer"]: (layer["placed_pods"], layer["placed_seconds"]) for layer in report["layers"]}
    assert layers == {"queue": (1, 3600), "gate": (1, 30), "nodes": (2, 3630), "start": (2, 10)}
    assert sum(seconds for _, seconds in layers.values()) == 2 * 3600 + 5 + 60 + 5
    (nodes,) = [layer for layer in report["layers"] if layer["layer"] == "nodes"]
    assert nodes["waiting_pods"] == 3
    # The three wait on while the tests run, which may take minutes beside others.
    assert 6 * 3600 - 1 <= nodes["waiting_seconds"] <= 6 * 3600 + 3 * 1800
    trends = api.get("/api/v1/trends", by="layer", namespace=NAMESPACE, since="24h").json()
    assert (trends["count"], trends["other"]) == ("waited_seconds", None)
    assert {series["key"]: series["total"] for series in trends["items"]} == {
        "nodes": 3630, "queue": 3600, "gate": 30, "start": 10,
    }  # fmt: skip
    assert [series["key"] for series in trends["items"]][:2] == ["nodes", "queue"], "the largest first"
    (queue,) = api.get("/api/v1/trends", by="layer", key="queue", namespace=NAMESPACE, since="24h").json()["items"]
    assert (queue["total"], sum(queue["values"])) == (3600, 3600)
    refused = api.get("/api/v1/trends", by="layer", count="attempts")
    assert refused.status_code == 400
    assert "by=layer counts waited_seconds" in refused.text


def test_every_number_is_what_was_recorded(filled: Filling, api: Served) -> None:
    asked_at = datetime.now(UTC)
    report = api.get("/api/v1/reports/failures", namespace=NAMESPACE, since="24h").json()
    assert "attempts" in report, report
    assert (report["attempts"], report["failed"], report["failed_before"]) == (10, 7, 4)
    assert (report["bind_failed"], report["bind_failed_before"]) == (1, 2)
    memory, numa, contention = report["reasons"]
    assert (contention["code"], contention["attempts"], contention["attempts_before"]) == (CONTENTION, 1, 0)
    assert (memory["code"], memory["attempts"], memory["attempts_before"], memory["devices"]) == (MEMORY, 6, 4, 48)
    assert (numa["code"], numa["attempts"], numa["attempts_before"]) == (NUMA, 2, 0)
    assert memory["who_acts"]
    assert "gpumem" in memory["remedy"]
    assert [(namespace["key"], namespace["failed"]) for namespace in report["namespaces"]] == [(NAMESPACE, 7)]
    assert [(pool["key"], pool["failed"]) for pool in report["pools"]] == [("=a100", 5)]
    # Devices times hours: 2 x 3 + 4 x 1, and 1 x 2.
    # They wait on until the API answers, however long after the start of the tests that is.
    hours = (asked_at - NOW) / timedelta(hours=1)
    waited = {cause["cause"]: (cause["pods"], cause["gpu_hours"]) for cause in report["waiting"]["causes"]}
    assert waited == {
        MEMORY: (2, pytest.approx(10 + 6 * hours, abs=0.02)),
        NUMA: (1, pytest.approx(2 + hours, abs=0.02)),
    }
    assert report["waiting"]["pods"] == 3
    assert report["waiting"]["gpu_hours"] == pytest.approx(12 + 7 * hours, abs=0.02)
    # 4 x 2 h, and a minute of one device; a pod that waited for two reasons counts for the one that kept it longest.
    placed_for = {cause["cause"]: (cause["pods"], round(cause["gpu_hours"], 2)) for cause in report["placed"]["causes"]}
    assert placed_for == {MEMORY: (1, 0.02), NUMA: (1, 8.0)}
    assert (report["placed"]["pods"], round(report["placed"]["gpu_hours"], 2)) == (3, 8.02)
    (usage,) = report["usage"]
    assert (usage["namespace"], usage["devices"], usage["waiting_pods"]) == (NAMESPACE, 6, 3)
    # Six devices since an hour ago, and two until 23 hours ago; the range begins at the beginning of a bucket.
    since, until = (datetime.fromisoformat(report[name]) for name in ("since", "until"))
    held = 6 * (until - NOW + timedelta(hours=1)) + 2 * (NOW - timedelta(hours=23) - since)
    assert usage["held_gpu_hours"] == pytest.approx(held / timedelta(hours=1), abs=0.01)
    assert usage["waiting_gpu_hours"] == report["waiting"]["gpu_hours"]
    assert usage["placed_gpu_hours"] == report["placed"]["gpu_hours"]
    times = report["time_to_placement"]
    assert times["pods"] == 3
    assert times["p50_seconds"] == pytest.approx(60, rel=0.05)
    assert times["p99_seconds"] == pytest.approx(7200, rel=0.05)
    assert report["time_to_start"]["p99_seconds"] == pytest.approx(7205, rel=0.05)
    assert [(finding["finding"], finding["count"]) for finding in report["findings"]] == [("Overcommitted", 2)]


def test_the_smallest_request_of_all_that_wait_is_found(filled: Filling, api: Served) -> None:
    assert api.get("/api/v1/reports/failures", namespace=NAMESPACE).json()["waiting"]["pods"] == 3
    query = build_waiting_query("default", NAMESPACE, format_rfc3339(NOW - timedelta(hours=1)))
    answer = httpx.post(f"{filled.url}/{POD_STATES.alias}/_search", json=query, timeout=30)
    assert find_smallest_request(answer.raise_for_status().json()) == 2000


def test_the_report_is_a_table_a_page_and_markdown(filled: Filling, api: Served) -> None:
    def fetch_report(name: str, **query: str) -> tuple[str, str]:
        query |= {"namespace": NAMESPACE, "since": "24h", "format": name}
        answer = api.get("/api/v1/reports/failures", **query)
        assert answer.status_code == 200, answer.text
        return answer.headers["content-type"], answer.text

    media, text = fetch_report("csv")
    assert media.startswith("text/csv")
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["section", "key", "measure", "value"]
    assert ["reason", MEMORY, "attempts", "6"] in rows
    assert ["usage", NAMESPACE, "devices", "6"] in rows
    # What a spreadsheet would take for a formula is a text.
    assert ["pools", "'=a100", "failed", "5"] in rows
    media, text = fetch_report("markdown")
    assert media.startswith("text/markdown")
    assert f"| {MEMORY} | 6 | 4 | 48 |" in text
    media, text = fetch_report("html", lang="zh")
    assert media.startswith("text/html")
    assert "调度失败报告" in text
    assert text.count("<svg") >= 3
    assert not any(word in text for word in ("<script", "http://", "https://", "{{"))


def test_the_command_writes_the_same(filled: Filling, api: Served) -> None:
    command = [sys.executable, "-m", "api", "report", "--namespace", NAMESPACE, "--since", "24h"]
    run = subprocess.run(
        [*command, "--opensearch-url", filled.url, "--format", "markdown"], capture_output=True, text=True, check=True
    )
    assert f"| {MEMORY} | 6 | 4 | 48 |" in run.stdout


def test_a_wrong_range_says_what_to_write(api: Served) -> None:
    for query, words in (
        ({"since": "yesterday"}, "15m, 2h, 7d"),
        ({"format": "pdf"}, "markdown"),
        ({"until": "8d"}, "empty"),
    ):
        answer = api.get("/api/v1/reports/failures", **query)
        assert answer.status_code == 400
        assert words in answer.json()["error"], answer.text


def test_of_a_namespace_without_records_all_is_nothing(api: Served) -> None:
    report = api.get("/api/v1/reports/failures", namespace="api-reports-none").json()
    assert (report["attempts"], report["reasons"], report["waiting"]["pods"]) == (0, [], 0)
    assert report["time_to_placement"]["p50_seconds"] is None


def test_the_devices_of_a_reason_do_not_depend_on_how_many_others_refused(filling: Filling, api: Served) -> None:
    minute = (NOW - timedelta(minutes=30)).replace(second=0, microsecond=0)
    rows = []
    for number in range(12):
        # The first has the most attempts, and the fewest devices of all.
        attempts, devices = np.array([50 - number]), np.array([1000 + number if number else 60])
        key: dict[str, Any] = {"namespace": ["api-reports-many"], "result": ["failed"], "dimension": ["reason"]}
        key |= {"value": [f"Reason{number}"], "attempts": attempts, "pods": attempts, "nodes": attempts}
        rows.append(build_trends(started_at=minute, recorded_at=minute, partition=number, devices=devices, **key))
    # Fewer than any of them, and in the report all the same.
    key["value"], count = [CONTENTION], np.array([1])
    few = dict.fromkeys(("attempts", "pods", "nodes"), count) | {"devices": np.array([0])}
    rows.append(build_trends(started_at=minute, recorded_at=minute, partition=12, **(key | few)))
    filling.index_trends(*rows)
    reasons = api.get("/api/v1/reports/failures", namespace="api-reports-many", since="24h").json()["reasons"]
    assert reasons.pop()["code"] == CONTENTION
    counts = [(reason["attempts"], reason["devices"]) for reason in reasons]
    assert counts == [(50 - number, 1000 + number if number else 60) for number in range(10)]
