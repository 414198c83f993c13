"""The excluding constraints are found once for a state of the cluster and a version of the attempt."""

from unittest.mock import patch

from api.answers.exclusion import Exclusion
from api.index.reading.client import OpenSearch
from api.memory.cluster_devices import ClusterDevices
from engine.suggestions.exclusion import find_excluding_constraints
from schemas.events import AttemptSummarized, DeviceKind, NodeStateChanged
from tests.support.builders.events import a_request, a_summary
from tests.support.builders.node_states import a_node_state
from tests.support.harness.api_app import index_of, refuse

KIND = DeviceKind(
    model="NVIDIA A100", vendor="NVIDIA", mode="hami-core", memory_mib=10_000, cores_percent=100, slots=10
)

INDEX = OpenSearch(index_of(refuse), lambda *_: None, 10)
"""Asked for nodes that are not registered."""


def a_state(revision: int, memory_used_mib: int) -> NodeStateChanged:
    return a_node_state(
        "node1", 1, revision=revision, kinds=[KIND], memory_used_mib=[memory_used_mib], cores_used_percent=[0],
        slots_used=[1],
    )  # fmt: skip


def an_attempt(version: int = 1, *nodes: str) -> AttemptSummarized:
    wants = a_request(vendor="NVIDIA", count=1, memory_mib=8_000)
    return a_summary(["node1", *nodes], cluster="default", requests=[wants], constraints={}, version=version)


def build_devices(*states: NodeStateChanged) -> ClusterDevices:
    devices = ClusterDevices(is_caught_up=True)
    for state in states:
        devices.take(state, state.observed_at)
    return devices


async def test_the_answer_is_found_again_only_when_the_devices_or_the_attempt_are_others() -> None:
    devices = build_devices(a_state(1, 9_000))
    exclusion = Exclusion(devices, INDEX)
    with patch("api.answers.exclusion.find_excluding_constraints", wraps=find_excluding_constraints) as finding:
        assert await exclusion.find_constraints(an_attempt()) == ["use", "memory"]
        assert await exclusion.find_constraints(an_attempt()) == ["use", "memory"]
        assert finding.call_count == 1
        await exclusion.find_constraints(an_attempt(version=2))
        assert finding.call_count == 2
        state = a_state(2, 1_000)
        devices.take(state, state.observed_at)
        assert await exclusion.find_constraints(an_attempt()) is None
        assert await exclusion.find_constraints(an_attempt()) is None
        assert finding.call_count == 3


async def test_it_is_not_known_without_devices_or_what_the_pod_asks_of_them() -> None:
    assert await Exclusion(ClusterDevices(), INDEX).find_constraints(an_attempt()) is None
    unasked = an_attempt().model_copy(update={"constraints": None})
    assert await Exclusion(build_devices(a_state(1, 9_000)), INDEX).find_constraints(unasked) is None


async def test_while_the_index_is_down_the_registered_nodes_alone_are_judged() -> None:
    exclusion = Exclusion(build_devices(a_state(1, 9_000)), INDEX)
    assert await exclusion.find_constraints(an_attempt(1, "gone")) == ["use", "memory"]
