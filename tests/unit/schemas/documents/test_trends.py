"""A document for each row of a minute, under an id of its own."""

from datetime import timedelta

from schemas.documents.trends import build_trend_documents
from schemas.indices import TRENDS
from tests.support.builders.events import build_trends

ROWS = {
    "namespace": ["llm", "llm"],
    "result": ["failed", "failed"],
    "dimension": ["all", "reason"],
    "value": ["", "NumaNotFit"],
    "attempts": [2, -1],
    "pods": [1, 0],
    "nodes": [4, -2],
    "devices": [32, -16],
}


def test_each_row_is_a_document_with_its_numbers() -> None:
    event = build_trends(**ROWS, partition=7)
    documents = dict(build_trend_documents(event))
    common = {
        "cluster": "default",
        "@timestamp": "2026-11-21T03:06:00.000000Z",
        "recorded_at": "2026-11-21T03:06:00.000000Z",
        "partition": 7,
        "namespace": "llm",
        "result": "failed",
    }
    assert list(documents.values()) == [
        common | {"dimension": "all", "value": "", "attempts": 2, "pods": 1, "nodes": 4, "devices": 32},
        common | {"dimension": "reason", "value": "NumaNotFit", "attempts": -1, "pods": 0, "nodes": -2, "devices": -16},
    ]
    assert all(set(document) == set(TRENDS.properties) for document in documents.values())


def test_a_row_keeps_its_id_from_version_to_version_and_no_two_rows_share_one() -> None:
    event = build_trends(**ROWS)
    ids = [name for name, _ in build_trend_documents(event)]
    assert [name for name, _ in build_trend_documents(build_trends(**ROWS, version=9))] == ids
    others = [
        build_trends(**ROWS, cluster="west"),
        build_trends(**ROWS, partition=1),
        build_trends(**ROWS, recorded_at=event.recorded_at + timedelta(minutes=10)),
        build_trends(**ROWS, started_at=event.started_at + timedelta(minutes=1)),
        build_trends(**ROWS | {"value": ["", "CardNotHealth"], "dimension": ["pool", "reason"]}),
    ]
    different = [name for other in others for name, _ in build_trend_documents(other)]
    assert len({*ids, *different}) == 2 + 5 * 2
