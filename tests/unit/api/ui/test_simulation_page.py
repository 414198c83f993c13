"""The page that simulates a pod: a form that keeps its text, and what ``POST /simulate`` answers to the same caller."""

from pathlib import Path
from typing import Final

import pytest
from httpx import Response

from engine.fit import manifests
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.attempt import Identity
from engine.fit.judge.decision import SchedulingPolicy
from engine.fit.simulate import build_columns, simulate_on
from engine.summaries.fold import summarize
from tests.support.builders.events import STARTED, a_summary
from tests.support.fakes.reviews import Grant
from tests.support.harness.api_app import Caller
from tests.support.harness.guarded_api import READS_LLM, Guarded
from tests.support.harness.html_check import check

OURS: Final = {"sec-fetch-site": "same-origin"}
PODS: Final = Path("examples/pods")
FITS, REFUSED = PODS / "1-gpu-pod.yaml", PODS / "2-gpu-pod-default.yaml"
PLAIN: Final = "{apiVersion: v1, kind: Pod, metadata: {name: new, namespace: llm}, spec: {containers: [{name: main}]}}"


@pytest.fixture(scope="module")
def api() -> Caller:
    api = Caller()
    give_devices(api)
    return api


def give_devices(api: Caller) -> None:
    devices = api.app.state.devices
    devices.columns[api.app.state.default_cluster] = read_columns()
    devices.is_caught_up = True


def read_columns() -> ClusterColumns:
    return build_columns(manifests.read(Path("examples/cluster.yaml")))


async def post(api: Caller, pod: str, path: str = "/ui/simulate", **headers: str) -> Response:
    answer = await api.client.post(path, data={"pod": pod}, headers=OURS | headers)
    check(answer.text)
    return answer


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_pod_that_fits_has_its_node_and_devices(api: Caller, language: str) -> None:
    answer = await post(api, FITS.read_text("utf-8"), f"/ui/simulate?lang={language}")
    assert answer.status_code == 200, answer.text
    simulation = (await api.client.post("/api/v1/simulate", content=FITS.read_bytes())).json()
    assert f'href="/ui/nodes/{simulation["node"]}' in answer.text
    for uuid in simulation["schedulerlog"]["detail"]["picked_devices"]:
        assert uuid in answer.text


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_one_that_does_not_has_the_sentence_its_nodes_and_what_would_have_to_change(
    api: Caller, language: str
) -> None:
    answer = await post(api, REFUSED.read_text("utf-8"), f"/ui/simulate?lang={language}")
    assert answer.status_code == 200, answer.text
    simulation = (await api.client.post("/api/v1/simulate", content=REFUSED.read_bytes())).json()
    assert simulation["diagnosis"]["obstacle"]["code"] in answer.text
    assert answer.text.count('<details class="group"') >= 1
    assert simulation["suggestions"]["items"]
    assert 'class="cards"' in answer.text


async def test_a_pod_that_was_tried_is_the_text_to_begin_with_and_has_its_answer(api: Caller) -> None:
    pod = manifests.read_pod(REFUSED)
    events = simulate_on(
        read_columns(), read_columns().node_names, pod, Identity("default", "s"), SchedulingPolicy(), STARTED
    )
    api.remember(summarize(events))
    answer = await api.get("/ui/simulate?namespace=default&pod=gpu-pod-default")
    check(answer.text)
    assert answer.status_code == 200, answer.text
    assert "nvidia.com/gpucores: 30" in answer.text
    assert "CardInsufficientCore" in answer.text
    named = f"attempt={summarize(events).attempt_id}"
    assert (await api.get(f"/ui/simulate?namespace=default&pod=gpu-pod-default&{named}")).status_code == 200
    linked = await api.get("/ui/pods/default/gpu-pod-default")
    assert "/ui/simulate?namespace=default&amp;pod=gpu-pod-default" in linked.text


@pytest.mark.parametrize(
    ("query", "status"), [("pod=nothing-here", 404), ("pod=../x", 400), ("pod=a&namespace=UPPER", 400)]
)
async def test_one_that_is_not_known_is_a_page_with_the_next_step(api: Caller, query: str, status: int) -> None:
    answer = await api.get(f"/ui/simulate?{query}")
    check(answer.text)
    assert answer.status_code == status
    assert 'class="state' in answer.text


async def test_a_pod_without_devices_is_not_judged(api: Caller) -> None:
    answer = await post(api, PLAIN)
    assert answer.status_code == 200
    assert "asks for no device" in answer.text


async def test_what_is_wrong_stands_below_the_text_as_it_was_pasted(api: Caller) -> None:
    # As browsers send it.
    text = "kind: Pod\r\nmetadata: {name: 'Not </textarea><script>alert(1)</script>'}\n"
    answer = await post(api, text)
    assert answer.status_code == 400
    assert "RFC 1123" in answer.text
    assert "\\x0d" not in answer.text
    assert "&lt;/textarea&gt;&lt;script&gt;" in answer.text
    assert "<script>alert" not in answer.text


@pytest.mark.parametrize(("pod", "status"), [("", 400), ("# " + "x" * 70_000, 413), ("a: [", 400)])
async def test_no_text_and_too_much_are_refused_with_the_next_step(api: Caller, pod: str, status: int) -> None:
    answer = await post(api, pod)
    assert answer.status_code == status
    assert "kind Pod" in answer.text


async def test_another_site_can_not_send_a_pod(api: Caller) -> None:
    answer = await api.client.post("/ui/simulate", data={"pod": PLAIN}, headers={"sec-fetch-site": "cross-site"})
    assert answer.status_code == 403
    assert (await api.get("/ui/simulate")).status_code == 200


async def test_a_pod_is_simulated_for_who_may_read_such_a_one() -> None:
    api = Guarded()
    api.begin()
    give_devices(api)
    alice = api.reviews.build_header("alice", READS_LLM)
    assert (await post(api, PLAIN, **alice)).status_code == 200
    refused = await post(api, PLAIN.replace("llm", "other"), **alice)
    assert refused.status_code == 403
    assert 'class="state not_allowed"' in refused.text
    assert (await api.client.post("/ui/simulate", data={"pod": PLAIN}, headers=OURS)).status_code == 401
    bob = api.reviews.build_header("bob", Grant("bob", "get", "pods", "other"))
    for namespace, name, attempt in (("llm", "deepseek-a", ""), ("other", "mine", a_summary().attempt_id)):
        answer = await api.client.get(f"/ui/simulate?namespace={namespace}&pod={name}&attempt={attempt}", headers=bob)
        assert answer.status_code == 403
        assert "nvidia.com" not in answer.text.partition("<main")[2].replace("simulate.pod", "")
