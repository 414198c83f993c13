"""The diagnosis over HTTP: from memory while the index is down, from objects without a record, and by right."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from schemas.answers.diagnosis import Diagnosis
from schemas.events import AttemptSummarized
from tests.support.builders.events import STARTED, a_summary
from tests.support.fakes.objects import FakeObjects
from tests.support.fakes.reviews import Grant
from tests.support.harness.api_app import POD, Caller, answer_nothing, refuse
from tests.support.harness.guarded_api import READS_LLM, Guarded

RECORDED = json.loads(Path("tests/unit/engine/diagnosis/cases/control_plane.json").read_text())
DIAGNOSIS = POD.replace("schedulerlog", "diagnosis")
GOLDEN = json.loads(Path("tests/contract/golden/io.schedulerlog.attempt.summarized.v1/001.json").read_text())
LOCKED = AttemptSummarized.model_validate(GOLDEN)
OF_LOCKED = f"/api/v1/namespaces/{LOCKED.pod.namespace}/pods/{LOCKED.pod.name}/diagnosis"


def parse_diagnosis(response: httpx.Response) -> Diagnosis:
    assert response.status_code == 200, response.text
    return Diagnosis.model_validate_json(response.content)


async def test_it_is_answered_from_memory_while_the_index_is_down_and_says_what_it_could_not_know() -> None:
    api = Caller(refuse)
    api.remember(LOCKED)
    diagnosis = parse_diagnosis(await api.get(OF_LOCKED))
    assert diagnosis.sentence.en.startswith("Node node5 was chosen, and another pod held its lock: llm/qwen-0")
    assert diagnosis.attempt == f"/api/v1/attempts/{LOCKED.attempt_id}"
    causes = {(unknown.subject, unknown.cause) for unknown in diagnosis.not_known}
    assert {("observations", "index-down"), ("schedulers", "index-down"), ("pod", "outside-cluster")} <= causes


async def test_with_index_and_memory_away_it_still_says_what_could_not_be_known() -> None:
    diagnosis = parse_diagnosis(await Caller(refuse).get(DIAGNOSIS))
    assert (diagnosis.state, diagnosis.obstacle) == ("not known", None)
    assert ("attempt", "index-down") in {(unknown.subject, unknown.cause) for unknown in diagnosis.not_known}


async def test_a_pod_that_no_source_knows_is_not_found() -> None:
    response = await Caller(answer_nothing).get(DIAGNOSIS)
    assert response.status_code == 404
    assert "was never observed" in response.json()["error"]


async def test_a_pod_that_is_not_recorded_is_read_from_the_api_server() -> None:
    """The gated pod that was recorded of a real API server, under this path."""
    objects = FakeObjects({"/api/v1/namespaces/llm/pods/deepseek-a": RECORDED["gated"]})
    diagnosis = parse_diagnosis(await Caller(answer_nothing, objects=objects).get(DIAGNOSIS))
    assert (diagnosis.state, diagnosis.obstacle and diagnosis.obstacle.code) == ("gated", "SchedulingGated")


async def test_an_attempt_of_an_earlier_pod_of_the_name_does_not_explain_the_present_one() -> None:
    recorded = RECORDED["gated"]
    path = f"/api/v1/namespaces/{LOCKED.pod.namespace}/pods/{LOCKED.pod.name}"
    api = Caller(answer_nothing, objects=FakeObjects({path: recorded}))
    api.remember(LOCKED)
    assert recorded["metadata"]["uid"] != LOCKED.pod.uid
    diagnosis = parse_diagnosis(await api.get(OF_LOCKED))
    assert (diagnosis.state, diagnosis.attempt) == ("gated", None)


async def test_an_observation_of_an_earlier_pod_of_the_name_does_not_hide_the_attempt() -> None:
    """The golden observation of 2024 under the name of an attempt of 2026, of another pod."""
    earlier = read_golden("pod.observed")
    pod = earlier["pod"] | {"namespace": LOCKED.pod.namespace, "name": LOCKED.pod.name}
    answer = build_hits({"kind": "pod-observed", "event": earlier | {"pod": pod, "deleted": True}})

    def index(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=answer) if b"pod-observed" in request.content else answer_nothing(request)

    api = Caller(index)
    api.remember(LOCKED)
    diagnosis = parse_diagnosis(await api.get(OF_LOCKED))
    assert (diagnosis.state, diagnosis.obstacle and diagnosis.obstacle.code) == ("refused", "node lock contention")


async def test_any_attempt_of_the_pod_can_be_asked_for_and_no_other_pods() -> None:
    api = Caller(answer_nothing)
    other = a_summary(ended_at=STARTED)
    api.remember(LOCKED, other)
    diagnosis = parse_diagnosis(await api.get(f"{OF_LOCKED}?attempt={LOCKED.attempt_id}"))
    assert diagnosis.obstacle
    assert diagnosis.obstacle.code == "node lock contention"
    response = await api.get(f"{OF_LOCKED}?attempt={other.attempt_id}")
    assert response.status_code == 404
    assert "is not one of pod" in response.json()["error"]


@pytest.mark.parametrize("query", ["attempt=a/b", "attempt=", "other=1", "attempt=a&attempt=b"])
async def test_a_wrong_parameter_is_refused(query: str) -> None:
    response = await Caller(answer_nothing).get(f"{DIAGNOSIS}?{query}")
    assert response.status_code == 400
    assert response.json()["next"]


async def test_it_needs_the_right_to_the_pod_and_hides_others_names() -> None:
    api = Guarded()
    api.begin()
    api.remember(LOCKED)
    bob = api.reviews.build_header("bob", Grant("bob", "get", "pods", "other"))
    assert await api.get_status(DIAGNOSIS, bob) == 403
    assert (await api.client.get(DIAGNOSIS)).status_code == 401
    # One pod of the namespace: the pod that held the lock is another one.
    pod_reader = api.reviews.build_header("one", Grant("one", "get", "pods", "llm", LOCKED.pod.name))
    text = (await api.client.get(OF_LOCKED, headers=pod_reader)).text
    assert "another pod held its lock: a pod of another namespace" in text
    assert "qwen-0" not in text
    alice = api.reviews.build_header("alice", READS_LLM)
    assert "qwen-0" in (await api.client.get(OF_LOCKED, headers=alice)).text


def build_hits(*sources: dict[str, Any]) -> dict[str, Any]:
    hits = [
        {"_index": "i", "_id": str(number), "_source": source, "sort": [1]} for number, source in enumerate(sources)
    ]
    return {"hits": {"total": {"value": len(hits)}, "hits": hits}}


def read_golden(kind: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(Path(f"tests/contract/golden/io.schedulerlog.{kind}.v1/001.json").read_text())
    return record


async def test_observations_schedulers_and_registrations_come_from_the_index() -> None:
    """Golden records of a pod, a scheduler and a node's check."""
    pod = read_golden("pod.observed") | {"node": "", "phase": "Pending", "deleted": False, "problems": []}
    scheduler, check = read_golden("scheduler.observed"), read_golden("node.checked")
    buckets = [
        {"key": {"node": check["node"]}, "kinds": {"buckets": [{"schedulers": {"buckets": [build_latest(check)]}}]}}
    ]

    def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else {}
        if "attempts" in request.url.path and "aggs" in body:
            decided = {"key": "hami-scheduler", "latest": {"value_as_string": "2026-11-21T03:00:00.000Z"}}
            return httpx.Response(200, json=build_hits() | {"aggregations": {"schedulers": {"buckets": [decided]}}})
        if "nodes" in body.get("aggs", {}):
            return httpx.Response(200, json=build_hits() | {"aggregations": {"nodes": {"buckets": buckets}}})
        text = request.content.decode()
        if "pod-observed" in text:
            return httpx.Response(200, json=build_hits({"kind": "pod-observed", "event": pod}))
        if "scheduler-observed" in text:
            return httpx.Response(200, json=build_hits({"kind": "scheduler-observed", "event": scheduler}))
        return answer_nothing(request)

    diagnosis = parse_diagnosis(await Caller(answer).get(DIAGNOSIS))
    steps = {step.step: step for step in diagnosis.steps}
    assert steps["PodExists"].evidence[0].record.endswith(f"/observed/{to_micros(pod['observed_at'])}")
    assert diagnosis.state == "not judged"
    obstacles = [diagnosis.obstacle, *diagnosis.other_obstacles]
    assert "HandshakeTooOld" in [obstacle.code for obstacle in obstacles if obstacle]
    assert ("claims", "outside-cluster") in {(unknown.subject, unknown.cause) for unknown in diagnosis.not_known}


def build_latest(check: dict[str, Any]) -> dict[str, Any]:
    return {"latest": build_hits({"kind": "node-checked", "event": check})}


def to_micros(stamp: str) -> int:
    return round(datetime.fromisoformat(stamp).timestamp() * 1_000_000)
