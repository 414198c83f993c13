"""The queries of alerts, asked of a real API and a real index: they answer with what the alert is about."""

from collections.abc import Iterator
from datetime import timedelta

import httpx
import orjson
import pytest

from pipeline.alerts import links
from schemas.codec.records import encode_value
from schemas.documents.attempts import build_finding_document
from schemas.documents.observations import build_observation_document
from schemas.events import FindingReported, NodeChecked, NodeProblem, Owner, PodDescription, PodRef
from schemas.indices import FINDINGS, OBSERVATIONS
from tests.support.backends import Addresses
from tests.support.harness.api_process import Served, serving
from tests.support.harness.index_filling import NOW, Filling, an_attempt
from tests.support.waiting import until

ODD = 'Odd "reason" AND (more): a\\b/*'
POD = PodRef(namespace="evidence", name="trainer", uid="uid-trainer")
JOB = PodDescription(owners=[Owner(kind="Job", name="train")])
STARTED = NOW - timedelta(minutes=20)


@pytest.fixture(scope="module")
def filling(backends: Addresses) -> Filling:
    filling = Filling(backends.bootstrap_servers, backends.opensearch_url)
    filling.provision()
    filling.index(
        an_attempt(str(POD), started_at=STARTED, reason=ODD, nodes=["evidence-1", "evidence-2"]),
        an_attempt("evidence/bound", started_at=STARTED, nodes=["evidence-3"], chosen="evidence-3", bound=False),
        an_attempt("evidence/worker-0", started_at=STARTED, nodes=["evidence-5"]).model_copy(
            update={"description": JOB}
        ),
        an_attempt("evidence/other", started_at=STARTED, nodes=["evidence-4"], reason="Another"),
    )
    finding = FindingReported(cluster="default",
        attempt_id="e" * 32, pod=POD, scheduler="hami-scheduler", started_at=STARTED, finding="Overcommitted",
        found_at=STARTED, node="evidence-1",
    )  # fmt: skip
    problem = NodeProblem(code="HandshakeTooOld", message="61 s old")
    check = NodeChecked(
        cluster="default", node="evidence-1", observed_at=STARTED, scheduler="hami-scheduler", problems=[problem]
    )
    for index, event, document in (
        (FINDINGS, finding, build_finding_document(finding)),
        (OBSERVATIONS, check, build_observation_document(check, "digest")),
    ):
        head = {"index": {"_index": index.name(STARTED), "_id": event.id}}
        filling.send_bulk(b"\n".join([orjson.dumps(head), encode_value(document), b""]))
    httpx.post(f"{filling.url}/schedulerlog-*/_refresh", timeout=30).raise_for_status()
    return filling


@pytest.fixture(scope="module")
def api(filling: Filling) -> Iterator[Served]:
    with serving(filling.bootstrap_servers, filling.url) as api:
        assert until(api.is_ready)
        yield api


def search_pods(filling: Filling, query: dict[str, str]) -> set[str]:
    answer = httpx.get(f"{filling.url}{query['opensearch']}", timeout=30).raise_for_status()
    return {hit["_source"]["pod"] for hit in answer.json()["hits"]["hits"]}


def from_api(api: Served, query: dict[str, str]) -> set[str]:
    answer = api.client.get(query["api"]).raise_for_status()
    return {item["name"] for item in answer.json()["items"]}


def test_a_reason_finds_the_attempts_that_it_refused_whatever_it_is_called(filling: Filling, api: Served) -> None:
    query = links.link_reason("default", ODD, NOW - timedelta(hours=1), NOW)
    assert from_api(api, query) == search_pods(filling, query) == {"trainer"}
    before = links.link_reason("default", ODD, NOW - timedelta(hours=3), NOW - timedelta(hours=2))
    assert from_api(api, before) == search_pods(filling, before) == set()


def test_a_pod_finds_its_history(filling: Filling, api: Served) -> None:
    query = links.link_pod("default", POD)
    assert search_pods(filling, query) == {"trainer"}
    (episode,) = api.client.get(query["api"]).raise_for_status().json()["episodes"]
    assert ODD in orjson.dumps(episode).decode().replace('\\"', '"').replace("\\\\", "\\")


def test_a_node_finds_the_binds_that_failed_there(filling: Filling, api: Served) -> None:
    query = links.link_node("default", "evidence-3", STARTED, NOW, status="failed")
    assert from_api(api, query) == search_pods(filling, query) == {"bound"}


def test_a_broken_node_is_found_with_what_its_checks_say(filling: Filling, api: Served) -> None:
    query = links.link_checks("default", "evidence-1", NOW)
    (check,) = api.client.get(query["api"]).raise_for_status().json()["checks"]
    assert [problem["code"] for problem in check["problems"]] == ["HandshakeTooOld"]
    (hit,) = httpx.get(f"{filling.url}{query['opensearch']}", timeout=30).raise_for_status().json()["hits"]["hits"]
    assert hit["_source"]["problems"] == ["HandshakeTooOld"]


def test_a_workload_finds_the_attempts_of_its_pods(filling: Filling, api: Served) -> None:
    query = links.link_workload("default", "evidence", "Job/train", STARTED, NOW)
    assert from_api(api, query) == search_pods(filling, query) == {"worker-0"}


def test_a_pod_names_its_attempt(api: Served) -> None:
    query = links.link_pod("default", POD, an_attempt(str(POD), started_at=STARTED).attempt_id)
    assert ODD in api.client.get(query["attempt"]).raise_for_status().text.replace('\\"', '"').replace("\\\\", "\\")


def test_a_finding_and_a_scheduler_are_found(filling: Filling, api: Served) -> None:
    query = links.link_finding("default", "Overcommitted", "evidence-1")
    assert from_api(api, query) == search_pods(filling, query) == {"trainer"}
    query = links.link_scheduler("default", "hami-scheduler")
    assert from_api(api, query)
    assert search_pods(filling, query)
