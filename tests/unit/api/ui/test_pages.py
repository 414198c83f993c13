"""Every page on the golden records, in both languages, and with names that would do harm."""

import html
import re
from datetime import datetime
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import pytest

from api.ui.pending_pages import sort_layers
from schemas.events import PodWait
from tests.support.builders.cluster import a_pod
from tests.support.builders.events import a_refusal, a_request, a_summary
from tests.support.fakes.objects import FakeObjects
from tests.support.harness.api_app import Caller, hold, refuse
from tests.support.harness.golden_index import answer_search, read_alert, read_attempt
from tests.support.harness.html_check import check

POD: Final = "/ui/pods/llm/deepseek-5996b8569d-kgwgx"
PAGES: Final = (
    "/ui",
    "/ui/find?q=llm",
    "/ui/find?q=llm/nothing",
    "/ui/free",
    "/ui/pending",
    "/ui/pending?by=workload&sort=gpu_hours",
    "/ui/pending?by=pod",
    "/ui/pending/changes",
    "/ui/trends?since=2026-04-22T00:00:00Z&until=2026-04-22T04:00:00Z&interval=1h",
    "/ui/report?since=2026-04-22T02:00:00Z&until=2026-04-22T02:30:00Z",
    "/ui/findings",
    "/ui/alerts",
    "/ui/alerts?state=all&namespace=llm",
    "/ui/search?q=memory",
    "/ui/nodes",
    "/ui/nodes/node3?range=30d",
    "/ui/nodes/node3?at=2026-04-23T00:00:00Z",
    "/ui/simulate",
    "/ui/about",
    POD,
    f"{POD}?at=2026-11-23T00:00:00Z",
    f"{POD}?attempt={read_attempt().attempt_id}",
    f"{POD}/changes",
    f"{POD}/scores",
    f"{POD}/history",
    f"{POD}/records",
    f"{POD}/node?node=node1",
    f"{POD}/comparison?attempt={read_attempt().attempt_id}&with={read_attempt().attempt_id}",
    POD.replace("/ui/pods", "/embed/pod"),
)


@pytest.fixture(scope="module")
def api() -> Caller:
    api = Caller(answer_search)
    api.remember(read_attempt())
    api.publish(read_alert())
    return api


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("path", PAGES)
async def test_every_page_is_shown_in_both_languages(api: Caller, path: str, language: str) -> None:
    answer = await api.get(f"{path}{'&' if '?' in path else '?'}lang={language}")
    assert answer.status_code == 200, answer.text
    check(answer.text)
    assert f'<html lang="{language}' in answer.text
    assert language == "zh" or not re.search(r"[\u4e00-\u9fff]", answer.text.replace("中文", ""))


@pytest.mark.parametrize("path", ["/ui/search?since=2h", "/ui/findings?since=7d", "/ui/trends", "/ui/report?since=2h"])
async def test_a_list_has_a_link_to_this_moment(api: Caller, path: str) -> None:
    text = (await api.get(path)).text
    (link,) = re.findall(r'href="([^"]+)">Link to this moment', text)
    query = dict(parse_qsl(urlsplit(html.unescape(link)).query))
    assert all(datetime.fromisoformat(query[name]).tzinfo for name in ("since", "until"))
    # It leads to itself.
    again = (await api.get(html.unescape(link))).text
    assert f'href="{link}">Link to this moment' in again


async def test_a_node_has_its_refusals_by_reason(api: Caller) -> None:
    (counted,) = (await api.get("/api/v1/schedulerlogs?node=node3&group_by=node&since=7d&limit=1")).json()["nodes"]
    text = (await api.get("/ui/nodes/node3?range=7d")).text
    assert f'reason={counted["reason"]}"><code class="reason">{counted["reason"]}</code>' in text


def with_a_cordoned_node(request: httpx.Request) -> httpx.Response:
    """Answer with the golden records, node and first device cordoned."""
    answer = answer_search(request).content
    answer = answer.replace(b'"unschedulable":false', b'"unschedulable":true')
    device = b'"cordoned":["GPU-f4c45e36-2860-4050-99bd-17a437c3e53c"]'
    return httpx.Response(200, content=answer.replace(b'"cordoned":[]', device))


async def test_list_and_page_of_a_node_agree_that_nothing_is_free_on_a_cordoned_one() -> None:
    api = Caller(with_a_cordoned_node)
    (listed,) = (await api.get("/api/v1/nodes")).json()["items"]
    assert (listed["cordoned"], listed["cordoned_devices"], listed["free_devices"]) == (True, 1, 0)
    occupancy = (await api.get("/api/v1/nodes/node3/occupancy")).json()
    assert (occupancy["cordoned"], occupancy["free_devices"]) == (True, 0)
    pages = [(await api.get(path)).text for path in ("/ui/nodes", "/ui/nodes/node3")]
    assert all('<span class="status cordoned">cordoned</span>' in page for page in pages)
    assert "(1 cordoned)" in pages[0]
    assert "0 of 4 devices free." in pages[1]
    assert " · cordoned" in pages[1]


def test_layers_are_counted_in_the_order_of_a_pods_way() -> None:
    counted = {"bind": 1, "gate": 2, "nodes": 3, "queue": 4, "start": 5}
    assert list(sort_layers(counted)) == ["queue", "gate", "nodes", "bind", "start"]
    assert sort_layers({"start": 1, "queue": 2}) == {"queue": 2, "start": 1}


async def test_a_pod_with_an_attempt_has_the_time_of_its_last_try(api: Caller) -> None:
    counted = (await api.get("/api/v1/pending?group_by=pod&limit=50")).json()
    text = (await api.get("/ui/pending?by=pod")).text
    cells = re.findall(r'data-label="Last tried">([^<]*)', text)
    assert [cell != "–" for cell in cells] == [bool(item["attempt"]) for item in counted["items"]]


def with_a_decisive_obstacle(request: httpx.Request) -> httpx.Response:
    """Answer with the golden attempts, each with a wait."""
    wait = PodWait(
        code="CardInsufficientMemory", layer="nodes", sentence_en="s", sentence_zh="s", models=[], pools=[],
        nearest_nodes=[], reasons={},
    )  # fmt: skip
    answer = answer_search(request).json()
    for hit in answer["hits"]["hits"]:
        if "summary" in hit["_source"]:
            hit["_source"]["summary"]["wait"] = wait.model_dump(mode="json")
    return httpx.Response(200, json=answer)


async def test_search_shows_the_decisive_obstacle_and_folds_the_other_reasons() -> None:
    api = Caller(with_a_decisive_obstacle)
    (item,) = (await api.get("/api/v1/schedulerlogs")).json()["items"]
    assert item["obstacle"] == "CardInsufficientMemory"
    others = set(item["reasons"]) - {item["obstacle"]}
    text = (await api.get("/ui/search")).text
    cell = text.partition('<td class="why" data-label="Main obstacle">')[2].partition("</td>")[0]
    visible, _, folded = cell.partition('<details class="reasons">')
    assert find_reason_links(visible) == {item["obstacle"]: {"obstacle": item["obstacle"]}}
    assert f"+{len(others)}<" in folded
    assert find_reason_links(folded) == {code: {"reason": code} for code in others}


def find_reason_links(text: str) -> dict[str, dict[str, str]]:
    """Find the chips that lead to a search, with its filters."""
    chips = re.findall(r'<a href="/ui/search\?([^"]+)"><code class="reason"><bdi>([^<]+)', text)
    return {html.unescape(code): dict(parse_qsl(html.unescape(query))) for query, code in chips}


async def test_search_folds_the_reasons_of_an_attempt_that_placed_its_pod() -> None:
    api = Caller(hold(read_attempt().model_copy(update={"status": "succeeded"})))
    (item,) = (await api.get("/api/v1/schedulerlogs")).json()["items"]
    assert (item["status"], item["obstacle"]) == ("succeeded", "")
    text = (await api.get("/ui/search")).text
    cell = text.partition('<td class="why" data-label="Main obstacle">')[2].partition("</td>")[0]
    visible, _, folded = cell.partition('<details class="reasons">')
    assert not visible.strip()
    assert set(find_reason_links(folded)) == set(item["reasons"])


async def test_a_series_leads_to_the_attempts_that_it_counts(api: Caller) -> None:
    query = {"namespace": "llm", "since": "2026-04-22T02:00:00Z", "until": "2026-04-22T02:30:00Z"}
    counted = (await api.get("/api/v1/trends?" + urlencode(query | {"result": "failed"}))).json()
    text = (await api.get("/ui/trends?" + urlencode(query | {"result": "failed"}))).text
    (code,) = (item["key"] for item in counted["items"])
    cell = text.partition('<th scope="row">')[2].partition("</th>")[0]
    address = re.search(r'<a href="/ui/search\?([^"]+)"><bdi>([^<]+)', cell)
    assert address
    assert address[2] == code
    filters = {"namespace": "llm", "status": "failed", "obstacle": code}
    assert dict(parse_qsl(html.unescape(address[1]))) == filters | {
        "since": counted["since"], "until": counted["until"],
    }  # fmt: skip
    bars = re.findall(r'<a href="/ui/search\?([^"]+)" tabindex="-1">', text)
    assert bars
    for bar in bars:
        assert filters.items() <= dict(parse_qsl(html.unescape(bar))).items()


PLANS: Final = {"/ui/nodes/node3": "/drain", "/ui/pending?by=pod": "/ui/purchase", POD: "/moves"}


@pytest.mark.parametrize(("path", "plan"), PLANS.items())
async def test_plans_are_offered_where_the_objects_are_read(path: str, plan: str) -> None:
    pod = a_pod(POD.rpartition("/")[2])
    pod["metadata"] |= {"namespace": "llm", "uid": read_attempt().pod.uid}
    tables = {f"/api/v1/namespaces/llm/pods/{pod['metadata']['name']}": pod}
    for objects, is_offered in ((FakeObjects(tables), True), (None, False)):
        api = Caller(answer_search, objects=objects)
        api.remember(read_attempt())
        assert (plan in (await api.get(path)).text) == is_offered


async def test_an_api_without_objects_does_not_promise_an_answer_in_seconds(api: Caller) -> None:
    for path in ("/purchase", "/namespaces/llm/workloads/job/train"):
        answer = await api.get("/api/v1" + path)
        assert (answer.status_code, answer.json()["code"]) == (503, "ObjectsNotRead")
        assert "retry-after" not in answer.headers
    assert "此 API 不读取该集群的对象" in (await api.get("/ui/purchase?lang=zh")).text


async def test_the_trends_have_a_scale_from_zero_to_the_highest_bar(api: Caller) -> None:
    text = (await api.get("/ui/trends")).text
    scale = re.search(r'class="scale"[^>]*><span>([^<]+)</span><span>([^<]*)</span><span>0</span>', text)
    assert scale
    assert int(scale[1]) >= 0


async def test_a_node_that_was_chosen_shows_why_its_bind_failed() -> None:
    api = Caller(answer_search)
    api.remember(read_attempt())
    bind = (await api.get(f"/api/v1/attempts/{read_attempt().attempt_id}")).json()["bind"]
    assert bind["status"] == "failed"
    judged = (await api.get(f"/ui/nodes/{read_attempt().chosen}")).text.partition("Latest attempts that judged it")[2]
    assert html.escape(bind["summary"], quote=False) in judged


async def test_the_language_follows_the_browser_and_once_chosen_every_link_keeps_it(api: Caller) -> None:
    assert '<html lang="zh-CN"' in (await api.get("/ui", **{"accept-language": "zh-CN,zh"})).text
    text = (await api.get(f"{POD}?lang=zh")).text
    links = re.findall(r'href="(/ui/(?!static)[^"]*)"', text)
    assert links
    assert [link for link in links if "lang=" not in link] == []


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/ui/pods/llm/nothing-here?attempt=f00", 404),
        ("/ui/pods/llm/UPPER", 400),
        ("/ui/nodes/UPPER", 400),
        ("/ui/nodes/node3?range=1y", 400),
        ("/ui/nodes/node3?at=tomorrow", 400),
        (f"{POD}?at=soon", 400),
        (f"{POD}?at=99999999999d", 400),
        (f"{POD}/group?group=9.9.9", 404),
        (f"{POD}/node?node=unknown", 404),
        (f"{POD}/comparison", 400),
        ("/ui/search?status=x", 400),
        ("/ui/pending?since=yesterday", 400),
        ("/ui/go?pod=UPPER", 400),
        ("/ui/pending?cluster=../x", 400),
        ("/ui/nothing", 404),
        ("/ui/pods/llm/a%00b", 400),
    ],
)
async def test_what_is_wrong_is_a_page_with_cause_and_next_step(api: Caller, path: str, status: int) -> None:
    answer = await api.get(path)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    check(answer.text)
    assert 'class="state' in answer.text


async def test_the_address_of_an_attempt_leads_to_its_pod_as_of_that_attempt(api: Caller) -> None:
    attempt_id = read_attempt().attempt_id
    answer = await api.get(f"/ui/attempts/{attempt_id}?cluster=default")
    assert answer.status_code == 303
    assert answer.headers["location"] == f"{POD}?cluster=default&attempt={attempt_id}"


async def test_while_the_index_is_down_the_latest_pod_is_shown_and_lists_say_so() -> None:
    api = Caller(refuse)
    api.remember(read_attempt())
    answer = await api.get(POD)
    assert answer.status_code == 200
    check(answer.text)
    for path in ("/ui/pending", "/ui/findings", "/ui/nodes/node3"):
        answer = await api.get(path)
        assert answer.status_code == 503
        assert 'class="state unavailable"' in answer.text
    assert (await api.get("/ui/about")).status_code == 200


HOSTILE: Final = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\x1b]0;x\x07",
    "a\u202eb",
    "{{ 7*7 }}",
)


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_names_and_words_are_inert_on_the_page_of_a_pod(text: str) -> None:
    api = Caller()
    summary = a_summary(
        ("node1", text),
        requests=[a_request(container=text, vendor=text)],
        refusals=[a_refusal(**{text: 8})],
        scheduler_message=text,
        constraints={text: text},
        missing=text,
        complete=False,
        scheduler=text,
    )
    api.remember(summary)
    for path in ("", "/group?group=0.0.0", "/scores", "/history"):
        answer = await api.get(f"/ui/pods/llm/deepseek-a{path}")
        check(answer.text)
        assert "<script>alert" not in answer.text
        assert "<img" not in answer.text
        assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", answer.text)


async def test_a_pod_of_5000_nodes_is_a_small_page_with_all_its_groups() -> None:
    api = Caller()
    names = tuple(f"gpu-{number:04}.cluster.example" for number in range(5000))
    kinds = [a_refusal(A=8), a_refusal(A=3, B=5), a_refusal(C=7)]
    api.remember(a_summary(names, refusals=kinds, refusal=[number % 3 for number in range(5000)]))
    answer = await api.get("/ui/pods/llm/deepseek-a")
    check(answer.text)
    assert answer.text.count('<details class="group"') == 3
    assert len(answer.content) < 60_000
    group = await api.get("/ui/pods/llm/deepseek-a/group?group=0.0.1&from=400")
    assert group.text.count('<li><a href="/ui/pods/llm/deepseek-a/node') == 400
    assert "gpu-1201.cluster.example" in group.text


async def test_pages_stand_in_no_openapi_document(api: Caller) -> None:
    assert '"/ui' not in (await api.get("/openapi.json")).text
    assert 'href="/ui"' in (await api.get("/")).text
