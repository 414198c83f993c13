"""Counts over time, from rows of minutes as the trend counter writes them."""

import csv
import io
from datetime import timedelta
from typing import Any

import numpy as np

from tests.support.builders.events import build_trends
from tests.support.harness.api_process import Served
from tests.support.harness.index_filling import NOW, Filling

HOUR = NOW.replace(minute=0, second=0, microsecond=0)
NAMESPACE = "api-trends"


def fill(filling: Filling, rows: list[tuple[int, str, str, str, int]]) -> None:
    """Fill the index. rows: minutes before this hour, result, dimension, value, attempts; each judged two nodes of four
    devices.
    """
    events = []
    for number, (minutes, result, dimension, value, attempts) in enumerate(rows):
        minute = HOUR - timedelta(minutes=minutes)
        counted = np.array([attempts])
        event = build_trends(
            started_at=minute,
            recorded_at=minute,
            # Rows of one minute and key, from several partitions, are added up.
            partition=number,
            namespace=[NAMESPACE],
            result=[result],
            dimension=[dimension],
            value=[value],
            attempts=counted,
            pods=counted,
            nodes=2 * counted,
            devices=8 * counted,
        )
        events.append(event)
    filling.index_trends(*events)


def fetch_trends(api: Served, **query: str) -> Any:
    span = {"since": f"{HOUR - timedelta(hours=12):%Y-%m-%dT%H:%M:%SZ}", "until": f"{HOUR:%Y-%m-%dT%H:%M:%SZ}"}
    response = api.get("/api/v1/trends", **({"namespace": NAMESPACE, "interval": "1h", "by": "reason"} | span | query))
    assert response.status_code == 200, response.text
    return response.json()


def test_counts_over_time_by_every_dimension(filling: Filling, api: Served) -> None:
    fill(
        filling,
        [
            # Two partitions of one minute; an hour later; and thirteen hours ago, which is in the range before.
            (90, "failed", "reason", "CardInsufficientMemory", 3),
            (90, "failed", "reason", "CardInsufficientMemory", 2),
            (30, "failed", "reason", "CardInsufficientMemory", 1),
            (780, "failed", "reason", "CardInsufficientMemory", 4),
            (30, "failed", "reason", "NumaNotFit", 2),
            (30, "failed", "reason", "CardTypeMismatch", 1),
            (90, "failed", "all", "", 5),
            (30, "failed", "all", "", 3),
            (30, "succeeded", "all", "", 7),
            # Five of the eight have the obstacle that decided them; the others were counted by an earlier version.
            (90, "failed", "obstacle", "CardInsufficientMemory", 3),
            (30, "failed", "obstacle", "CardTypeMismatch", 2),
            (30, "failed", "model", "NVIDIA A100", 3),
            (30, "failed", "pool", "a100", 3),
            (30, "failed", "workload", "Job/train", 3),
        ],
    )
    answer = fetch_trends(api)
    assert len(answer["times"]) == 12
    first, second, third = answer["items"]
    assert (first["key"], first["total"], first["total_before"]) == ("CardInsufficientMemory", 6, 4)
    assert first["values"] == [0] * 10 + [5, 1]
    assert (second["key"], second["values"][-1], second["total_before"]) == ("NumaNotFit", 2, 0)
    assert third["key"] == "CardTypeMismatch"
    assert answer["other"] is None

    decided = fetch_trends(api, by="obstacle")
    assert {item["key"]: item["total"] for item in decided["items"]} == {
        "CardInsufficientMemory": 3, "CardTypeMismatch": 2,
    }  # fmt: skip
    assert (decided["unknown"]["values"][-2:], decided["unknown"]["total"]) == ([2, 1], 3)

    top = fetch_trends(api, limit="1")
    assert [item["key"] for item in top["items"]] == ["CardInsufficientMemory"]
    assert (top["other"]["key"], top["other"]["total"], top["other"]["values"][-1]) == ("", 3, 3)

    results = {item["key"]: item["total"] for item in fetch_trends(api, by="result")["items"]}
    assert results == {"failed": 8, "succeeded": 7}
    assert [(item["key"], item["total"]) for item in fetch_trends(api, by="namespace")["items"]] == [(NAMESPACE, 15)]
    assert [(item["key"], item["total"]) for item in fetch_trends(api, by="namespace", result="failed")["items"]] == [
        (NAMESPACE, 8)
    ]
    for dimension, key in (("model", "NVIDIA A100"), ("pool", "a100"), ("workload", "Job/train")):
        assert [(item["key"], item["total"]) for item in fetch_trends(api, by=dimension)["items"]] == [(key, 3)]
    # Four devices of two nodes for each.
    assert fetch_trends(api, by="model", count="devices")["items"][0]["total"] == 24
    assert fetch_trends(api, by="model", count="nodes")["items"][0]["total"] == 6
    assert [item["key"] for item in fetch_trends(api, key="NumaNotFit")["items"]] == ["NumaNotFit"]


def test_a_change_of_level_is_marked_at_its_bucket(filling: Filling, api: Served) -> None:
    rows = [(minutes, "failed", "reason", "ModeNotFit", 2 if minutes > 25 else 40) for minutes in range(1, 61)]
    fill(filling, rows)
    answer = fetch_trends(api, since="2h", until=f"{HOUR:%Y-%m-%dT%H:%M:%SZ}", interval="1m", key="ModeNotFit")
    (series,) = answer["items"]
    changes = [(change["at"], change["after"]) for change in series["changes"]]
    assert (f"{HOUR - timedelta(minutes=25):%Y-%m-%dT%H:%M:%S}.000000Z", 40.0) in changes


def test_as_csv_each_bucket_of_a_series_is_a_row(filling: Filling, api: Served) -> None:
    fill(filling, [(30, "failed", "workload", "=cmd()", 3)])
    span = {"since": f"{HOUR - timedelta(hours=2):%Y-%m-%dT%H:%M:%SZ}", "until": f"{HOUR:%Y-%m-%dT%H:%M:%SZ}"}
    query = {"namespace": NAMESPACE, "by": "workload", "key": "=cmd()", "interval": "1h", "format": "csv"} | span
    response = api.client.get("/api/v1/trends", params=query)
    assert response.headers["content-type"].startswith("text/csv")
    rows = list(csv.reader(io.StringIO(response.text)))
    assert rows[0] == ["time", "by", "key", "attempts"]
    # What a spreadsheet would take for a formula is a text.
    assert [row[1:] for row in rows[1:]] == [["workload", "'=cmd()", "0"], ["workload", "'=cmd()", "3"]]


def test_a_wrong_range_says_what_to_write(api: Served) -> None:
    for query, words in (
        ({"since": "2d", "interval": "1m"}, "take a longer interval"),
        ({"since": "90d", "interval": "1m"}, "counts of more than 7 days ago are of hours"),
        ({"since": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"}, "the range is empty"),
        ({"by": "colour"}, "reason"),
        ({"interval": "7m"}, "15m"),
        ({"limit": "51"}, "50"),
    ):
        response = api.client.get("/api/v1/trends", params=query)
        assert response.status_code == 400
        assert words in response.json()["error"], response.text


def test_what_was_never_counted_is_an_empty_answer(api: Served) -> None:
    answer = api.get("/api/v1/trends", namespace="api-trends-none").json()
    assert (answer["items"], answer["other"]) == ([], None)
    assert len(answer["times"]) in (96, 97)
