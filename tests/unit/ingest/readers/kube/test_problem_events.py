"""Events about problems next to scheduling: whose are observed, and as what."""

import pytest

from ingest.readers.kube.problem_events import parse_problem_event
from schemas.events import PodObserved
from schemas.json_types import Json


def an_event(reporter: str, reason: str, kind: str = "Normal") -> Json:
    return {
        "regarding": {"kind": "Pod", "namespace": "lab", "name": "train-0", "uid": "u"},
        "reason": reason, "note": "pod didn't trigger scale-up: 1 max node group size reached", "type": kind,
        "reportingController": reporter, "eventTime": "2026-11-24T08:00:03.000000Z",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("reporter", "reason", "kind"),
    [
        ("cluster-autoscaler", "NotTriggerScaleUp", "Normal"),
        ("cluster-autoscaler", "FailedScaleUp", "Warning"),
        ("karpenter", "FailedScheduling", "Warning"),
    ],
)
def test_an_autoscaler_that_adds_no_node_is_a_problem_of_the_pod(reporter: str, reason: str, kind: str) -> None:
    observed = parse_problem_event(an_event(reporter, reason, kind), "default", lambda _: "")
    assert isinstance(observed, PodObserved)
    assert [(problem.reason, problem.reported_by) for problem in observed.problems] == [(reason, reporter)]
    assert observed.phase == ""


@pytest.mark.parametrize(
    ("reporter", "reason"),
    [
        ("cluster-autoscaler", "TriggeredScaleUp"),
        ("default-scheduler", "FailedScheduling"),
        ("me", "NotTriggerScaleUp"),
    ],
)
def test_other_words_are_no_problem_of_an_autoscaler(reporter: str, reason: str) -> None:
    assert parse_problem_event(an_event(reporter, reason), "default", lambda _: "") is None
