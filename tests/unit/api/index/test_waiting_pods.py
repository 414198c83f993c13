"""Pages of waiting pods and of their workloads: what is searched, and where the next page begins."""

from typing import Any

from api.http.cluster import Cluster
from api.index.waiting_pods import (
    pod_waiting,
    pods_query,
    waiting_filters,
    workload_order,
    workload_waiting,
    workloads_behind,
    workloads_query,
)

CLUSTER = Cluster("default", "/api/v1")
SOURCE = {
    "@timestamp": "2026-11-21T03:07:00.000000Z", "namespace": "llm", "pod": "a", "scheduler": "s", "status": "failed",
    "attempt_id": "0f", "first_judged_at": "2026-11-21T03:06:00.000000Z",
}  # fmt: skip


def a_bucket(key: str, pods: int, first: float) -> dict[str, Any]:
    reasons = {"buckets": [{"key": "NumaNotFit", "doc_count": pods}]}
    last = {"value_as_string": "2026-11-21T03:07:00.000Z"}
    return {"key": key, "doc_count": pods, "first": {"value": first}, "last": last, "reasons": reasons}


def test_only_pods_that_wait_are_searched_of_one_cluster_since_a_time() -> None:
    filters = waiting_filters("east", {"namespace": "llm", "queue": None}, "2026-11-21T03:00:00.000000Z")
    assert filters["bool"]["filter"] == [
        {"term": {"cluster": "east"}},
        {"term": {"state": "waiting"}},
        {"term": {"namespace": "llm"}},
        {"range": {"@timestamp": {"gte": "2026-11-21T03:00:00.000000Z"}}},
    ]


def test_a_page_begins_behind_the_last_pod_of_the_page_before_by_keys_that_never_change() -> None:
    assert "search_after" not in pods_query({}, None, 10)
    body = pods_query({}, (1763694360000, "llm", "a"), 10)
    assert body["search_after"] == [1763694360000, "llm", "a"]
    assert [next(iter(each)) for each in body["sort"]] == ["first_judged_at", "namespace", "pod"]
    assert body["size"] == 11, "one more shows that there is a next page"


def test_workloads_are_searched_in_the_order_of_their_pages() -> None:
    order = workloads_query({}, 5)["aggs"]["groups"]["terms"]["order"]
    assert order == [{"_count": "desc"}, {"first": "asc"}, {"_key": "asc"}]
    buckets = [a_bucket("llm/Job/b", 9, 5.0), a_bucket("llm/Job/a", 3, 4.0), a_bucket("llm/Job/c", 3, 5.0)]
    assert sorted(buckets, key=workload_order) == buckets
    answer = {"aggregations": {"groups": {"buckets": buckets}}}
    assert [each["key"] for each in workloads_behind(answer, None)] == ["llm/Job/b", "llm/Job/a", "llm/Job/c"]
    assert [each["key"] for each in workloads_behind(answer, (-3, 4, "llm/Job/a"))] == ["llm/Job/c"]
    assert workloads_behind({}, None) == [], "no index yet"


def test_five_hundred_pods_of_one_job_are_one_line() -> None:
    pods = [pod_waiting(CLUSTER, {"_source": SOURCE | {"queue": queue}}) for queue in ("", "blue")]
    line = workload_waiting(a_bucket("llm/Job/train", 500, 1.0), pods)
    assert (line.namespace, line.workload, line.pods, line.queue) == ("llm", "Job/train", 500, "blue")
    assert line.reasons == {"NumaNotFit": 500}
    assert line.first_judged_at == "2026-11-21T03:06:00.000000Z"


def test_what_no_source_says_is_null_or_empty() -> None:
    pod = pod_waiting(CLUSTER, {"_source": SOURCE})
    assert (pod.workload, pod.reasons, pod.created_at, pod.attempts) == ("", [], None, None)
