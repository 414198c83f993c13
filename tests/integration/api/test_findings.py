"""Findings in a real index, asked for over HTTP."""

from datetime import timedelta

from tests.support.harness.api_process import Served
from tests.support.harness.index_filling import NOW, Filling, a_finding, an_attempt

FINDINGS = "/api/v1/findings"


def test_findings_are_narrowed_by_every_field(filling: Filling, api: Served) -> None:
    hour = timedelta(hours=1)
    filling.index_findings(
        a_finding("api-found/a", node="f-node1", device="GPU-f-1", found_at=NOW - hour),
        a_finding("api-found/b", "BoundElsewhere", node="f-node2", found_at=NOW - 2 * hour),
        a_finding("api-found/c", node="f-node2", device="GPU-f-2", found_at=NOW - 3 * hour),
    )

    def search_names(**query: str) -> str:
        answer = api.get(FINDINGS, namespace="api-found", **query).json()
        assert answer["total"] == len(answer["items"])
        return "".join(item["name"] for item in answer["items"])

    assert search_names() == "abc"
    assert search_names(pod="b") == "b"
    assert search_names(node="f-node2") == "bc"
    assert search_names(device="GPU-f-2") == "c"
    assert search_names(finding="Overcommitted") == "ac"
    assert search_names(scheduler="hami-scheduler") == "abc"
    assert search_names(scheduler="kai-scheduler") == ""
    assert search_names(since="90m") == "a"
    assert search_names(until=(NOW - 2 * hour).isoformat()) == "c"
    assert search_names(since=(NOW - 3 * hour).isoformat(), until=(NOW - hour).isoformat()) == "bc"
    of_pod = api.get("/api/v1/namespaces/api-found/pods/b/findings").json()["items"]
    assert [(item["finding"], item["numbers"]["memory_taken_mib"]) for item in of_pod] == [("BoundElsewhere", 50000)]


def test_findings_of_the_same_time_are_paged_one_by_one(filling: Filling, api: Served) -> None:
    devices = [f"GPU-{number}" for number in range(7)]
    filling.index_findings(*(a_finding("api-found/paged", device=device) for device in devices))
    query, seen = {"limit": "2"}, []
    while True:
        answer = api.get("/api/v1/namespaces/api-found/pods/paged/findings", **query)
        assert answer.headers["x-total-count"] == "7"
        seen += [item["device"] for item in answer.json()["items"]]
        filling.index_findings(a_finding("api-found/paged", device="GPU-0"))
        if answer.json()["continue"] is None:
            break
        query["continue"] = answer.json()["continue"]
    assert seen == devices


def test_a_pod_without_findings_gets_an_empty_list_and_an_unknown_pod_404(filling: Filling, api: Served) -> None:
    filling.index(an_attempt("api-found/good"))
    path = "/api/v1/namespaces/api-found/pods/{}/findings"
    assert api.get(path.format("good")).json() == {"total": 0, "items": [], "continue": None}
    unknown = api.get(path.format("nobody"))
    assert unknown.status_code == 404
    assert "kubectl -n api-found get pod nobody" in unknown.json()["next"]
