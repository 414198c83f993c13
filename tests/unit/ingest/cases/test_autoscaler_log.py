"""Lines of the cluster autoscaler's log that are about a pod, in the words of its versions."""

import pytest

from ingest.cases.answers import diagnose_pods
from ingest.cases.read_case import list_pod_names, read_case_text

OLD = """\
I0605 11:27:29.865576       1 scale_up.go:54] Pod bio/fold-0 is unschedulable
I0605 11:27:30.005163       1 scale_up.go:146] Scale-up predicate failed: PodFitsResources predicate mismatch, cannot \
put bio/fold-0 on template-node-for-gpus.lab.local-5829202798403814789, reason: Insufficient amd.com/gpu
I0605 11:27:30.005253       1 scale_up.go:175] No pod can fit to gpus.lab.local
"""
EVENT = """\
I0605 11:27:30.008919       1 factory.go:33] Event(v1.ObjectReference{Kind:"Pod", Namespace:"bio", Name:"fold-0", \
UID:"3416d787", APIVersion:"v1", ResourceVersion:"12", FieldPath:""}): type: 'Normal' reason: 'NotTriggerScaleUp' \
pod didn't trigger scale-up (it wouldn't fit if a new node is added)
"""
PLACEABLE = """\
I0223 15:23:21.970141       1 filter_out_schedulable.go:118] Pod bio.fold-0 marked as unschedulable can be scheduled \
on node rack-7.lab.local (based on hinting). Ignoring in scale up.
"""


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (OLD, "AutoscalerCannot", "a new node of gpus.lab.local (Insufficient amd.com/gpu) would be refused"),
        (EVENT, "AutoscalerCannot", "it wouldn't fit if a new node is added"),
        (OLD + EVENT, "AutoscalerCannot", "gpus.lab.local (Insufficient amd.com/gpu)"),
        (PLACEABLE, "AutoscalerSeesRoom", "by its own simulation the pod fits on node rack-7.lab.local."),
    ],
    ids=["up to 1.12", "event", "both", "room"],
)
def test_a_line_about_a_pod_is_the_autoscalers_word(text: str, code: str, words: str) -> None:
    case = read_case_text(text)
    (answer,) = diagnose_pods(case, list_pod_names(case))
    obstacle = answer.diagnosis.obstacle
    assert obstacle
    assert (f"{answer.diagnosis.namespace}/{answer.diagnosis.name}", obstacle.code) == ("bio/fold-0", code)
    assert words in obstacle.sentence.en
