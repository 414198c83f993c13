"""KAI's node pools and topologies, and Koordinator's devices: what keeps a pod from all nodes at once."""

import pytest

from schemas.answers.diagnosis import Diagnosis
from schemas.json_types import Json
from tests.support.builders.layer_objects import a_node, a_pod, an_event, diagnose_case, get_code

MET = "Scheduling conditions were not met for pod lab/job-0:\nMaxNodePoolResources: "


def refuse(words: str, scheduler: str, *objects: Json) -> Diagnosis:
    reason = "Unschedulable" if scheduler == "kai-scheduler" else "FailedScheduling"
    pod = a_pod(spec={"schedulerName": scheduler}, refusal=words)
    return diagnose_case(pod, an_event(reason, words, reporter=scheduler), *objects)


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (
            (
                f"{MET}The pod lab/job-0 requires GPU: 4, CPU: 1.5 (cores), memory: 1 (GB). Max GPU resources "
                "available in a single node in the default node-pool is topped at 2.\n"
            ),
            "PoolNodesTooSmall",
            "node pool default can ever hold the pod: the largest has 2 GPU, and the pod asks for 4.",
        ),
        (
            f"{MET}The pod lab/job-0 requires GPU: 4. No node in the a100 node-pool has GPU resources.\n",
            "PoolWithoutResource",
            "No node of KAI's node pool a100 has GPU.",
        ),
        (
            (
                "topology racks, requirement rack couldn't be satisfied for job lab/pg: node-group rack1 can allocate "
                "only 3 of 4 required pods"
            ),
            "NoDomainHasRoom",
            "together (racks, level rack): rack1 could take 3 of 4.",
        ),
        ("Requested topology racks does not exist", "TopologyMissing", "the topology racks, which does not exist."),
    ],
)
def test_kais_words_about_a_pool_or_a_topology_are_no_error_of_it(words: str, code: str, sentence: str) -> None:
    diagnosis = refuse(words, "kai-scheduler")
    assert (diagnosis.state, get_code(diagnosis)) == ("refused", code)
    assert diagnosis.sentence.en.endswith(sentence)
    assert not diagnosis.other_obstacles


def build_devices(node: str, *, holders: dict[str, list[int]], sick: int = 0) -> Json:
    devices = [{"type": "gpu", "minor": minor, "health": minor >= sick} for minor in range(4)]
    entries = [
        {"namespace": pod.partition("/")[0], "name": pod.partition("/")[2], "minors": minors}
        for pod, minors in holders.items()
    ]
    return {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device", "metadata": {"name": node},
        "spec": {"devices": [*devices, {"type": "rdma", "minor": 0, "health": True}]},
        "status": {"allocations": [{"type": "gpu", "entries": entries}]},
    }  # fmt: skip


def test_koordinators_objects_say_which_devices_are_sick_or_held() -> None:
    objects = [
        a_node("n1"), a_node("n2"),
        build_devices("n1", holders={"lab/train": [0, 1], "other/serve": [2]}), build_devices("n2", holders={}, sick=1),
    ]  # fmt: skip
    words = "0/2 nodes are available: 2 Insufficient gpu devices."
    diagnosis = refuse(words, "koord-scheduler", *objects)
    assert get_code(diagnosis) == "DeviceShareShort"
    # Of the four of n1 one is untouched, and of n2 the three healthy ones.
    assert "of 8 GPUs on 2 nodes no pod holds a part of 4, and 1 is unhealthy" in diagnosis.sentence.en
    assert "of this namespace lab/train hold GPUs" in diagnosis.sentence.en
    assert "other/serve" not in diagnosis.sentence.en
    rdma = refuse("0/2 nodes are available: 2 Insufficient rdma devices.", "koord-scheduler", *objects)
    assert "GPUs" not in rdma.sentence.en
