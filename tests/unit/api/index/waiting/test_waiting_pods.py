"""Pages of waiting pods and of their workloads: what is searched, and where the next page begins."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.http.cluster import Cluster
from api.index.waiting.waiting_groups import (
    build_groups_query,
    parse_layers,
    rank_group,
    skip_groups,
    to_waiting_obstacle,
    to_waiting_workload,
)
from api.index.waiting.waiting_pods import build_pods_query, build_waiting_filters, sort_pods, to_waiting_pod
from api.memory.nearest_node import Lack
from schemas.events import PodWait, Request

CLUSTER = Cluster("default", "/api/v1")
SOURCE = {
    "@timestamp": "2026-11-21T03:07:00.000000Z", "namespace": "llm", "pod": "a", "scheduler": "s", "status": "failed",
    "attempt_id": "0f", "first_judged_at": "2026-11-21T03:06:00.000000Z",
}  # fmt: skip
FIRST = datetime(2026, 11, 21, 3, 6, tzinfo=UTC)
NOW = FIRST + timedelta(hours=2)
WAIT = PodWait(
    code="CardInsufficientMemory", sentence_en="8 of 8 nodes lack memory.", devices=2, models=[], pools=[],
    nearest_nodes=["node3", "node5"], reasons={"CardInsufficientMemory": 7}, missing_devices=1,
    asked=Request(container="main", vendor="NVIDIA", count=2, memory_mib=40_000),
)  # fmt: skip


def a_bucket(key: str, pods: int, first: float) -> dict[str, Any]:
    reasons = {"buckets": [{"key": "NumaNotFit", "doc_count": pods}]}
    obstacles = {"buckets": [{"key": "CardInsufficientMemory", "doc_count": pods}]}
    last = {"value_as_string": "2026-11-21T03:07:00.000Z"}
    counts = {name: {"value": pods} for name in ("devices", "workloads", "namespaces")}
    seconds = {"value": pods * FIRST.timestamp()}
    return {
        "key": key, "doc_count": pods, "first": {"value": first}, "last": last, "reasons": reasons,
        "obstacles": obstacles, "devices_seconds": seconds, **counts,
    }  # fmt: skip


def test_only_pods_that_wait_are_searched_of_one_cluster_since_a_time() -> None:
    filters = build_waiting_filters("east", {"namespace": "llm", "queue": None}, "2026-11-21T03:00:00.000000Z")
    an_attempt, a_uid = ({"exists": {"field": name}} for name in ("attempt_id", "pod_uid"))
    assert filters["bool"]["filter"] == [
        {"term": {"cluster": "east"}},
        {"term": {"state": "waiting"}},
        {"term": {"namespace": "llm"}},
        {
            "bool": {
                "should": [
                    {"range": {"@timestamp": {"gte": "2026-11-21T03:00:00.000000Z"}}},
                    {"bool": {"must_not": [an_attempt], "filter": [a_uid]}},
                    {
                        "bool": {
                            "must_not": [an_attempt, a_uid],
                            "filter": [{"range": {"@timestamp": {"gte": "now-30m"}}}],
                        }
                    },
                ],
                "minimum_should_match": 1,
            }
        },
    ]


def test_a_workload_without_pods_has_no_schedulerlog() -> None:
    source = {
        "@timestamp": "2026-11-21T03:00:00Z", "namespace": "llm", "pod": "job/train", "scheduler": "",
        "status": "pending", "first_judged_at": "2026-11-21T02:00:00Z", "workload": "Job/train",
    }  # fmt: skip
    pod = to_waiting_pod(Cluster("default"), {"_source": source})
    assert (pod.name, pod.schedulerlog, pod.pod_uid) == ("job/train", "", "")


def test_a_pod_without_an_attempt_has_no_link_to_one() -> None:
    source = {
        "@timestamp": "2026-11-21T03:00:00Z", "namespace": "llm", "pod": "a", "scheduler": "s", "status": "pending",
        "first_judged_at": "2026-11-21T02:00:00Z",
        "wait": {"code": "KueueHolds", "sentence_en": "Kueue holds the pod.", "sentence_zh": "…", "devices": 2,
                 "models": [], "pools": [], "nearest_nodes": [], "reasons": {}},
    }  # fmt: skip
    pod = to_waiting_pod(CLUSTER, {"_source": source})
    assert (pod.attempt, pod.attempts, pod.layer, pod.waited_seconds, pod.gpu_hours) == ("", None, "queue", 3600, 2.0)


def test_waits_are_counted_by_layer() -> None:
    buckets = [
        {"key": "queue", "doc_count": 3, "began": {"value": (NOW.timestamp() - 50) * 1000}},
        {"key": "nodes", "doc_count": 5, "began": {"value": (NOW.timestamp() - 10) * 1000}},
    ]
    layers = {
        name: (layer.pods, layer.waited_seconds) for name, layer in parse_layers({"buckets": buckets}, NOW).items()
    }
    assert layers == {"queue": (3, 150), "nodes": (5, 50)}


def test_a_page_begins_behind_the_last_pod_of_the_page_before_by_keys_that_never_change() -> None:
    assert "search_after" not in build_pods_query({}, None, 10)
    body = build_pods_query({}, (1763694360000, "llm", "a"), 10)
    assert body["search_after"] == [1763694360000, "llm", "a"]
    assert [next(iter(clause)) for clause in body["sort"]] == ["first_judged_at", "namespace", "pod"]
    assert body["size"] == 11, "one more shows that there is a next page"


def test_groups_are_searched_in_the_order_of_their_pages() -> None:
    order = build_groups_query({}, "workload", "pods", NOW, 5)["aggs"]["groups"]["terms"]["order"]
    assert order == [{"_count": "desc"}, {"first": "asc"}, {"_key": "asc"}]
    buckets = [a_bucket("llm/Job/b", 9, 5.0), a_bucket("llm/Job/a", 3, 4.0), a_bucket("llm/Job/c", 3, 5.0)]
    assert sorted(buckets, key=lambda bucket: rank_group(bucket, "pods")) == buckets
    answer = {"aggregations": {"groups": {"buckets": buckets}}}
    assert [bucket["key"] for bucket in skip_groups(answer, "pods", None)] == ["llm/Job/b", "llm/Job/a", "llm/Job/c"]
    assert [bucket["key"] for bucket in skip_groups(answer, "pods", (-3, 4, "llm/Job/a"))] == ["llm/Job/c"]
    assert skip_groups({}, "pods", None) == [], "no index yet"
    by_wait = sorted(buckets, key=lambda bucket: rank_group(bucket, "wait"))
    assert [bucket["key"] for bucket in by_wait] == ["llm/Job/a", "llm/Job/b", "llm/Job/c"]


def test_five_hundred_pods_of_one_job_are_one_line() -> None:
    pods = [to_waiting_pod(CLUSTER, {"_source": SOURCE | {"queue": queue}}) for queue in ("", "blue")]
    line = to_waiting_workload(a_bucket("llm/Job/train", 500, 1.0), pods, NOW)
    assert (line.namespace, line.workload, line.pods, line.queue) == ("llm", "Job/train", 500, "blue")
    assert line.reasons == {"NumaNotFit": 500}
    assert line.first_judged_at == "2026-11-21T03:06:00.000000Z"
    assert (line.devices, line.gpu_hours) == (500, 1000), "a device each, for two hours"


def test_pods_that_ask_for_the_same_and_are_kept_out_by_the_same_are_one_line() -> None:
    pods = [to_waiting_pod(CLUSTER, {"_source": SOURCE | {"wait": WAIT}}, NOW)]
    line = to_waiting_obstacle(a_bucket("CardInsufficientMemory|2 x 40000 MiB", 10_000, 1.0), pods, NOW)
    assert line.obstacle is not None
    assert (line.obstacle.code, line.asked, line.pods) == ("CardInsufficientMemory", "2 x 40000 MiB", 10_000)
    assert (line.workloads, line.namespaces, line.gpu_hours) == (10_000, 10_000, 20_000)


def test_a_pod_has_what_keeps_it_out_and_how_long_its_devices_wait() -> None:
    pod = to_waiting_pod(CLUSTER, {"_source": SOURCE | {"wait": WAIT}}, NOW, lambda _: Lack(5_000, 20, "node5"))
    assert (pod.waited_seconds, pod.devices, pod.gpu_hours) == (7200, 2, 4)
    assert pod.obstacle is not None
    assert pod.obstacle.sentence.en == "8 of 8 nodes lack memory."
    assert pod.nearest is not None
    assert (pod.nearest.node, pod.nearest.missing_devices) == ("node5", 1)
    assert (pod.nearest.missing_memory_mib, pod.nearest.missing_cores_percent) == (5_000, 20)


def test_while_devices_are_not_known_the_nearest_node_is_that_of_the_attempt() -> None:
    near = to_waiting_pod(CLUSTER, {"_source": SOURCE | {"wait": WAIT}}, NOW).nearest
    assert near is not None
    assert (near.node, near.missing_memory_mib, near.missing_devices) == ("node3", None, 1)


@pytest.mark.parametrize("order", ["wait", "gpu_hours", "devices", "attempts", "name"])
def test_no_two_pods_are_equal_in_any_order(order: str) -> None:
    assert [next(iter(clause)) for clause in sort_pods(order, NOW)][-2:] == ["namespace", "pod"]


def test_what_no_source_says_is_null_or_empty() -> None:
    pod = to_waiting_pod(CLUSTER, {"_source": SOURCE})
    assert (pod.workload, pod.reasons, pod.created_at, pod.attempts) == ("", [], None, None)
