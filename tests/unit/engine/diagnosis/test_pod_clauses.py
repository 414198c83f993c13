"""Clauses about the pod itself next to what its scheduler says."""

import pytest

from engine.diagnosis.facts import DiagnosisFacts, Evidence, PodOnCluster
from engine.diagnosis.outcome import FoundObstacle
from engine.diagnosis.pod_clauses import add_pod_clauses
from tests.support.builders.layer_objects import NOW, a_pod, an_event, diagnose_case, get_code

PRIVILEGED = {"name": "main", "securityContext": {"privileged": True}}


@pytest.mark.parametrize(("container", "is_named"), [(PRIVILEGED, True), ({"name": "main"}, False)])
def test_a_privileged_container_explains_that_hamis_webhook_passed_over_the_pod(
    container: dict[str, object], is_named: bool
) -> None:
    pod = a_pod(spec={"schedulerName": "default-scheduler", "containers": [container]})
    event = an_event(
        "FailedScheduling", "0/2 nodes are available: 2 Insufficient nvidia.com/gpucores.", reporter="default-scheduler"
    )
    diagnosis = diagnose_case(pod, event)
    assert get_code(diagnosis) == "ResourceOfExtender"
    assert ("its container main is privileged" in diagnosis.sentence.en) == is_named
    assert ("容器 main 是特权容器" in diagnosis.sentence.zh) == is_named


@pytest.mark.parametrize(
    ("key", "code", "is_named"),
    [
        ("nvidia.com/gpucores", "CardInsufficientCore", True),
        ("hygon.com/dcumem", "CardInsufficientMemory", True),
        ("example.com/gpumem", "CardInsufficientMemory", False),
        ("nvidia.com/gpumem", "TaintNotTolerated", False),
    ],
)
def test_an_amount_as_annotation_counts_for_nothing(key: str, code: str, is_named: bool) -> None:
    pod = PodOnCluster(Evidence("pod", "p"), annotations={key: "20"})
    obstacle = add_pod_clauses(FoundObstacle(code), DiagnosisFacts("default", "lab", "job-0", NOW, pod=pod))
    assert obstacle.clauses == (["annotated"] if is_named else ())
    if is_named:
        assert str(key) in str(obstacle.words["annotated"])


@pytest.mark.parametrize(
    ("policy", "code", "is_named"),
    [
        ("Never", "ResourceInUse", True),
        ("PreemptLowerPriority", "ResourceInUse", False),
        ("Never", "TaintNotTolerated", False),
    ],
)
def test_a_pod_that_never_preempts_waits_for_the_ends_of_others(policy: str, code: str, is_named: bool) -> None:
    pod = PodOnCluster(Evidence("pod", "p"), spec={"preemptionPolicy": policy})
    obstacle = add_pod_clauses(FoundObstacle(code), DiagnosisFacts("default", "lab", "job-0", NOW, pod=pod))
    assert obstacle.clauses == (["never_preempts"] if is_named else ())
