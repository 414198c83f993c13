"""The start of a waiting pod in its diagnosis: from the order, its forecast and the record, by right."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import orjson
import pytest

from cli.terminal.diagnosed import show_diagnosis
from cli.terminal.screen import Screen
from schemas.answers.diagnosis import Diagnosis
from schemas.codec.records import encode_value
from schemas.documents.forecasts import build_forecast_document
from schemas.documents.placements import build_placement_document
from schemas.events import AttemptSummarized, PodRef, PodWait
from schemas.forecasts import StartForecast
from schemas.placements import PodPlacement
from tests.support.builders.events import STARTED, a_summary
from tests.support.fakes.reviews import Grant
from tests.support.harness.api_app import Caller, refuse
from tests.support.harness.guarded_api import Guarded

WAIT = PodWait(
    code="CardInsufficientMemory", layer="nodes", devices=1, models=["A40"], pools=[], nearest_nodes=["node1"],
    reasons={"CardInsufficientMemory": 1}, missing_devices=1,
)  # fmt: skip
REFUSED: AttemptSummarized = a_summary(wait=WAIT, ended_at=STARTED, version=9)
PATH = f"/api/v1/namespaces/{REFUSED.pod.namespace}/pods/{REFUSED.pod.name}/diagnosis?changes=false&exclusion=false"
NOW = datetime.now(UTC)
FORECAST = StartForecast(
    cluster=REFUSED.cluster, pod=REFUSED.pod, given_at=NOW, obstacle=WAIT.code, basis="shape",
    after=[f"{REFUSED.pod.namespace}/train-0", "secret/train-1"],
    earliest=NOW + timedelta(hours=1), latest=NOW + timedelta(hours=2),
)  # fmt: skip


def to_source(document: dict[str, Any]) -> dict[str, Any]:
    source: dict[str, Any] = orjson.loads(encode_value(document))
    return source


def a_judged_start(*, is_right: bool) -> dict[str, Any]:
    pod = PodRef(namespace="llm", name="earlier", uid="earlier")
    forecast = FORECAST.model_copy(update={"pod": pod, "given_at": STARTED, "earliest": STARTED})
    latest = STARTED + timedelta(minutes=2 if is_right else 1)
    forecast = forecast.model_copy(update={"latest": latest})
    placement = PodPlacement(
        id="p", cluster=REFUSED.cluster, pod=pod, node="node1", started_at=STARTED + timedelta(minutes=2),
        forecasts=[forecast],
    )  # fmt: skip
    return to_source(build_placement_document(placement, {}))


def to_answer(sources: list[dict[str, Any]], total: int | None = None, itself: int = 0) -> httpx.Response:
    hits = [{"_index": "i", "_id": str(number), "_source": source} for number, source in enumerate(sources)]
    counts = {"itself": {"doc_count": itself}}
    body = {"hits": {"total": {"value": total or len(hits)}, "hits": hits}, "docs": [], "aggregations": counts}
    return httpx.Response(200, json=body)


class Index:
    """Holds a forecast for the pod, so many judged ones of others, and pods that wait."""

    def __init__(self, right: int, judged: int, *others: str) -> None:
        self._starts = [a_judged_start(is_right=number < right) for number in range(judged)]
        self._names = [tuple(name.split("/")) for name in others]
        self.orders: list[dict[str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else {}
        if "itself" in body.get("aggs", {}):
            self.orders.append(body)
            others = [{"namespace": namespace, "pod": pod, "pod_uid": pod} for namespace, pod in self._names]
            refused = {"namespace": REFUSED.pod.namespace, "pod": REFUSED.pod.name, "pod_uid": REFUSED.pod.uid}
            return to_answer([*others, refused], itself=1)
        if b"forecasts_judged" in request.content:
            return to_answer(self._starts)
        if b"start-forecast" in request.content:
            return to_answer([to_source(build_forecast_document(FORECAST))])
        return to_answer([])


async def diagnose(index: Any, query: str = "") -> Diagnosis:
    api = Caller(index)
    api.remember(REFUSED)
    response = await api.get(PATH + query)
    assert response.status_code == 200, response.text
    return Diagnosis.model_validate_json(response.content)


async def test_the_first_pod_has_an_interval_where_the_record_proves_it() -> None:
    start = (await diagnose(Index(16, 20))).start
    assert start
    assert (start.earliest, start.latest) == tuple(
        f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z" for moment in (FORECAST.earliest, FORECAST.latest)
    )
    assert (start.right, start.judged, start.before) == (16, 20, 0)


async def test_an_unproved_record_is_shown_in_place_of_the_interval() -> None:
    start = (await diagnose(Index(12, 20))).start
    assert start
    assert start.earliest is None
    assert "12 of 20 such forecasts were right" in start.sentence.en


async def test_pods_before_it_are_named_and_no_time_is() -> None:
    start = (await diagnose(Index(20, 20, "llm/b", "llm/c"))).start
    assert start
    assert (start.earliest, start.before, start.names_before) == (None, 2, ["llm/b", "llm/c"])


async def test_who_asks_for_no_start_costs_no_search_of_it() -> None:
    index = Index(16, 20)
    assert (await diagnose(index, "&outlook=false")).start is None
    assert index.orders == []


async def test_without_the_index_the_diagnosis_has_no_start() -> None:
    diagnosis = await diagnose(refuse)
    assert (diagnosis.state, diagnosis.start) == ("refused", None)


async def test_names_of_other_namespaces_are_hidden_from_callers_who_may_not_list_them() -> None:
    api = Guarded()
    api.begin()
    api.answering = Index(20, 20, "secret/b")
    api.remember(REFUSED)
    namespace = REFUSED.pod.namespace
    reader = api.reviews.build_header("one", Grant("one", "get", "pods", namespace, REFUSED.pod.name))
    response = await api.client.get(PATH, headers=reader)
    assert response.status_code == 200, response.text
    assert "secret" not in response.text
    start = response.json()["start"]
    assert start["names_before"] == ["a pod of another namespace"]
    assert start["before"] == 1
    lister = api.reviews.build_header("all", Grant("all", "list", "pods"), Grant("all", "get", "pods"))
    assert "secret/b" in (await api.client.get(PATH, headers=lister)).text


@pytest.mark.parametrize(
    ("language", "heading", "sentence"),
    [("en", "When it starts", "12 of 20 such forecasts were right"), ("zh", "何时启动", "20 次此类预测中有 12 次正确")],
)
async def test_the_page_has_the_sentence_in_both_languages(language: str, heading: str, sentence: str) -> None:
    api = Caller(Index(12, 20))
    api.remember(REFUSED)
    page = await api.get(f"/ui/pods/{REFUSED.pod.namespace}/{REFUSED.pod.name}?lang={language}")
    assert heading in page.text
    # Numbers are kept on one line with their words.
    assert sentence in page.text.replace("\u00a0", " ")


def test_the_terminal_has_the_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    sentence = {"en": "12 of 20 such forecasts were right", "zh": ""}
    empty: dict[str, Any] = {
        "background": None,
        "obstacle": None,
        "excluded_by": None,
        "other_obstacles": [],
        "not_known": [],
    }
    diagnosis = {"headline": {"en": "H.", "zh": ""}, **empty, "start": {"sentence": sentence}}
    show_diagnosis(Screen(), diagnosis, None, is_wide=False)
    assert capsys.readouterr().out.splitlines()[-2:] == ["When it starts", f"  {sentence['en']}"]
