"""The lists of findings over HTTP, on an index that is a function."""

from typing import Any

import httpx
import orjson
import pytest

from api.http.pagination import TOTAL_HEADER
from schemas.answers.attempts import Error
from schemas.answers.placements import Findings
from schemas.codec.records import encode_value
from schemas.documents.attempts import build_finding_document
from schemas.events import FindingReported
from tests.support.builders.events import ATTEMPT, STARTED, a_summary
from tests.support.harness.api_app import Caller, answer_nothing, refuse

FINDINGS = "/api/v1/findings"
OF_POD = "/api/v1/namespaces/llm/pods/deepseek-a/findings"


def a_finding(**fields: Any) -> FindingReported:
    plain = {"finding": "Overcommitted", "found_at": STARTED, "node": "node1"}
    return FindingReported.model_validate(ATTEMPT | plain | fields)


def a_hit(finding: FindingReported) -> dict[str, Any]:
    timestamp_ms = int(finding.found_at.timestamp() * 1000)
    sort = [timestamp_ms, finding.attempt_id, finding.finding, finding.node, finding.device]
    source = orjson.loads(encode_value(build_finding_document(finding)))
    return {"_index": "i", "_id": finding.id, "_source": source, "sort": sort}


class Index:
    """Answers every search with the same findings, and records the bodies of the searches."""

    def __init__(self, *findings: FindingReported) -> None:
        self.hits = [a_hit(finding) for finding in findings]
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(orjson.loads(request.content))
        total = {"value": len(self.hits)}
        hits = self.hits[: self.bodies[-1]["size"]]
        return httpx.Response(200, json={"hits": {"total": total, "hits": hits}})


async def test_an_item_has_type_place_pod_and_evidence_of_its_finding() -> None:
    numbers = {"memory_total_mib": 40960, "memory_used_mib": 35000, "memory_taken_mib": 8000}
    finding = a_finding(device="GPU-1", numbers=numbers, evidence=["node1 gave GPU-1 to llm/deepseek-a (worker)"])
    answer = await Caller(Index(finding)).get(FINDINGS)
    assert answer.json() == {
        "total": 1,
        "items": [
            {
                "finding": "Overcommitted",
                "found_at": "2026-11-21T03:06:23.217054Z",
                "scheduler": "hami-scheduler",
                "namespace": "llm",
                "name": "deepseek-a",
                "pod_uid": "6e1c",
                "attempt_id": "0f" * 16,
                "started_at": "2026-11-21T03:06:23.217054Z",
                "node": "node1",
                "device": "GPU-1",
                "numbers": numbers,
                "evidence": ["node1 gave GPU-1 to llm/deepseek-a (worker)"],
                "evidence_pods": [],
                "attempt": "/api/v1/attempts/" + "0f" * 16,
                "schedulerlog": "/api/v1/namespaces/llm/pods/deepseek-a/schedulerlog",
            }
        ],
        "continue": None,
    }


async def test_every_parameter_becomes_one_condition() -> None:
    index = Index()
    await Caller(index).get(
        FINDINGS + "?namespace=llm&pod=a&node=node1&device=GPU-1&finding=Overcommitted&scheduler=hami-scheduler"
        "&since=2026-11-21T03:00:00Z&until=2026-11-21T05:00:00%2B01:00"
    )
    assert index.bodies[0]["query"]["bool"]["filter"] == [
        {"term": {"cluster": "default"}},
        {"term": {"finding": "Overcommitted"}},
        {"term": {"namespace": "llm"}},
        {"term": {"pod": "a"}},
        {"term": {"node": "node1"}},
        {"term": {"device": "GPU-1"}},
        {"term": {"scheduler": "hami-scheduler"}},
        {"range": {"found_at": {"gte": "2026-11-21T03:00:00.000000Z"}}},
        {"range": {"found_at": {"lt": "2026-11-21T04:00:00.000000Z"}}},
    ]


async def test_findings_of_a_pod_are_filtered_by_namespace_and_name() -> None:
    index = Index(a_finding())
    answer = await Caller(index).get(OF_POD + "?finding=Imbalance")
    assert Findings.model_validate_json(answer.content).total == 1
    assert index.bodies[0]["query"]["bool"]["filter"] == [
        {"term": {"cluster": "default"}},
        {"term": {"namespace": "llm"}},
        {"term": {"pod": "deepseek-a"}},
        {"term": {"finding": "Imbalance"}},
    ]


async def test_findings_of_the_same_time_are_paged_without_gaps_or_repetition() -> None:
    index = Index(*(a_finding(device=f"GPU-{number}") for number in range(3)))
    caller = Caller(index)
    answer = await caller.get(FINDINGS + "?limit=2")
    assert answer.headers[TOTAL_HEADER] == "3"
    assert [item["device"] for item in answer.json()["items"]] == ["GPU-0", "GPU-1"]
    index.hits = index.hits[2:]
    second = await caller.get(answer.links["next"]["url"])
    assert index.bodies[-1]["search_after"] == [1795230383217, "0f" * 16, "Overcommitted", "node1", "GPU-1"]
    assert index.bodies[-1]["track_total_hits"] is False
    assert second.headers[TOTAL_HEADER] == "3"
    assert ([item["device"] for item in second.json()["items"]], second.json()["continue"]) == (["GPU-2"], None)


async def test_a_token_of_one_list_is_refused_by_another() -> None:
    caller = Caller(Index(*(a_finding(device=f"GPU-{number}") for number in range(3))))
    token = (await caller.get(FINDINGS + "?limit=1")).json()["continue"]
    for path in (OF_POD + "?limit=1", FINDINGS + "?node=node1", "/api/v1/schedulerlogs?limit=1"):
        answer = await caller.get(f"{path}&continue={token}")
        assert answer.status_code == 400
        assert "another request" in answer.json()["error"]


async def test_a_known_pod_without_findings_has_an_empty_list_and_an_unknown_one_is_404() -> None:
    caller = Caller(answer_nothing)
    answer = await caller.get(OF_POD)
    assert answer.status_code == 404
    assert "kubectl -n llm get pod deepseek-a" in Error.model_validate_json(answer.content).next
    caller.remember(a_summary(ended_at=STARTED))
    answer = await caller.get(OF_POD)
    assert (answer.status_code, answer.json()) == (200, {"total": 0, "items": [], "continue": None})


@pytest.mark.parametrize("path", [FINDINGS, OF_POD])
async def test_without_the_index_the_answer_is_503(path: str) -> None:
    caller = Caller(refuse)
    caller.remember(a_summary(ended_at=STARTED))
    answer = await caller.get(path)
    assert answer.status_code == 503
    assert answer.headers["retry-after"]


async def test_a_document_that_is_not_a_finding_is_named() -> None:
    index = Index(a_finding())
    index.hits[0]["_source"] = {"finding": "Overcommitted"}
    answer = await Caller(index).get(FINDINGS)
    assert answer.status_code == 500
    assert a_finding().id in answer.json()["error"]


@pytest.mark.parametrize(
    ("query", "cause"),
    [
        ("?nodes=node1", "'nodes' is unknown here; known are: finding, namespace, pod, node, device, scheduler, since"),
        ("?since=yesterday", "parameter since"),
        ("?until=2026-11-21", "parameter until"),
        ("?since=1h&until=2h", "the range is empty"),
        ("?since=2026-11-21T03:00:00Z&until=2026-11-21T03:00:00Z", "the range is empty"),
        ("?since=1h&since=2h", "given 2 times"),
        ("?finding=", "at least 1 character"),
        ("?namespace=a.b", "parameter namespace"),
        ("?limit=201", "parameter limit"),
    ],
)
async def test_a_wrong_request_names_its_mistake(query: str, cause: str) -> None:
    answer = await Caller().get(FINDINGS + query)
    assert answer.status_code == 400
    assert cause in answer.json()["error"]
