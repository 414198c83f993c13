"""KAI's node pools and topologies: what keeps a pod from all nodes at once."""

import pytest

from schemas.answers.diagnosis import Diagnosis
from schemas.json_types import Json
from tests.support.builders.layer_objects import a_pod, an_event, diagnose_case, get_code

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
