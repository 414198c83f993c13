"""Each reason code as the main obstacle, in clusters that HAMi v2.10.0 was asked about.

The facts are those of tests/conformance/cases/filter_cases.jsonl (tests/conformance/cases/README.md): the cluster and
the pod of a recorded call, and HAMi's own answer. The attempt is that of the fit on the same cluster, whose refusals
are compared with HAMi's words first. Numbers in the sentences were read off the annotations in the file.
"""

import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from diagnosis.facts import DiagnosisFacts, Evidence, NodeFacts, Unknown
from diagnosis.tree import diagnose
from fit.events.attempt import AttemptRef
from fit.events.event_builder import Circumstances, events_of, failure_of
from fit.events.identity import Identity
from fit.judge.decide import decide
from fit.judge.decision import Decision, Failed
from fit.judge.pod_annotations import constraints_of
from schemas.answers.attempts import DeviceLog
from schemas.answers.diagnosis import Diagnosis, Obstacle
from schemas.events import AttemptEvent, AttemptSummarized, DevicesJudged, NodeProblem, PodRef, Refusal
from schemas.events.node_states import state_id
from summaries.fold import summarize
from summaries.text import NODE_UNREGISTERED, refusal_text
from tests.conformance.cluster import cluster_of, policy_of
from tests.conformance.configured import configured
from tests.conformance.objects import pod_object
from tests.support.harness.states_in_memory import LIFE, read_back, states_of

CASES = Path("tests/conformance/cases/filter_cases.jsonl")


@cache
def recorded() -> dict[int, dict[str, Any]]:
    return {case["id"]: case for case in map(json.loads, CASES.read_text().splitlines())}


def facts_of(number: int, offered: Sequence[str] = ()) -> DiagnosisFacts:
    """What schedulerlog knows when HAMi's recorded call was one of its own scheduler; ``offered``: of these nodes."""
    case = recorded()[number]
    columns, pod = cluster_of(case), pod_object(case["pod"])
    started = datetime.fromisoformat(case["clock"])
    ref = PodRef(namespace=case["pod"]["namespace"], name=case["pod"]["name"], uid=case["pod"]["uid"])
    attempt = AttemptRef.of(Identity("default", "hami-scheduler"), ref, started)
    states = {state.id: state for state in states_of(columns)}
    annotations = case["pod"].get("annotations") or {}
    circumstances = Circumstances(constraints=constraints_of(annotations, (configured(case["config"]),)))
    answer = decide(columns, pod, offered or case["node_names"], policy_of(case))
    if isinstance(answer, Decision):
        made = events_of(attempt, answer, started, epoch=LIFE.epoch, circumstances=circumstances)
    else:
        assert isinstance(answer, Failed)
        made = iter([failure_of(attempt, answer, len(case["node_names"]), started, circumstances)])
    events = [event for event in read_back(made) if isinstance(event, AttemptEvent)]
    summary = summarize(events)
    devices = [row for event in events if isinstance(event, DevicesJudged) for row in rows_of(event, states)]
    return DiagnosisFacts("default", ref.namespace, ref.name, started + timedelta(minutes=3), summary, devices=devices)


def rows_of(record: DevicesJudged, states: dict[str, Any]) -> Iterator[DeviceLog]:
    def state_of(node: str, revision: int) -> Any:
        return states.get(state_id(record.cluster, record.scheduler, node, record.epoch, revision))

    for row in record.each_device(state_of):
        yield DeviceLog(container=record.request.container, **row._asdict())


def answer(number: int) -> Diagnosis:
    """The diagnosis of a recorded call, whose refusals are HAMi's."""
    case, facts = recorded()[number], facts_of(number)
    assert facts.attempt
    refused = {node: judged["reason"] for node, judged in (case["out_per_node"] or {}).items() if not judged["fit"]}
    # HAMi's reply names no refused node where another one fits.
    assert refusals(facts.attempt) == refused | (case["out_failed_nodes"] or {})
    return diagnose(facts)


def refusals(attempt: AttemptSummarized) -> dict[str, str]:
    found = {}
    for node, verdict, refusal in zip(attempt.nodes, attempt.verdict, attempt.refusal, strict=True):
        if attempt.verdicts[verdict] in ("refused", "unregistered"):
            why = attempt.refusals[refusal] if refusal >= 0 else Refusal(bare=NODE_UNREGISTERED)
            # The cause is ours: HAMi gives a bare word.
            found[node] = refusal_text(why.model_copy(update={"cause": ""}))
    return found


MAIN = tomllib.loads((Path(__file__).parent / "cases" / "reason_codes.toml").read_text("utf-8"))["case"]


@pytest.mark.parametrize("case", MAIN, ids=lambda case: f"{case['code']}-{case['number']}")
def test_a_reason_code_is_stated_with_its_numbers(case: dict[str, Any]) -> None:
    found = answer(case["number"])
    assert found.obstacle
    assert (found.obstacle.code, found.sentence.en) == (case["code"], case["sentence"])
    assert found.state == "refused"
    assert found.obstacle.who_acts
    assert found.obstacle.remedy.zh


def test_compute_that_is_all_allocated_of_a_node_that_refused_while_another_one_fitted() -> None:
    """HAMi gives each node of case 28 its own answer: that of the second alone."""
    reason = recorded()[28]["out_per_node"]["gpu-node-02"]["reason"]
    assert reason == "1/1 CardComputeUnitsExhausted"
    facts = facts_of(28, offered=["gpu-node-02"])
    assert facts.attempt
    assert refusals(facts.attempt) == {"gpu-node-02": reason}
    assert diagnose(facts).sentence.en == "On the only node, all compute of the devices is allocated."


def test_nodes_without_the_model_do_not_count_where_one_that_has_it_is_full() -> None:
    """21 nodes: one without registration, one of other models, eight too small, one that has too few devices free."""
    found = answer(82)
    assert found.sentence.en == (
        # Eight of the nineteen were refused as a whole: nothing is said of the models of their devices.
        "On 10 of 19 nodes with a device that the pod accepts, the pod wants a device to itself, and every "
        "suitable one is in use; what the pod's other containers take counts too."
    )
    assert [obstacle.code for obstacle in found.other_obstacles] == [
        "NodeInsufficientDevice", "NodeInsufficientDevice", "AllocatedCardsInsufficientRequest", "CardTypeMismatch",
        "node unregistered",
    ]  # fmt: skip
    # Five nodes refused the container that wants eight devices, three the one that wants two.
    assert [nodes_of(obstacle) for obstacle in (found.obstacle, *found.other_obstacles)] == [10, 5, 3, 1, 1, 1]


def nodes_of(obstacle: Obstacle | None) -> int:
    assert obstacle
    return obstacle.numbers["nodes"]


def test_what_the_pods_own_containers_take_is_not_passed_off_as_free() -> None:
    """Two devices of case 562 are empty before the attempt: its first container takes them."""
    assert answer(562).sentence.en.endswith("in use; what the pod's other containers take counts too.")


def test_a_node_without_devices_is_explained_by_what_is_wrong_with_its_registration() -> None:
    """The nodes of case 133, with the problem of a golden record of a check."""
    check = json.loads(Path("tests/contract/golden/io.schedulerlog.node.checked.v1/001.json").read_text())
    problem = NodeProblem.model_validate(check["problems"][0] | {"code": "RegistrationMissing"})
    nodes = [NodeFacts(name, Evidence("node", name), problems=[problem]) for name in ("cpu-node", "gpu-node-01")]
    found = diagnose(replace(facts_of(133), nodes=nodes))
    assert found.sentence.en == "2 nodes that should have devices do not register them: cpu-node, gpu-node-01."
    assert found.other_obstacles == []
    one = diagnose(replace(facts_of(133), nodes=nodes[:1]))
    assert [obstacle.code for obstacle in one.other_obstacles] == ["node unregistered"]


def test_a_node_that_passed_and_is_not_bound_is_waited_for() -> None:
    found = answer(28)
    assert found.state == "binding"
    assert found.sentence.en == "Node gpu-node-01 passed the filter 3 min ago, and no result of a bind is known since."
    assert found.obstacle
    assert found.obstacle.who_acts == ["wait", "administrator"]


def test_without_the_devices_the_sentence_has_the_counts_alone_and_names_what_is_not_known() -> None:
    facts = replace(facts_of(1164), devices=None, unknown=[Unknown("devices", "index-down")])
    found = diagnose(facts)
    assert found.sentence.en == "1 of 2 nodes lacks memory: 60,000 MiB asked."
    assert [each.subject for step in found.steps for each in step.not_known] == ["devices"]
    assert found.not_known[0].text.zh == "未知：全部被拒绝的卡上还剩多少资源。OpenSearch 没有响应。"


def test_every_recorded_call_gets_an_answer_in_both_languages() -> None:
    for number in recorded():
        if recorded()[number]["out_requests"] and any(recorded()[number]["out_requests"]):
            found = diagnose(facts_of(number))
            for text in (found.sentence, *(step.question for step in found.steps)):
                assert text.en
                assert text.zh
