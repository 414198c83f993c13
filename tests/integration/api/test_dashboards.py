"""Searches of OpenSearch Dashboards on a real index: each panel and saved search gets the rows counted by hand.

There is no Dashboards here: the searches are made from the exported file as Dashboards makes them
(tests/support/panel_search.py), and its links are followed at a real API.
"""

import json
from datetime import datetime, timedelta
from typing import Any

import httpx
import orjson
import pytest

from deploy.dashboards.overview import export
from engine.diagnosis.waiting import derive_wait
from engine.summaries.trends import Minute, build_records, derive_contribution, list_weights
from schemas.codec.records import encode_value
from schemas.documents.attempts import build_repeated_document
from schemas.documents.trends import build_trend_documents
from schemas.events import (
    AttemptRepeated,
    AttemptSummarized,
    Balance,
    Contribution,
    DeviceAllocation,
    FindingReported,
    Owner,
    PodDescription,
    PodRef,
)
from schemas.indices import ATTEMPTS, TRENDS
from schemas.placements import PodPlacement
from tests.support.harness.api_process import Served
from tests.support.harness.index_filling import NOW, Filling, a_finding, an_attempt
from tests.support.panel_search import Imported, list_aggs, query_of, search_body, search_source

API = "https://schedulerlog.example"
IMPORTED = Imported.read(export(API))
HOUR = NOW.replace(minute=0, second=0, microsecond=0) - timedelta(hours=3)
NODES = ("pn-1", "pn-2")
# Other tests write into the same index; people narrow a dashboard in the same way.
OURS = {"prefix": {"namespace": "panels-"}}


def to_time(minutes: float) -> datetime:
    return HOUR + timedelta(minutes=minutes)


def a_judged_attempt(
    pod: str, minute: float, reason: str, chosen: str | None = None, bound: bool | None = None
) -> AttemptSummarized:
    """An attempt in which every node but the chosen one refuses all of its eight devices for the reason."""
    attempt = an_attempt(pod, started_at=to_time(minute), nodes=NODES, reason=reason, chosen=chosen, bound=bound)
    refused = 8 * (len(NODES) - (chosen is not None))
    balance = Balance(judged_nodes=2, judged_devices=16, devices=[{reason: refused}])
    judged = attempt.model_copy(update={"balance": balance})
    return judged.model_copy(update={"wait": derive_wait(judged)})


FIRST = a_judged_attempt("panels-a/waits", 1, "CardInsufficientMemory")
AGAIN = AttemptRepeated(
    cluster="default",
    attempt_id="d5" * 16,
    pod=FIRST.pod,
    scheduler=FIRST.scheduler,
    started_at=to_time(5),
    version=1,
    status="failed",
    repeats=FIRST.attempt_id,
    repeats_started_at=FIRST.started_at,
    episode=FIRST.attempt_id,
    episode_started_at=FIRST.started_at,
    reports=FIRST.reports,
    offered_nodes=2,
    fit_nodes=0,
    judged_devices=16,
    reasons=["CardInsufficientMemory"],
    text="no available node, 2 nodes do not meet",
    wait=FIRST.wait,
)
OTHERWISE = a_judged_attempt("panels-a/waits", 70, "NumaNotFit").model_copy(update={"first_judged_at": to_time(1)})
PLACED = a_judged_attempt("panels-b/placed", 10, "CardInsufficientMemory", chosen="pn-1", bound=True)
TRAINING = {"description": PodDescription(owners=[Owner(kind="Job", name="train")])}
LOCKED = a_judged_attempt("panels-b/locked", 20, "NumaNotFit", chosen="pn-2", bound=False).model_copy(update=TRAINING)
PENDING = a_judged_attempt("panels-b/pending", 80, "CardInsufficientMemory", chosen="pn-1").model_copy(update=TRAINING)
# What the repetition adds to the trends is what the attempt adds that it repeats.
COUNTED = (FIRST, FIRST.model_copy(update={"started_at": to_time(5)}), OTHERWISE, PLACED, LOCKED, PENDING)


def count_attempt(attempt: AttemptSummarized) -> Contribution:
    return derive_contribution(attempt, None, attempt.wait.code if attempt.wait else "")


def a_placement(
    pod: str, node: str, began: float, waited: float | None, *devices: str, ended: float | None = None
) -> PodPlacement:
    """Bound when it began, a container two minutes later."""
    namespace, name = pod.split("/")
    return PodPlacement(
        id=f"panels/{pod}",
        cluster="default",
        pod=PodRef(namespace=namespace, name=name, uid=f"uid-{name}"),
        node=node,
        started_at=to_time(began),
        bound_at=to_time(began),
        running_at=to_time(began + 2),
        first_judged_at=None if waited is None else to_time(began - waited),
        ended_at=None if ended is None else to_time(ended),
        scheduler="hami-scheduler",
        attempt_id=PLACED.attempt_id,
        layer_seconds={"nodes": waited * 60, "start": 120} if waited else {},
        allocations=[DeviceAllocation(uuid=device, container="main", memory_mib=1000) for device in devices],
    )


def build_findings() -> list[FindingReported]:
    return [
        a_finding("panels-a/waits", node="pn-1", device="GPU-p0", found_at=to_time(15)),
        a_finding("panels-b/placed", "BoundElsewhere", node="pn-2", found_at=to_time(75)),
    ]


@pytest.fixture(scope="module", autouse=True)
def filled(filling: Filling) -> None:
    filling.index(FIRST, OTHERWISE, PLACED, LOCKED, PENDING)
    documents = [(ATTEMPTS.name(AGAIN.started_at), AGAIN.attempt_id, build_repeated_document(AGAIN))]
    for number, attempt in enumerate(COUNTED):
        minute = Minute("default", attempt.started_at, 0, to_time(0))
        minute.put(f"pod-{number}", list_weights(attempt.pod.namespace, count_attempt(attempt)), ())
        for event in build_records(minute):
            documents += [
                (TRENDS.name(event.started_at), *trend_document) for trend_document in build_trend_documents(event)
            ]
    lines: list[bytes] = []
    for index, name, document in documents:
        lines += [orjson.dumps({"index": {"_index": index, "_id": name}}), encode_value(document)]
    filling.send_bulk(b"\n".join([*lines, b""]))
    filling.index_findings(*build_findings())
    filling.index_placements(
        a_placement("panels-b/placed", "pn-1", 10, 1, "GPU-p0", "GPU-p1"),
        a_placement("panels-a/done", "pn-1", 65, 5, "GPU-p0", ended=90),
        # Began before the time range, and lasts.
        a_placement("panels-a/old", "pn-2", -300, None, "GPU-p2"),
    )


EXPECTED: dict[str, list[tuple[Any, ...]]] = {
    # Result, attempts, pods.
    "schedulerlog-attempts": [("failed", 4, 2), ("succeeded", 1, 1), ("pending", 1, 1)],
    # Hour, result, attempts.
    "schedulerlog-attempts-by-result": [(0, "failed", 3), (0, "succeeded", 1), (1, "failed", 1), (1, "pending", 1)],
    # Obstacle, attempts: one for each that was refused. A placed pod has none, nor has a bind without a result.
    "schedulerlog-top-obstacles": [("CardInsufficientMemory", 2), ("NumaNotFit", 1), ("node lock contention", 1)],
    "schedulerlog-obstacles-over-time": [
        (0, "CardInsufficientMemory", 2),
        (0, "node lock contention", 1),
        (1, "NumaNotFit", 1),
    ],
    # Node and reason, attempts without repetitions, pods, minute of the last.
    "schedulerlog-reasons-by-node": [
        ("pn-2|CardInsufficientMemory", 3, 3, 80),
        ("pn-1|NumaNotFit", 2, 2, 70),
        ("pn-1|CardInsufficientMemory", 1, 1, 1),
        ("pn-2|NumaNotFit", 1, 1, 70),
        ("pn-2|node lock contention", 1, 1, 20),
    ],
    "schedulerlog-refused-by-namespace": [("panels-a", 3), ("panels-b", 2)],
    # Workload, pods, minute in which the first of them was first judged, latest obstacle, latest attempt.
    "schedulerlog-waiting": [
        ("panels-a/Pod/waits", 1, 1, "NumaNotFit", OTHERWISE.attempt_id),
        # Its bind has no result yet, so it has no obstacle.
        ("panels-b/Job/train", 2, 20, None, PENDING.attempt_id),
    ],
    # Hour, seconds at 50, 90 and 99 %.
    "schedulerlog-time-to-placement": [(0, (60, 60, 60)), (1, (300, 300, 300))],
    # Hour, seconds in queue, gate, nodes, bind, start.
    "schedulerlog-waits-by-layer": [(0, 0, 0, 60, 0, 120), (1, 0, 0, 300, 0, 120)],
    # Namespace, placements, seconds to the bind, seconds to the start.
    "schedulerlog-waits-by-namespace": [
        ("panels-a", 1, (300, 300), (420, 420)),
        ("panels-b", 1, (60, 60), (180, 180)),
    ],
    # Node, pods, devices.
    "schedulerlog-occupancy-by-node": [("pn-1", 1, 2), ("pn-2", 1, 1)],
    "schedulerlog-findings-over-time": [(0, "Overcommitted", 1), (1, "BoundElsewhere", 1)],
}


def search(filling: Filling, title: str, body: Any) -> Any:
    body["query"]["bool"]["filter"].append(OURS)
    answer = httpx.post(f"{filling.url}/{title}/_search", json=body, timeout=30)
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer.json()


def request(panel: Any) -> tuple[str, Any]:
    """Build the pattern's title and the body."""
    pattern = IMPORTED.get_pattern(panel)
    assert pattern is not None
    since, until = (moment.isoformat() for moment in (HOUR, NOW + timedelta(hours=1)))
    return pattern["attributes"]["title"], search_body(panel, pattern, since, until)


def list_rows(panel: Any, answer: Any) -> list[tuple[Any, ...]]:
    """List a row for each innermost bucket: the keys of its buckets, then the metrics in their order."""
    buckets = [agg for agg in list_aggs(panel) if agg["schema"] != "metric"]
    metrics = [agg for agg in list_aggs(panel) if agg["schema"] == "metric"]

    def collect_rows(level: Any, depth: int, keys: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        if depth == len(buckets):
            return [keys + tuple(read_number(agg, level) for agg in metrics)]
        agg = buckets[depth]
        rows = []
        for bucket in level[agg["id"]]["buckets"]:
            key = count_minutes(bucket["key"]) // 60 if agg["type"] == "date_histogram" else bucket["key"]
            rows += collect_rows(bucket, depth + 1, (*keys, key))
        return rows

    return collect_rows(answer["aggregations"], 0, ())


def count_minutes(milliseconds: float) -> int:
    """Count the minutes since the hour."""
    return round((milliseconds / 1000 - HOUR.timestamp()) / 60)


def read_number(agg: Any, bucket: Any) -> Any:
    if agg["type"] == "count":
        return bucket["doc_count"]
    value = bucket[agg["id"]]
    if agg["type"] == "top_hits":
        return value["hits"]["hits"][0].get("fields", {}).get(agg["params"]["field"], [None])[0]
    if agg["type"] == "percentiles":
        return tuple(value["values"].values())
    # A date has a text too.
    return count_minutes(value["value"]) if "value_as_string" in value else value["value"]


def test_every_visualization_that_searches_is_expected_here() -> None:
    searching = {name for name, panel in IMPORTED.select_type("visualization").items() if IMPORTED.get_pattern(panel)}
    assert searching == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_panel_shows_what_was_counted_by_hand(filling: Filling, name: str) -> None:
    panel = IMPORTED.objects["visualization", name]
    answer = search(filling, *request(panel))
    assert answer["_shards"]["failed"] == 0
    assert sorted(list_rows(panel, answer)) == sorted(EXPECTED[name])


LISTED: dict[str, list[AttemptSummarized | AttemptRepeated]] = {
    "schedulerlog-refused-attempts": [PENDING, OTHERWISE, LOCKED, AGAIN, FIRST],
    "schedulerlog-bind-failures": [LOCKED],
    "schedulerlog-pod-history": [OTHERWISE, AGAIN, FIRST],
}
OBSTACLES = {
    FIRST.attempt_id: "CardInsufficientMemory",
    AGAIN.attempt_id: "CardInsufficientMemory",
    OTHERWISE.attempt_id: "NumaNotFit",
    LOCKED.attempt_id: "node lock contention",
}
PODS = {
    "schedulerlog-waiting-pods": ["panels-a/waits", "panels-b/locked", "panels-b/pending"],
    "schedulerlog-findings-list": ["panels-b/placed", "panels-a/waits"],
    "schedulerlog-placements-now": ["panels-b/placed", "panels-a/old"],
}


def fetch_hits(filling: Filling, name: str) -> list[Any]:
    """Fetch the hits of a saved search, with the computed field and the columns as Dashboards asks for them."""
    saved_search = IMPORTED.objects["search", name]
    pattern = IMPORTED.get_pattern(saved_search)
    assert pattern is not None
    attributes = saved_search["attributes"]
    computed = [field for field in json.loads(pattern["attributes"]["fields"]) if field["scripted"]]
    if name == "schedulerlog-pod-history":
        text = search_source(saved_search)
        text["query"]["query"] = text["query"]["query"].replace('"default"', '"panels-a"').replace("gpu-pod", "waits")
        attributes["kibanaSavedObjectMeta"]["searchSourceJSON"] = json.dumps(text)
    since, until = (moment.isoformat() for moment in (HOUR, NOW + timedelta(hours=1)))
    body: Any = {
        "size": 100,
        "query": query_of(saved_search, pattern, since, until),
        "sort": [{field: {"order": order}} for field, order in attributes["sort"]],
        "script_fields": {
            field["name"]: {"script": {"source": field["script"], "lang": field["lang"]}} for field in computed
        },
        "_source": True,
    }
    hits: list[Any] = search(filling, pattern["attributes"]["title"], body)["hits"]["hits"]
    return hits


@pytest.mark.parametrize("name", LISTED)
def test_a_saved_search_lists_these_attempts_in_this_order(filling: Filling, name: str) -> None:
    hits = fetch_hits(filling, name)
    assert [hit["_id"] for hit in hits] == [attempt.attempt_id for attempt in LISTED[name]]
    assert [hit["_source"].get("obstacle") for hit in hits] == [OBSTACLES.get(hit["_id"]) for hit in hits]
    columns = IMPORTED.objects["search", name]["attributes"]["columns"]
    for column in {"namespace", "pod", "status", "attempt_id", "episode"} & set(columns):
        assert all(hit["_source"].get(column) for hit in hits), column


@pytest.mark.parametrize("name", PODS)
def test_a_saved_search_lists_these_pods_in_this_order(filling: Filling, name: str) -> None:
    hits = fetch_hits(filling, name)
    assert [f"{hit['_source']['namespace']}/{hit['_source']['pod']}" for hit in hits] == PODS[name]


def test_a_row_of_a_placement_has_the_number_of_its_devices(filling: Filling) -> None:
    hits = fetch_hits(filling, "schedulerlog-placements-now")
    counts = [hit["fields"]["device_count"][0] for hit in hits]
    assert counts == [len(set(hit["_source"]["devices"])) for hit in hits]
    assert min(counts) > 0


def test_the_links_of_a_row_lead_to_pages(filling: Filling, api: Served) -> None:
    (row,) = fetch_hits(filling, "schedulerlog-bind-failures")
    attempts = IMPORTED.objects["index-pattern", "schedulerlog-attempts"]["attributes"]
    links = json.loads(attempts["fieldFormatMap"])
    values = {"attempt_id": row["_source"]["attempt_id"], "pod_link": row["fields"]["pod_link"][0]}
    assert values["pod_link"] == f"/pods/panels-b/locked?cluster=default&attempt={LOCKED.attempt_id}"
    for field, value in values.items():
        template = links[field]["params"]["urlTemplate"]
        url = template.replace("{{value}}", value).replace("{{rawValue}}", value)
        answer = api.client.get(url.removeprefix(API), follow_redirects=True)
        assert answer.status_code == httpx.codes.OK, answer.text
        assert answer.url.path == "/ui/pods/panels-b/locked"
        assert answer.url.params["attempt"] == LOCKED.attempt_id


def test_a_document_without_a_cluster_has_a_link_too(filling: Filling) -> None:
    old = {
        "@timestamp": to_time(7).isoformat(),
        "namespace": "panels-old",
        "pod": "x",
        "status": "failed",
        "bound": False,
    }
    index = ATTEMPTS.name(to_time(7))
    httpx.put(f"{filling.url}/{index}/_doc/panels-old?refresh=true", json=old, timeout=30).raise_for_status()
    try:
        links = {hit["_id"]: hit["fields"]["pod_link"][0] for hit in fetch_hits(filling, "schedulerlog-bind-failures")}
    finally:
        httpx.delete(f"{filling.url}/{index}/_doc/panels-old?refresh=true", timeout=30).raise_for_status()
    assert links["panels-old"] == "/pods/panels-old/x"
