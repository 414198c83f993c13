"""Devices that pods held or waited for over time, from the placements of the index."""

import csv
import io
import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.command import app
from schemas.events import DeviceAllocation, PodDescription, PodRef
from schemas.events.pods import Owner
from schemas.placements import PodPlacement
from tests.support.harness.api_process import Served, serving
from tests.support.harness.index_filling import NOW, Filling
from tests.support.waiting import until

CLUSTER = "api-held-trends"
WAITING = "api-waited-trends"
HOUR = NOW.replace(minute=0, second=0, microsecond=0)
MINUTES = 60
RANGE = {"count": "held_seconds", "since": f"{HOUR - timedelta(hours=4):%Y-%m-%dT%H:%M:%SZ}", "interval": "1h"}
RANGE["until"] = f"{HOUR:%Y-%m-%dT%H:%M:%SZ}"
WAITED: list[tuple[int, int, int, str, str, str]] = [
    (2, 200, 90, "Job/train", "gpu", "high"), (1, 190, 30, "Job/train", "gpu", "low"),
    (4, 100, 10, "Job/eval", "", "low"),
    # Placed before the range, and without a known wait.
    (8, 300, 60, "Job/train", "gpu", "high"), (8, 100, -1, "Job/train", "gpu", "high"),
]  # fmt: skip
"""Devices, minutes before the hour of the bind, minutes waited (-1: not known), workload, queue, priority class."""
# Namespace, node, devices, and minutes before the hour of begin and end; None: it is still there.
HELD: list[tuple[str, str, int, int, int | None]] = [
    ("llm", "a100-0", 2, 210, 30),
    ("llm", "a100-1", 1, 600, None),
    ("llm", "t4-0", 3, 130, 120),
    # In the range before only, and in none.
    ("llm", "t4-0", 4, 400, 300),
    ("vision", "t4-1", 1, 240, 180),
    ("vision", "loose", 1, 61, 59),
    ("batch", "a100-0", 1, 900, 700),
]


def a_placement(number: int, namespace: str, node: str, devices: int, began: int, ended: int | None) -> PodPlacement:
    held = [DeviceAllocation(uuid=f"{node}-{device}", container="main") for device in range(devices)]
    return PodPlacement(
        cluster=CLUSTER, id=f"{CLUSTER}-{number}", pod=PodRef(namespace=namespace, name=f"p{number}"), node=node,
        started_at=HOUR - timedelta(minutes=began), allocations=held,
        ended_at=None if ended is None else HOUR - timedelta(minutes=ended),
    )  # fmt: skip


def a_wait(number: int, row: tuple[int, int, int, str, str, str]) -> PodPlacement:
    """Build a placement in a cluster of its own, for a minute."""
    devices, bound, waited, workload, queue, priority_class = row
    kind, _, name = workload.partition("/")
    began = HOUR - timedelta(minutes=bound)
    description = PodDescription(
        created_at=None if waited < 0 else began - timedelta(minutes=waited),
        owners=[Owner(kind=kind, name=name)], queue=queue, priority_class=priority_class,
    )  # fmt: skip
    placement = a_placement(number, "llm", "a100-0", devices, bound, bound - 1)
    return placement.model_copy(
        update={"cluster": WAITING, "id": f"{WAITING}-{number}", "description": description, "bound_at": began}
    )


def add_up(hours: range, **wanted: str) -> list[int]:
    """Add up devices times seconds minute by minute, in each of the hours before the full one."""
    sums = []
    for hour in hours:
        minutes = range(hour * MINUTES, (hour - 1) * MINUTES, -1)
        rows = [
            (devices, began, ended or 0)
            for namespace, node, devices, began, ended in HELD
            if wanted.get("namespace", namespace) == namespace and node.startswith(wanted.get("node", ""))
        ]
        held = (devices for devices, began, ended in rows for minute in minutes if ended < minute <= began)
        sums.append(60 * sum(held))
    return sums


@pytest.fixture(scope="module")
def held(filling: Filling) -> Iterator[Served]:
    filling.index_placements(*(a_placement(number, *row) for number, row in enumerate(HELD)))
    filling.index_placements(*(a_wait(number, row) for number, row in enumerate(WAITED)))
    with serving(
        filling.bootstrap_servers,
        filling.url,
        SCHEDULERLOG_NODE_POOLS="big=a100-*,small=t4-*",
        SCHEDULERLOG_CLUSTER_NAME=CLUSTER,
    ) as api:
        assert until(api.is_ready)
        yield api


def fetch(api: Served, **query: str) -> Any:
    response = api.get("/api/v1/trends", **RANGE | query)
    assert response.status_code == 200, response.text
    return response.json()


def test_devices_held_are_those_of_a_count_minute_by_minute(held: Served) -> None:
    answer = fetch(held, by="namespace")
    hours, before = range(4, 0, -1), range(8, 4, -1)
    assert {item["key"]: item["values"] for item in answer["items"]} == {
        name: add_up(hours, namespace=name) for name in ("llm", "vision")
    }
    assert [item["key"] for item in answer["items"]] == ["llm", "vision"]
    assert answer["other"] is None
    assert {item["key"]: item["total_before"] for item in answer["items"]} == {
        name: sum(add_up(before, namespace=name)) for name in ("llm", "vision")
    }
    assert [datetime.fromisoformat(time) for time in answer["times"]] == [
        HOUR - timedelta(hours=hour) for hour in hours
    ]
    only = fetch(held, by="namespace", limit="1")
    assert only["other"]["values"] == add_up(hours, namespace="vision")


def test_devices_held_by_pool_follow_the_setting_and_nodes_of_none_are_apart(held: Served) -> None:
    answer = fetch(held, by="pool")
    hours = range(4, 0, -1)
    assert {item["key"]: item["values"] for item in answer["items"]} == {
        "big": add_up(hours, node="a100"), "small": add_up(hours, node="t4")
    }  # fmt: skip
    assert answer["unknown"]["values"] == add_up(hours, node="loose")
    assert (answer["unknown"]["total"], answer["other"]) == (120, None)
    only = fetch(held, by="pool", limit="1")
    assert only["other"]["values"] == add_up(hours, node="t4")
    assert only["unknown"] == answer["unknown"]
    (small,) = fetch(held, by="pool", key="small")["items"]
    assert small["values"] == add_up(hours, node="t4")
    (vision,) = fetch(held, by="pool", namespace="vision")["items"]
    assert (vision["key"], vision["total"]) == ("small", 3600)


def test_page_table_and_terminal_show_the_same_sums_in_hours(held: Served) -> None:
    # 2 devices for 3 h and 1 for 4 h; 3 devices for 10 min and 1 for 1 h.
    big, small = 2 * 3 + 4, 3 / 6 + 1
    words = ["trends", "-A", "--by", "pool", "--count", "held_seconds", "--since", RANGE["since"]]
    words += ["--until", RANGE["until"], "--api-url", f"{held.client.base_url}"]
    text = CliRunner().invoke(app, words).stdout
    assert text.startswith(f"big is first by pool: {big:.1f} GPU-hours held from")
    assert re.search(rf"^small +{small:.1f} ", text, re.MULTILINE)
    listed = json.loads(CliRunner().invoke(app, [*words, "-o", "json"]).stdout)["items"]
    assert [item["total"] for item in listed] == [big * 3600, small * 3600]
    rows = csv.DictReader(io.StringIO(held.get("/ui/trends.csv", **RANGE | {"by": "pool"}).text))
    assert sum(int(row["held_seconds"]) for row in rows if row["key"] == "big") == big * 3600
    assert re.search(r"^\(none recorded\) +0\.0 ", text, re.MULTILINE)
    page = held.get("/ui/trends", **RANGE | {"by": "pool"}).text
    assert "<bdi>none recorded</bdi>" in page
    assert re.search(rf'<bdi>big</bdi></th>\s*<td class="number" data-label="[^"]*">{big}', page)


@pytest.mark.parametrize(("dimension", "position"), [("workload", 3), ("queue", 4), ("priority_class", 5)])
def test_waits_count_with_their_devices_where_they_end_and_add_up_by_every_dimension(
    held: Served, dimension: str, position: int
) -> None:
    query = RANGE | {"by": dimension, "count": "waited_device_seconds"}
    answer = held.get(f"/api/v1/clusters/{WAITING}/trends", **query).json()
    expected: dict[str, list[int]] = {}
    for row in WAITED:
        devices, bound, waited = row[:3]
        if bound <= 240 and waited > 0:
            values = expected.setdefault(str(row[position]), [0, 0, 0, 0])
            values[(240 - bound) // 60] += devices * waited * 60
    without_key = expected.pop("", None)
    assert {item["key"]: item["values"] for item in answer["items"]} == expected
    assert (answer["unknown"] and answer["unknown"]["values"]) == without_key
    assert answer["other"] is None
    before = {item["key"]: item["total_before"] for item in answer["items"]}
    assert before == {key: 8 * 60 * 60 if key in ("Job/train", "gpu", "high") else 0 for key in expected}
    only = held.get(f"/api/v1/clusters/{WAITING}/trends", **query | {"count": "held_seconds"}).json()
    # Each is there for a minute.
    assert sum(item["total"] for item in [*only["items"], only["unknown"] or {"total": 0}]) == 60 * (2 + 1 + 4 + 8)


def test_devices_held_are_refused_by_reason_by_result_in_minutes_and_without_pools(held: Served, api: Served) -> None:
    for query in (
        {"by": "reason"},
        {"by": "priority_class", "count": "attempts"},
        {"by": "pool", "result": "failed"},
        {"by": "pool", "interval": "1m"},
    ):
        assert held.get("/api/v1/trends", **RANGE | query).status_code == 400
    refused = api.get("/api/v1/trends", **RANGE | {"by": "pool"})
    assert (refused.status_code, refused.json()["error"]) == (400, "no pool of nodes is defined")
