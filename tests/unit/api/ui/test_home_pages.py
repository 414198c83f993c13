"""The first page: its numbers are those of the API, its field leads to the page of a name."""

import html
import re

import httpx
import pytest

from schemas.events import Owner, PodDescription
from tests.support.builders.events import OF_A_JOB
from tests.support.fakes.reviews import Grant
from tests.support.harness.api_app import Caller
from tests.support.harness.example_api import build_caller
from tests.support.harness.golden_index import answer_search, read_alert, read_attempt
from tests.support.harness.guarded_api import READS_LLM, Guarded

POD = "/ui/pods/llm/deepseek-5996b8569d-kgwgx"


@pytest.fixture
def api() -> Caller:
    caller = build_caller("1-gpu-pod")
    caller.remember_pods("llm/train-0", "ml/train-0", "llm/train-1", description=OF_A_JOB)
    return caller


async def test_the_numbers_are_those_of_the_api_and_lead_to_their_pages() -> None:
    api = Caller(answer_search)
    api.remember(read_attempt())
    api.publish(read_alert(), evaluated_until=read_alert().changed_at)
    waiting = (await api.get("/api/v1/pending?group_by=layer")).json()
    text = (await api.get("/ui")).text
    assert f'href="/ui/pending"><b>{waiting["pods"]}</b>' in text
    hours = sum(item["gpu_hours"] for item in waiting["items"])
    (written,) = re.findall(r'sort=gpu_hours"><b>([\d,.]+)</b>', text)
    assert float(written.replace(",", "")) == pytest.approx(hours, abs=0.1)
    assert 'href="/ui/alerts"' in text
    (node,) = (await api.get("/api/v1/nodes")).json()["items"]
    free = (await api.get("/ui/free")).text
    assert f">{sum(model['free_devices'] for model in node['models'])}</b>" in free


async def test_who_may_not_list_all_pods_names_a_namespace() -> None:
    guarded = Guarded()
    guarded.begin()
    alice = guarded.reviews.build_header("alice", READS_LLM, Grant("alice", "list", "pods", "llm"))
    text = (await guarded.get("/ui", **alice)).text
    assert '<input name="namespace"' in text
    assert not re.search(r'href="/ui/pending"><b>\d', text)
    assert 'href="/ui/pending?namespace=llm"><b>' in (await guarded.get("/ui?namespace=llm", **alice)).text


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("llm/train-0", "/ui/pods/llm/train-0"),
        ("train-1", "/ui/pods/llm/train-1"),
        ("node3", "/ui/nodes/node3"),
        ("llm/job/train", "/ui/workloads/llm/job/train"),
        ("ml/", "/ui/search?namespace=ml"),
        ("ml", "/ui/search?namespace=ml"),
    ],
)
async def test_one_name_is_gone_to(api: Caller, text: str, address: str) -> None:
    answer = await api.client.get("/ui/go", params={"q": text})
    assert (answer.status_code, answer.headers["location"]) == (303, address)


async def test_a_name_in_two_namespaces_and_a_wrong_one_are_lists(api: Caller) -> None:
    both = (await api.get("/ui/go?q=train-0")).text
    assert re.findall(r'data-name="([^"]+)"', both) == ["llm/train-0", "ml/train-0"]
    wrong = (await api.get("/ui/go?q=llm/trian-0")).text
    assert "Did you mean" in html.unescape(wrong)
    assert 'href="/ui/pods/llm/train-0"' in wrong
    assert 'href="/ui/pods/llm/trian-0"' in wrong


@pytest.mark.parametrize(
    ("path", "next_step"),
    [("/ui/pending?group_by=workload", "It takes"), ("/ui/search?reasons=x", "Did you mean reason?")],
)
async def test_a_parameter_that_the_page_does_not_have_is_refused(api: Caller, path: str, next_step: str) -> None:
    answer = await api.get(path)
    assert answer.status_code == 400
    assert next_step in answer.text


async def test_a_change_has_the_command_for_the_template_of_the_pods_owner() -> None:
    caller = build_caller("2-gpu-pod-default")
    latest = caller.app.state.latest.get("default", "default", "gpu-pod-default", 0.0).read_summary()
    owner = PodDescription(owners=[Owner(kind="Deployment", name="web")])
    owned = latest.model_copy(update={"version": latest.version + 1, "description": owner})
    text = html.unescape((await caller.get("/ui/pods/default/gpu-pod-default/changes")).text)
    assert "kubectl" not in text.partition("data-part")[2].partition("</ol>")[0]
    assert "nvidia.com/gpucores: '25'" in text
    caller.remember(owned)
    text = html.unescape((await caller.get("/ui/pods/default/gpu-pod-default/changes")).text)
    assert (
        "kubectl -n default set resources deployment/web -c ubuntu-container "
        "--limits=nvidia.com/gpucores=25 --requests=nvidia.com/gpucores=25"
    ) in text


@pytest.mark.parametrize(("word", "status"), [("placed", "succeeded"), ("refused", "failed"), ("undecided", "pending")])
async def test_the_words_of_the_page_are_taken_by_the_api(word: str, status: str) -> None:
    bodies: list[bytes] = []

    def record(request: httpx.Request) -> httpx.Response:
        bodies.append(request.content)
        return answer_search(request)

    api = Caller(record)
    assert (await api.get(f"/api/v1/schedulerlogs?status={word}")).status_code == 200
    assert f'"{status}"'.encode() in bodies[-1]
    wrong = await api.get("/api/v1/schedulerlogs?status=wrong")
    assert wrong.status_code == 400
    assert "placed, refused, undecided" in wrong.json()["error"]
