"""Kueue's messages of all releases: what waits for quota, what can never start, and why a flavor is out.

The texts are those of Kueue's release notes (0.14.2, 0.16), of its flavor assigner's tests of v0.5 to v0.14, and of
the public issue 3909.
"""

import pytest

from schemas.answers.diagnosis import Diagnosis
from schemas.json_types import Json
from tests.support.builders.kueue_objects import GATE, a_workload, an_object, list_queues
from tests.support.builders.layer_objects import a_pod, diagnose_case, get_code

MAIN = "couldn't assign flavors to pod set main: "
WAITS = "insufficient unused quota for {} in flavor {}, 2 more needed"
NEVER = "insufficient quota for {} in flavor {}, request > maximum capacity (12 > 8)"


def hold(message: str, *queues: Json, reason: str = "Pending") -> Diagnosis:
    return diagnose_case(a_pod(spec=GATE), a_workload(reason, message), *(queues or list_queues("24")))


def test_the_maximum_of_older_releases_is_a_number_and_not_a_comparison() -> None:
    diagnosis = hold(MAIN + NEVER.format("nvidia.com/gpu", "big"))
    assert diagnosis.sentence.en == (
        "Kueue holds the pod, and it can never start: it asks for more nvidia.com/gpu than ClusterQueue batch may ever "
        "have in flavor big, which is 8 (12 asked)."
    )


def test_what_other_sets_of_the_workload_ask_counts_towards_the_maximum() -> None:
    diagnosis = hold(
        MAIN + "insufficient quota for nvidia.com/gpu in flavor big, previously considered podsets requests (16) + "
        "current podset request (8) > maximum capacity (16)"
    )
    assert "which is 16 (16 + 8 asked)" in diagnosis.sentence.en


def test_a_set_of_pods_that_no_flavor_can_ever_take_outranks_one_that_waits() -> None:
    waits = [WAITS.format("nvidia.com/gpu", flavor) for flavor in ("multi", "single")]
    diagnosis = hold(
        f"couldn't assign flavors to pod set master: {', '.join(waits)}; couldn't assign flavors to pod set worker: "
        "insufficient quota for nvidia.com/gpu in flavor multi, request > maximum capacity (16 > 8), "
        "insufficient quota for nvidia.com/gpu in flavor single, request > maximum capacity (24 > 16)"
    )
    assert get_code(diagnosis) == "KueueExceedsMaximum"
    assert "single never has enough nvidia.com/gpu: 24 asked, at most 16" in diagnosis.sentence.en


def test_a_flavor_that_waits_for_one_resource_and_never_has_another_is_out() -> None:
    diagnosis = hold(f"{MAIN}{WAITS.format('cpu', 'big')}, {NEVER.format('nvidia.com/gpu', 'big')}")
    assert get_code(diagnosis) == "KueueExceedsMaximum"


def test_a_flavor_of_another_resource_group_does_not_help() -> None:
    message = f"{MAIN}{WAITS.format('cpu', 'plain')}, {NEVER.format('nvidia.com/gpu', 'big')}"
    groups = [{"flavors": [{"name": "plain"}]}, {"flavors": [{"name": "big"}]}]
    divided = [
        an_object("LocalQueue", "night", spec={"clusterQueue": "batch"}),
        an_object("ClusterQueue", "batch", "", spec={"resourceGroups": groups}),
    ]
    assert get_code(hold(message, *divided)) == "KueueExceedsMaximum"
    # In one group the other flavor may have room for both.
    together = [divided[0], an_object("ClusterQueue", "batch", "", spec={"resourceGroups": [
        {"flavors": [{"name": "plain"}, {"name": "big"}]}]})]  # fmt: skip
    assert get_code(hold(message, *together)) == "KueueWaitsForQuota"


def test_kueues_own_word_that_a_request_exceeds_the_maximum_decides() -> None:
    message = f"{MAIN}{WAITS.format('cpu', 'plain')}, {NEVER.format('nvidia.com/gpu', 'big')}"
    assert get_code(hold(message, reason="ExceedsMaxQuota")) == "KueueExceedsMaximum"


@pytest.mark.parametrize(
    ("message", "code", "words"),
    [
        (
            "insufficient unused quota in cohort for nvidia.com/gpu in flavor big, 1 more needed",
            "KueueWaitsForQuota",
            "nvidia.com/gpu in flavor big, 1 more needed",
        ),
        (
            "borrowing limit for nvidia.com/gpu in flavor big exceeded",
            "KueueWaitsForQuota",
            "as it has borrowed as much as it may",
        ),
        (
            "insufficient quota for nvidia.com/gpu in flavor big in ClusterQueue",
            "KueueExceedsMaximum",
            "it can never start",
        ),
        (
            'Flavor "big" does not support TopologyAwareScheduling',
            "KueueFlavorRefused",
            "big has no topology, which the pods ask for",
        ),
        (
            'Flavor "big" supports only TopologyAwareScheduling',
            "KueueFlavorRefused",
            "big takes only pods that ask for a topology",
        ),
        (
            'Flavor "big" does not contain the requested level',
            "KueueFlavorRefused",
            "the topology of big does not have the level",
        ),
        ("flavor big not found", "KueueFlavorRefused", "big does not exist (ResourceFlavor)"),
    ],
)
def test_words_of_all_releases_have_their_answers(message: str, code: str, words: str) -> None:
    diagnosis = hold(MAIN + message)
    assert get_code(diagnosis) == code
    assert words in diagnosis.sentence.en


def test_reasons_of_flavors_are_written_in_chinese_too() -> None:
    diagnosis = hold(MAIN + "untolerated taint {spot true NoSchedule <nil>} in flavor big")
    assert "big 有污点 spot=true:NoSchedule" in diagnosis.sentence.zh


def test_a_workload_that_another_one_overtook_is_tried_again() -> None:
    diagnosis = hold("Workload no longer fits after processing another workload")
    assert get_code(diagnosis) == "KueueOvertaken"
    assert diagnosis.obstacle
    assert diagnosis.obstacle.who_acts[0] == "wait"


def test_the_wait_for_ready_pods_of_others_has_its_words_in_every_release() -> None:
    diagnosis = hold("waiting for all admitted workloads to be in PodsReady condition", reason="Waiting")
    assert get_code(diagnosis) == "KueueWaitsForReady"


def test_a_preemption_that_names_no_queue_is_for_another_workload() -> None:
    workload = a_workload("Pending", MAIN + WAITS.format("nvidia.com/gpu", "big"))
    workload["status"]["conditions"].append(
        {
            "type": "Preempted", "status": "True", "reason": "InCohortReclamation",
            "message": "Preempted to accommodate a workload (UID: u-1) due to reclamation within the cohort",
            "lastTransitionTime": "2026-11-24T08:10:00Z",
        }
    )  # fmt: skip
    diagnosis = diagnose_case(a_pod(spec=GATE), workload, *list_queues("24"))
    assert get_code(diagnosis) == "KueuePreempted"
    assert "at 08:10:00 UTC for another workload (its queue took back quota" in diagnosis.sentence.en
