"""Rights that the paths need; without them nothing shows."""

import pytest

from tests.support.builders.events import STARTED, a_summary
from tests.support.fakes.reviews import ACCESS_REVIEW, Grant
from tests.support.harness.api_app import POD
from tests.support.harness.guarded_api import OTHER, READS_LLM, UNKNOWN, Guarded


async def test_existence_does_not_show_to_who_may_not_read(api: Guarded) -> None:
    header = api.reviews.build_header("bob", Grant("bob", "get", "pods", "other"))
    api.searches.clear()
    existing, unknown = [await api.client.get(path, headers=header) for path in (POD, UNKNOWN)]
    assert (existing.status_code, unknown.status_code) == (403, 403)
    assert existing.text.replace("deepseek-a", "X") == unknown.text.replace("unknown", "X")
    assert api.searches == []
    alice = api.reviews.build_header("alice", READS_LLM)
    assert await api.get_status(UNKNOWN, alice) == 404


async def test_one_pod_by_name_is_that_pod_alone(api: Guarded) -> None:
    header = api.reviews.build_header("one", Grant("one", "get", "pods", "llm", "deepseek-a"))
    assert await api.get_status(POD, header) == 200
    assert await api.get_status(UNKNOWN, header) == 403


async def test_head_asks_for_the_same_right_as_get(api: Guarded) -> None:
    header = api.reviews.build_header("alice", READS_LLM)
    got, head = await api.client.get(POD, headers=header), await api.client.head(POD, headers=header)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers == got.headers
    assert {spec["resourceAttributes"]["verb"] for spec in api.reviews.list_specs(ACCESS_REVIEW)} == {"get"}
    assert await api.get_status(OTHER, header) == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
async def test_other_methods_are_refused_after_the_caller_is_known(api: Guarded, method: str) -> None:
    header = api.reviews.build_header("alice", READS_LLM)
    assert (await api.client.request(method, POD)).status_code == 401
    assert (await api.client.request(method, POD, headers=header)).status_code == 405


async def test_rights_come_before_the_tag_of_an_answer(api: Guarded) -> None:
    alice = api.reviews.build_header("alice", READS_LLM)
    bob = api.reviews.build_header("bob", Grant("bob", "get", "pods", "other"))
    tag = (await api.client.get(POD, headers=alice)).headers["etag"]
    assert await api.get_status(POD, alice | {"If-None-Match": tag}) == 304
    assert await api.get_status(POD, bob | {"If-None-Match": tag}) == 403


async def test_an_answer_is_for_its_caller_alone(api: Guarded) -> None:
    answer = await api.client.get(POD, headers=api.reviews.build_header("alice", READS_LLM))
    assert answer.headers["cache-control"] == "private, no-cache"
    assert "Authorization" in answer.headers["vary"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/llm%2Fpods%2Fx/pods/y/schedulerlog",
        "/api/v1/namespaces/%2e%2e/pods/y/schedulerlog",
        "/api/v1/namespaces/llm%252fx/pods/y/schedulerlog",
        "/api/v1/namespaces/llm;x/pods/y/schedulerlog",
        "/api/v1//namespaces/llm/pods/y/schedulerlog",
        "/api/v1/namespaces/Team-A/pods/y/schedulerlog",
        "/api/v1/namespaces/llm./pods/y/schedulerlog",
        f"/api/v1/namespaces/{'a' * 64}/pods/y/schedulerlog",
        "/api/v1/schedulerlogs?namespace=",
        "/api/v1/schedulerlogs?namespace=llm&namespace=other",
    ],
)
async def test_a_wrong_path_is_refused_before_rights_are_asked_for(api: Guarded, path: str) -> None:
    header = api.reviews.build_header("all", Grant("all", "get", "pods"), Grant("all", "list", "pods"))
    assert await api.get_status(path, header) in (400, 404)
    assert api.reviews.list_specs(ACCESS_REVIEW) == []


@pytest.mark.parametrize(
    "list_path",
    [
        "schedulerlogs",
        "schedulerlogs?group_by=node",
        "findings",
        "alerts",
        "pending",
        "pending?group_by=obstacle&format=flat",
        "pending?group_by=pod&format=csv",
        "pods?state=waiting",
        "refusals?device=d",
        "suggestions",
    ],
)
async def test_a_list_needs_the_right_to_list_in_its_namespace(api: Guarded, list_path: str) -> None:
    path = f"/api/v1/{list_path}"
    prefix = f"{path}{'&' if '?' in path else '?'}namespace="
    lead = api.reviews.build_header("lead", Grant("lead", "list", "pods", "llm"))
    everywhere = api.reviews.build_header("all", Grant("all", "list", "pods"))
    alice = api.reviews.build_header("alice", READS_LLM)
    assert [await api.get_status(path, header) for header in (lead, everywhere)] == [403, 200]
    assert [await api.get_status(prefix + "llm", header) for header in (lead, everywhere, alice)] == [200, 200, 403]
    assert [await api.get_status(prefix + "other", header) for header in (lead, everywhere)] == [403, 200]
    assert "namespace=" in (await api.client.get(path, headers=lead)).json()["next"]


async def test_pods_without_a_namespace_may_be_anybodys(api: Guarded) -> None:
    path = POD.replace("/llm/", "/-/")
    assert await api.get_status(path, api.reviews.build_header("lead", Grant("lead", "list", "pods", "-"))) == 403
    assert await api.get_status(path, api.reviews.build_header("all", Grant("all", "list", "pods"))) == 404


async def test_another_cluster_needs_a_right_of_its_own(api: Guarded) -> None:
    path = POD.replace("/api/v1/", "/api/v1/clusters/east/")
    header = api.reviews.build_header("alice", READS_LLM)
    assert await api.get_status(path, header) == 403
    api.reviews.grants.add(Grant("alice", "get", "clusters", "", "east"))
    api.clock.now += 2
    assert await api.get_status(path, header) == 404


async def test_an_attempt_is_read_by_who_may_read_its_pod(api: Guarded) -> None:
    path = f"/api/v1/attempts/{a_summary(ended_at=STARTED).attempt_id}"
    alice = api.reviews.build_header("alice", READS_LLM)
    bob = api.reviews.build_header("bob", Grant("bob", "get", "pods", "other"))
    assert [await api.get_status(path, header) for header in (alice, bob)] == [200, 403]
    unknown = [await api.get_status("/api/v1/attempts/f00", header) for header in (alice, bob)]
    assert unknown == [403, 403]


async def test_n11_an_attempt_of_others_costs_the_reviews_that_an_unknown_one_does(api: Guarded) -> None:
    """The time that a second review takes would show whether the attempt exists."""
    bob = api.reviews.build_header("bob", Grant("bob", "get", "pods", "other"))
    costs = []
    for attempt_id in (a_summary(ended_at=STARTED).attempt_id, "f00"):
        # What is remembered of the caller is asked once; here only the attempt's own part counts.
        assert await api.get_status("/api/v1/schedulerlogs", bob) == 403
        before = len(api.reviews.specs)
        answer = await api.client.get(f"/api/v1/attempts/{attempt_id}", headers=bob)
        assert answer.status_code == 403
        costs.append(len(api.reviews.specs) - before)
    assert costs == [1, 1]


async def test_each_verb_is_asked_for_by_itself(api: Guarded) -> None:
    """Row 79."""
    lists = api.reviews.build_header("lists", Grant("lists", "list", "pods", "llm"))
    assert await api.get_status("/api/v1/schedulerlogs?namespace=llm", lists) == 200
    assert await api.get_status(POD, lists) == 403


async def test_a_list_of_everything_costs_one_review_however_many_namespaces_a_caller_has(api: Guarded) -> None:
    """Row 35."""
    grants = [Grant("lead", "list", "pods", f"team-{number}") for number in range(300)]
    answer = await api.client.get("/api/v1/schedulerlogs", headers=api.reviews.build_header("lead", *grants))
    assert (answer.status_code, "namespace=" in answer.json()["next"]) == (403, True)
    assert len(api.reviews.list_specs(ACCESS_REVIEW)) == 1
    assert api.searches == []


@pytest.mark.parametrize("is_first", ["alice", "all"])
async def test_the_words_of_a_scheduler_name_pods_of_others_to_who_may_list_them(api: Guarded, is_first: str) -> None:
    """Rows 22, 47 and 49: also where another caller asked before."""
    named = a_summary(ended_at=STARTED, error="preempted by other/secret, not by llm/deepseek-b").model_copy(
        update={"version": 2}
    )
    api.remember(named)
    everywhere = Grant("all", "list", "pods"), Grant("all", "get", "pods")
    headers = {
        "alice": api.reviews.build_header("alice", READS_LLM),
        "all": api.reviews.build_header("all", *everywhere),
    }
    order = sorted(headers, key=lambda name: name != is_first)
    for _ in range(2):
        answers = {name: await api.client.get(POD, headers=headers[name]) for name in order}
        summaries = {name: answer.json()["filter"]["summary"] for name, answer in answers.items()}
        assert summaries == {
            "alice": "preempted by a pod of another namespace, not by llm/deepseek-b",
            "all": "preempted by other/secret, not by llm/deepseek-b",
        }
        tags = {answer.headers["etag"] for answer in answers.values()}
        assert len(tags) == 2
    for name in order:
        tag = answers[name].headers["etag"]
        statuses = [await api.get_status(POD, headers[other] | {"If-None-Match": tag}) for other in order]
        assert statuses == [304 if other == name else 200 for other in order]
    diagnosis = await api.client.get(POD.replace("schedulerlog", "diagnosis"), headers=headers["alice"])
    assert (diagnosis.status_code, "other/secret" in diagnosis.text) == (200, False)
