"""The reason codes of other vendors' devices, and those that NVIDIA's recorded calls lack: HAMi's own answers.

Each case is a filter call that HAMi v2.10.0 was asked (tests/conformance/cases/README.md), the shortest one that has
the code: what is stated of which node is compared with what HAMi wrote of that node.
"""

import json
import lzma
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

from engine.diagnosis.tree import diagnose
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.pod_usage import DeviceUse, PodUse
from engine.fit.judge.decision import SchedulingPolicy
from engine.hami.reason_codes import ReasonCode
from tests.conformance.recorded_calls import Case, build_facts_of_call, build_facts_of_decision
from tests.support.builders.vendor_examples import VENDORS, read_node, read_pod

FOLDER = Path("tests/conformance/cases/second")
_WORD = re.compile(r"[A-Z][A-Za-z]+")
NO_REFUSALS = {
    # Recorded only where another node fitted: test_reason_codes.py.
    ReasonCode.CARD_COMPUTE_UNITS_EXHAUSTED,
    # Recorded only beside other codes of the same node: the tests at the end.
    ReasonCode.CARD_UNHEALTHY, ReasonCode.CARD_QOS_POLICY_MISMATCH,
    # Of success, of a whole attempt, and of a bind: test_binds.py, test_recorded_logs.py, test_reason_codes.py.
    ReasonCode.NODE_FIT_POD, ReasonCode.FILTERING_FAILED, ReasonCode.FILTERING_SUCCEED, ReasonCode.BINDING_FAILED,
    ReasonCode.BINDING_SUCCEED, ReasonCode.NODE_LOCK_CONTENTION, ReasonCode.CALC_SCORE_FAILED,
    # HAMi writes it where all else that it knows of a node is missing: it stands around other codes.
    ReasonCode.NODE_UNFIT_POD, ReasonCode.NODE_UNREGISTERED,
    # No HAMi since v2.5 writes it: its checks of types come before.
    ReasonCode.DEVICE_TYPE_NOT_FOUND,
    # Of our scheduler alone: tests/unit/scheduler/answering/test_shared_nodes.py, test_withheld_nodes.py.
    ReasonCode.NODE_OF_ANOTHER_SCHEDULER,
}  # fmt: skip


def list_refusal_codes(case: Case) -> Mapping[str, set[str]]:
    """List the codes for which HAMi refused each node."""
    answers = {name: verdict.get("reason") or "" for name, verdict in (case["out_per_node"] or {}).items()}
    answers |= case["out_failed_nodes"] or {}
    return {name: {word for word in _WORD.findall(text) if word in set(ReasonCode)} for name, text in answers.items()}


@cache
def find_shortest_calls() -> dict[str, Case]:
    """Find, for each code, the shortest recorded call in which no node fits, and one was refused for nothing else."""
    cases: dict[str, tuple[int, Case]] = {}
    for name in ("vendor_filter_cases", "filter_cases"):
        with lzma.open(FOLDER / f"{name}.jsonl.xz", "rt") as lines:
            for line in lines:
                case = json.loads(line)
                if any(verdict["fit"] for verdict in (case["out_per_node"] or {}).values()):
                    continue
                for code in (code for codes in list_refusal_codes(case).values() if len(codes) == 1 for code in codes):
                    if code not in cases or len(line) < cases[code][0]:
                        cases[code] = (len(line), case)
    return {code: case for code, (_, case) in cases.items()}


def test_hamis_answers_have_every_code_that_refuses_a_device_or_a_node() -> None:
    assert set(find_shortest_calls()) | {code.value for code in NO_REFUSALS} == {code.value for code in ReasonCode}


@pytest.mark.parametrize("code", sorted(set(ReasonCode) - NO_REFUSALS))
def test_what_hami_refused_a_node_for_is_an_obstacle_with_that_node(code: str) -> None:
    case = find_shortest_calls()[code]
    diagnosis = diagnose(build_facts_of_call(case))
    assert diagnosis.obstacle
    assert diagnosis.state == "refused"
    refused = {name for name, codes in list_refusal_codes(case).items() if codes == {code}}
    obstacles = [
        candidate for candidate in (diagnosis.obstacle, *diagnosis.other_obstacles) if refused & set(candidate.nodes)
    ]
    stated = {obstacle.code for obstacle in obstacles}
    # Where no device is large enough even when it is empty, that is the reason instead.
    assert code in stated or (code, stated) == ("CardInsufficientMemory", {"MemoryBeyondDevice"})
    for obstacle in obstacles:
        assert obstacle.sentence.en
        assert obstacle.sentence.zh
        assert obstacle.remedy.en
        assert obstacle.remedy.zh
        assert obstacle.who_acts
        assert obstacle.evidence


STARTED = datetime(2026, 11, 24, 10, 0, tzinfo=UTC)
DEVICES = ("GPU-mx-0", "GPU-mx-1")


def build_metax_cluster(old: str, new: str) -> tuple[ClusterColumns, Case]:
    """Build the example's node and pod, with a text of each device's registration replaced."""
    node, columns = read_node("metax"), ClusterColumns(VENDORS)
    annotations = node["metadata"]["annotations"]
    annotations["metax-tech.com/node-gpu-devices"] = annotations["metax-tech.com/node-gpu-devices"].replace(old, new)
    columns.apply_node(node)
    return columns, read_pod("metax")


def test_metax_devices_that_are_unhealthy_are_an_obstacle_of_their_own_code() -> None:
    columns, pod = build_metax_cluster('"healthy": true', '"healthy": false')
    diagnosis = diagnose(build_facts_of_decision(columns, pod, columns.node_names, SchedulingPolicy(), STARTED))
    assert diagnosis.obstacle
    assert (diagnosis.obstacle.code, diagnosis.obstacle.nodes) == ("CardUnhealthy", ["metax-node"])
    assert "administrator" in diagnosis.obstacle.who_acts


def test_a_quality_of_service_that_metax_devices_in_use_have_is_an_obstacle() -> None:
    columns, pod = build_metax_cluster('"healthy": true', '"healthy": true, "qosPolicy": "best-effort"')
    used = {uuid: DeviceUse(memory_mib=1024, cores=10, slots=1) for uuid in DEVICES}
    columns.hold("other", PodUse("metax-node", "default", used, "other"))
    pod["metadata"]["annotations"] = {"metax-tech.com/sgpu-qos-policy": "fixed-share"}
    diagnosis = diagnose(build_facts_of_decision(columns, pod, columns.node_names, SchedulingPolicy(), STARTED))
    assert diagnosis.obstacle
    assert (diagnosis.obstacle.code, diagnosis.obstacle.nodes) == ("CardQosPolicyMismatch", ["metax-node"])
