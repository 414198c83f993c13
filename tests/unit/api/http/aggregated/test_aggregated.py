"""The aggregated API: its paths, its errors, and what Kubernetes reads of it. What a real API server makes of it is in
tests/integration/kubernetes/test_aggregated_api.py."""

import pytest

from api.http.aggregated.translation import translate_path
from tests.support.builders.events import STARTED, a_summary
from tests.support.fakes.reviews import ACCESS_REVIEW, Grant
from tests.support.harness.api_app import hold
from tests.support.harness.guarded_api import READS_LLM, Guarded

BASE = "/apis/schedulerlog.io/v1alpha1"
POD = f"{BASE}/namespaces/llm/pods/deepseek-a/schedulerlog"


@pytest.fixture(scope="module")
def application() -> Guarded:
    return Guarded()


@pytest.fixture
def api(application: Guarded) -> Guarded:
    application.begin()
    return application


@pytest.mark.parametrize(
    ("path", "expected", "namespace"),
    [
        ("/namespaces/llm/pods/a/schedulerlog", "/namespaces/llm/pods/a/schedulerlog", ""),
        ("/namespaces/llm/pods/a/schedulerlog/history", "/namespaces/llm/pods/a/schedulerlog/history", ""),
        ("/namespaces/llm/pods/a/schedulerlog/findings", "/namespaces/llm/pods/a/findings", ""),
        ("/namespaces/llm/pods/a/schedulerlog/diagnosis", "/namespaces/llm/pods/a/diagnosis", ""),
        ("/nodes/n1/schedulerlog", "/nodes/n1", ""),
        ("/nodes/n1/schedulerlog/occupancy", "/nodes/n1/occupancy", ""),
        ("/attempts/6f97", "/attempts/6f97", ""),
        ("/schedulerlogs", "/schedulerlogs", ""),
        ("/namespaces/llm/schedulerlogs", "/schedulerlogs", "llm"),
        ("/namespaces/llm/pending", "/pending", "llm"),
        ("/namespaces/llm/suggestions", "/suggestions", "llm"),
        ("/namespaces/llm/simulations", "/simulate", "llm"),
    ],
)
def test_a_path_is_that_of_the_same_answer(path: str, expected: str, namespace: str) -> None:
    assert translate_path(BASE + path) == (f"/api/v1{expected}", namespace)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/llm/pods/a/schedulerlog",
        BASE,
        "/apis/schedulerlog.io/v1/schedulerlogs",
        f"{BASE}/namespaces/llm/pods/a",
        f"{BASE}/namespaces/llm/pods/a/findings",
        f"{BASE}/namespaces/llm/pods/a/b/schedulerlog",
        f"{BASE}/nodes/n1",
        f"{BASE}/clusters",
        f"{BASE}/clusters/other/schedulerlogs",
        f"{BASE}/",
    ],
)
def test_other_paths_are_not_there(path: str) -> None:
    assert translate_path(path) is None


async def test_a_pod_is_answered_as_below_api_v1(api: Guarded) -> None:
    header = api.reviews.build_header("alice", READS_LLM)
    answers = [await api.client.get(path, headers=header) for path in (POD, POD.replace(BASE, "/api/v1"))]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].content == answers[1].content


@pytest.mark.parametrize(
    ("path", "code", "reason"),
    [
        (POD.replace("/llm/", "/other/"), 403, "Forbidden"),
        (POD.replace("deepseek-a", "unknown"), 404, "NotFound"),
        (POD + "?limit=x", 400, "BadRequest"),
        (POD + "/nothing", 404, "NotFound"),
        (f"{BASE}/clusters", 404, "NotFound"),
        (POD.replace("llm", "l%6Cm"), 400, "BadRequest"),
    ],
)
async def test_an_error_is_a_status_of_kubernetes(api: Guarded, path: str, code: int, reason: str) -> None:
    answer = await api.client.get(path, headers=api.reviews.build_header("alice", READS_LLM))
    status = answer.json()
    assert answer.status_code == status["code"] == code
    assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")
    assert status["reason"] == reason
    assert status["message"]
    # Kubernetes' type has no such members.
    assert not {"error", "next"} & status.keys()


async def test_who_is_not_known_gets_a_status_too(api: Guarded) -> None:
    answer = await api.client.get(POD)
    assert (answer.status_code, answer.json()["reason"]) == (401, "Unauthorized")


async def test_a_list_of_a_namespace_needs_its_right_and_takes_no_second_namespace(api: Guarded) -> None:
    header = api.reviews.build_header("lead", Grant("lead", "list", "pods", "llm"))
    statuses = [
        (await api.client.get(BASE + path, headers=header)).status_code
        for path in (
            "/namespaces/llm/schedulerlogs",
            "/namespaces/other/schedulerlogs",
            "/schedulerlogs",
            "/namespaces/llm/schedulerlogs?namespace=other",
        )
    ]
    assert statuses == [200, 403, 403, 400]
    assert {spec["resourceAttributes"].get("namespace") for spec in api.reviews.list_specs(ACCESS_REVIEW)} == {
        "llm",
        "other",
        None,
    }


async def test_the_next_page_is_one_of_the_aggregated_api(api: Guarded) -> None:
    header = api.reviews.build_header("lead", Grant("lead", "list", "pods", "llm"))
    attempts = [a_summary(attempt_id=f"a{number}", ended_at=STARTED) for number in range(2)]

    api.answering = hold(*attempts)
    path = f"{BASE}/namespaces/llm/schedulerlogs?limit=1"
    answer = await api.client.get(path, headers=header)
    link = answer.headers["link"].partition(">")[0].removeprefix("<")
    assert link.startswith(f"{path}&continue=")


async def test_what_there_is_can_be_read_by_every_caller(api: Guarded) -> None:
    header = api.reviews.build_header("nobody-in-particular")
    assert (await api.client.get(BASE)).status_code == 401
    groups = (await api.client.get("/apis", headers=header)).json()["groups"]
    assert [group["name"] for group in groups] == ["schedulerlog.io"]
    resources = (await api.client.get(BASE, headers=header)).json()["resources"]
    assert {"pods/schedulerlog", "nodes/schedulerlog", "schedulerlogs"} <= {resource["name"] for resource in resources}
    # The API server asks for this form first, and then for the one above.
    newer = header | {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    assert (await api.client.get("/apis", headers=newer)).status_code == 406
