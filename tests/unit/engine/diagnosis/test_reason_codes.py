"""Each reason code as the main obstacle, in clusters that HAMi v2.10.0 was asked about.

The facts are those of tests/conformance/cases/filter_cases.jsonl (tests/conformance/cases/README.md): the cluster and
the pod of a recorded call, and HAMi's own answer. The attempt is that of the fit on the same cluster, whose refusals
are compared with HAMi's words first. Numbers in the sentences were read off the annotations in the file.
"""

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from engine.diagnosis.facts import DiagnosisFacts, Evidence, NodeFacts, Unknown
from engine.diagnosis.tree import diagnose
from schemas.answers.diagnosis import Diagnosis, Obstacle
from schemas.events import NodeProblem
from tests.conformance.recorded_calls import build_facts_of_call, list_refusals

CASES = Path("tests/conformance/cases/filter_cases.jsonl")


@cache
def read_calls() -> dict[int, dict[str, Any]]:
    return {case["id"]: case for case in map(json.loads, CASES.read_text().splitlines())}


def build_facts(number: int, offered: Sequence[str] = ()) -> DiagnosisFacts:
    return build_facts_of_call(read_calls()[number], offered)


def answer(number: int) -> Diagnosis:
    """Diagnose a recorded call, whose refusals are HAMi's."""
    case, facts = read_calls()[number], build_facts(number)
    assert facts.attempt
    refused = {node: judged["reason"] for node, judged in (case["out_per_node"] or {}).items() if not judged["fit"]}
    # HAMi's reply names no refused node where another one fits.
    assert list_refusals(facts.attempt) == refused | (case["out_failed_nodes"] or {})
    return diagnose(facts)


MAIN = tomllib.loads((Path(__file__).parent / "cases" / "reason_codes.toml").read_text("utf-8"))["case"]


@pytest.mark.parametrize("case", MAIN, ids=lambda case: f"{case['code']}-{case['number']}")
def test_a_reason_code_is_stated_with_its_numbers(case: dict[str, Any]) -> None:
    diagnosis = answer(case["number"])
    assert diagnosis.obstacle
    assert (diagnosis.obstacle.code, diagnosis.sentence.en) == (case["code"], case["sentence"])
    assert diagnosis.state == "refused"
    assert diagnosis.obstacle.who_acts
    assert diagnosis.obstacle.remedy.zh


NAMED: Final = re.compile(
    r"(of_)?nodes|attempts|((judged|suitable)_)?devices(_asked)?|slots_(used|total)"
    r"|(asked|free|largest)_(memory_(mib|percent)|cores_percent)|\w+_seconds"
    r"|[a-z]+\.[a-z0-9./-]+\.(used|hard)"
)
"""Numbers that count what they are named for, have their unit at the end, or that of a quota's resource."""


@pytest.mark.parametrize("number", sorted({case["number"] for case in MAIN}))
def test_every_number_of_an_obstacle_has_its_unit_in_its_name(number: int) -> None:
    diagnosis = answer(number)
    names = {
        name for obstacle in (diagnosis.obstacle, *diagnosis.other_obstacles) if obstacle for name in obstacle.numbers
    }
    assert [name for name in names if not NAMED.fullmatch(name)] == []


def test_compute_that_is_all_allocated_of_a_node_that_refused_while_another_one_fitted() -> None:
    """HAMi gives each node of case 28 its own answer: that of the second alone."""
    reason = read_calls()[28]["out_per_node"]["gpu-node-02"]["reason"]
    assert reason == "1/1 CardComputeUnitsExhausted"
    facts = build_facts(28, offered=["gpu-node-02"])
    assert facts.attempt
    assert list_refusals(facts.attempt) == {"gpu-node-02": reason}
    assert diagnose(facts).sentence.en == "On the only node, all compute of the devices is allocated."


def test_nodes_without_the_model_do_not_count_where_one_that_has_it_is_full() -> None:
    """21 nodes: one without registration, one of other models, eight too small, one that has too few devices free."""
    diagnosis = answer(82)
    assert diagnosis.sentence.en == (
        # Eight of the nineteen were refused as a whole: the models of their devices are not named.
        "On 10 of 19 nodes with a device that the pod accepts, the pod wants a device to itself, and every "
        "suitable one is in use; what the pod's other containers take counts too."
    )
    assert [obstacle.code for obstacle in diagnosis.other_obstacles] == [
        "NodeInsufficientDevice", "NodeInsufficientDevice", "AllocatedCardsInsufficientRequest", "CardTypeMismatch",
        "node unregistered",
    ]  # fmt: skip
    # Five nodes refused the container that wants eight devices, three the one that wants two.
    assert [count_nodes(obstacle) for obstacle in (diagnosis.obstacle, *diagnosis.other_obstacles)] == [
        10,
        5,
        3,
        1,
        1,
        1,
    ]


def count_nodes(obstacle: Obstacle | None) -> int:
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
    diagnosis = diagnose(replace(build_facts(133), nodes=nodes))
    assert diagnosis.sentence.en == "2 nodes that should have devices do not register them: cpu-node, gpu-node-01."
    assert diagnosis.other_obstacles == []
    diagnosis_of_one = diagnose(replace(build_facts(133), nodes=nodes[:1]))
    assert [obstacle.code for obstacle in diagnosis_of_one.other_obstacles] == ["node unregistered"]


def test_a_node_that_passed_and_is_not_bound_is_waited_for() -> None:
    diagnosis = answer(28)
    assert diagnosis.state == "binding"
    assert (
        diagnosis.sentence.en == "Node gpu-node-01 passed the filter 3 min ago, and no result of a bind is known since."
    )
    assert diagnosis.obstacle
    assert diagnosis.obstacle.who_acts == ["wait", "administrator"]


def test_without_the_devices_the_sentence_has_the_counts_alone_and_names_what_is_not_known() -> None:
    facts = replace(build_facts(1164), devices=None, unknown=[Unknown("devices", "index-down")])
    diagnosis = diagnose(facts)
    assert diagnosis.sentence.en == "1 of 2 nodes lacks memory: 60,000 MiB asked."
    assert [unknown.subject for step in diagnosis.steps for unknown in step.not_known] == ["devices"]
    assert diagnosis.not_known[0].text.zh == "未知：全部被拒绝的设备上还剩多少资源。OpenSearch 没有响应。"


def test_every_recorded_call_gets_an_answer_in_both_languages() -> None:
    for number in read_calls():
        if read_calls()[number]["out_requests"] and any(read_calls()[number]["out_requests"]):
            diagnosis = diagnose(build_facts(number))
            for text in (diagnosis.sentence, *(step.question for step in diagnosis.steps)):
                assert text.en
                assert text.zh
