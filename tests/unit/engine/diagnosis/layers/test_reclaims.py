"""Places that schedulers of queues took from a pod, by the events of KAI, Volcano and YuniKorn.

Recorded are KAI's reclaim with both queues' shares (a public run of 2026-08, other names) and Volcano's two actions.
KAI's other actions are built from its message builders (``pkg/scheduler/api/eviction_info``), YuniKorn's from
yunikorn-core (``pkg/scheduler/objects/preemption.go``).
"""

from schemas.answers.diagnosis import Diagnosis
from schemas.json_types import Json
from tests.support.builders.layer_objects import a_pod, an_event, diagnose_case, get_code

OF_QUEUE = (
    " {} uses <GPU: {}, CPU: 0 (cores), memory: 0 (GB)> with a quota of <GPU: 1, CPU: 0 (cores), memory: 0 (GB)>, "
    "fair-share of <GPU: 1, CPU: 0 (cores), memory: 0 (GB)> and queue priority of <100>."
)
SHARES = OF_QUEUE.format("Batch Eval", 2) + OF_QUEUE.format("Inference Prod", 0)
RECLAIMED = f"Pod lab/job-0 was preempted by workload prod/pg-claim-2.{SHARES}"


def evict(note: str, *, group: str = "pg-1") -> Json:
    return an_event("Evict", note, pod=group, kind="PodGroup", reporter="kai-scheduler", type="Normal")


def a_victim(scheduler: str = "kai-scheduler") -> Json:
    return a_pod(
        spec={"schedulerName": scheduler, "nodeName": "gpu-1"}, metadata={"deletionTimestamp": "2026-11-24T08:05:00Z"}
    )


def get_reclaim(diagnosis: Diagnosis) -> str:
    assert (diagnosis.state, get_code(diagnosis)) == ("rejected", "ReclaimedByScheduler")
    return diagnosis.sentence.en


def test_kais_eviction_stands_on_the_group_and_names_the_winner_and_both_shares() -> None:
    sentence = get_reclaim(diagnose_case(a_victim(), evict(RECLAIMED)))
    assert "took the pod's place on node gpu-1 for workload prod/pg-claim-2 of another queue (reclaim)" in sentence
    assert "queue Batch Eval uses 2 GPUs, with a quota of 1 and a fair share of 1" in sentence
    assert "queue Inference Prod uses 0 GPUs, with a quota of 1 and a fair share of 1" in sentence


def test_a_pod_that_is_gone_is_found_by_the_event_on_its_group() -> None:
    assert "took the pod's place for workload prod/pg-claim-2" in get_reclaim(diagnose_case(evict(RECLAIMED)))
    other = evict(RECLAIMED.replace("lab/job-0", "lab/job-1"))
    assert diagnose_case(other).obstacle is None


def test_each_of_kais_actions_is_named() -> None:
    prefix = "Pod lab/job-0 was preempted "
    actions = {
        f"{prefix}by higher priority workload lab/pg-high": "for workload lab/pg-high, whose priority is higher",
        f"{prefix}and rescheduled due to bin packing (resource consolidation) procedure": "to place it on another node",
        "Workload doesn't meet the minimum required number of pods (4), evicting remaining pod: lab/job-0": (
            "because its group has fewer pods left than it needs"
        ),
    }
    for note, words in actions.items():
        assert words in get_reclaim(diagnose_case(a_victim(), evict(note)))


def test_volcanos_actions_are_named_without_a_winner() -> None:
    for action, words in {"reclaim": "for another queue (reclaim)", "preempt": "for a job of higher priority"}.items():
        event = an_event("Evict", f"Pod is evicted, because of {action}", reporter="volcano")
        assert words in get_reclaim(diagnose_case(a_victim("volcano"), event))


def test_yunikorn_names_the_application_and_its_queue() -> None:
    note = "Preempted by 7d1e from application app-2 in root.prod"
    event = an_event("Informational", note, reporter="yunikorn", type="Normal")
    assert "for application app-2 of queue root.prod" in get_reclaim(diagnose_case(a_victim("yunikorn"), event))
