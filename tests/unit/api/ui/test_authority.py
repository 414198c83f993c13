"""A page shows what the API answers to the same caller, and nothing else."""

import re

import pytest

from tests.support.fakes.reviews import ACCESS_REVIEW, Grant
from tests.support.harness.golden_index import answer_search, read_attempt
from tests.support.harness.guarded_api import READS_LLM, Guarded

POD = "/ui/pods/llm/deepseek-5996b8569d-kgwgx"
PARTS = ("", "/changes", "/scores", "/history", "/records", "/node?node=node1", "/group?group=0.0.0")


@pytest.fixture(scope="module")
def application() -> Guarded:
    return Guarded()


@pytest.fixture
def api(application: Guarded) -> Guarded:
    application.begin()
    application.answering = answer_search
    application.remember(read_attempt())
    return application


@pytest.mark.parametrize("part", PARTS)
async def test_the_page_of_a_pod_is_for_who_may_read_it(api: Guarded, part: str) -> None:
    bob = api.reviews.build_header("bob", Grant("bob", "get", "pods", "other"))
    answer = await api.client.get(POD + part, headers=bob)
    assert answer.status_code == 403
    for secret in ("node1", "CardInsufficientMemory", "qwen", "6f97a54d"):
        assert secret in part or secret not in answer.text
    alice = api.reviews.build_header("alice", READS_LLM)
    assert (await api.client.get(POD + part, headers=alice)).status_code in (200, 404)


async def test_an_attempt_of_another_namespace_is_not_shown_under_the_name_of_ones_own_pod(api: Guarded) -> None:
    bob = api.reviews.build_header("bob", Grant("bob", "get", "pods", "other"))
    for query in (f"attempt={read_attempt().attempt_id}", "at=2026-11-23T00:00:00Z"):
        answer = await api.client.get(f"/ui/pods/other/mine?{query}", headers=bob)
        assert answer.status_code == 403
        assert "deepseek" not in answer.text


async def test_the_address_of_an_attempt_names_its_pod_to_none_but_its_readers(api: Guarded) -> None:
    path = f"/ui/attempts/{read_attempt().attempt_id}"
    refused = await api.client.get(path, headers=api.reviews.build_header("bob", Grant("bob", "get", "pods", "other")))
    assert refused.status_code == 403
    assert "deepseek" not in refused.text + str(refused.headers)
    answer = await api.client.get(path, headers=api.reviews.build_header("alice", READS_LLM))
    assert (answer.status_code, answer.headers["location"]) == (303, f"{POD}?attempt={read_attempt().attempt_id}")


@pytest.mark.parametrize("path", ["pods/other/{}?attempt={}", "simulate?namespace=other&pod={}&attempt={}"])
async def test_with_an_attempt_of_ones_own_a_pod_that_one_may_not_read_is_not_allowed_whether_it_is_there_or_not(
    api: Guarded, path: str
) -> None:
    there = read_attempt().model_copy(update={"attempt_id": "f" * 32})
    api.remember(there.model_copy(update={"pod": there.pod.model_copy(update={"namespace": "other"})}))
    alice = api.reviews.build_header("alice", READS_LLM)
    names = (read_attempt().pod.name, "deepseek-5996b8569d-nobod")
    answers = [
        await api.client.get("/ui/" + path.format(name, read_attempt().attempt_id), headers=alice) for name in names
    ]
    assert [answer.status_code for answer in answers] == [403, 403]
    first, second = (re.sub(r"<time .*?</time>", "", answer.text) for answer in answers)
    assert first.replace(names[0], names[1]) == second


async def test_the_holder_of_a_lock_in_another_namespace_has_no_name(api: Guarded) -> None:
    pod_reader = api.reviews.build_header("one", Grant("one", "get", "pods", "llm", "deepseek-5996b8569d-kgwgx"))
    for part in PARTS[:-1]:
        assert "qwen" not in (await api.client.get(POD + part, headers=pod_reader)).text
    assert "qwen-0" in (await api.client.get(POD, headers=api.reviews.build_header("alice", READS_LLM))).text


async def test_a_node_shows_amounts_of_pods_that_one_may_not_read_and_no_names(api: Guarded) -> None:
    carol = api.reviews.build_header("carol", Grant("carol", "get", "nodes"))
    answer = await api.client.get("/ui/nodes/node3", headers=carol)
    assert answer.status_code == 200
    assert "GPU-2f5b9a1e" in answer.text
    assert "20,480 MiB" in answer.text
    for secret in ("deepseek", "llm", "CardInsufficientMemory"):
        assert secret not in answer.text


@pytest.mark.parametrize("path", ["/ui/pending", "/ui/pending?by=pod", "/ui/findings", "/ui/search", "/ui/nodes"])
async def test_lists_are_for_who_may_list(api: Guarded, path: str) -> None:
    answer = await api.client.get(path, headers=api.reviews.build_header("alice", READS_LLM))
    assert answer.status_code == 403
    assert 'class="state not_allowed"' in answer.text
    assert "deepseek" not in answer.text


async def test_another_cluster_is_asked_for_as_in_the_api(api: Guarded) -> None:
    alice = api.reviews.build_header("alice", READS_LLM)
    assert (await api.client.get(f"{POD}?cluster=second", headers=alice)).status_code == 403
    resources = [spec["resourceAttributes"]["resource"] for spec in api.reviews.list_specs(ACCESS_REVIEW)]
    assert "clusters" in resources


async def test_what_is_behind_is_for_who_may_know_it(api: Guarded) -> None:
    answer = await api.client.get("/ui/about", headers=api.reviews.build_header("alice", READS_LLM))
    assert answer.status_code == 200
    assert "Kafka" not in answer.text
    assert "hami-scheduler-6c8f9d7b5-x2x7q" not in answer.text
