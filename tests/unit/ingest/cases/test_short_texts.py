"""Answers from parts of logs and tables of events, without any object."""

import pytest

from engine.cases.unmade_causes import list_unmade
from engine.cases.workloads import CaseWorkload
from ingest.cases.answers import explain_pod, list_log_notes, select_pods
from ingest.cases.read_case import read_case_text
from ingest.cases.workload_answers import diagnose_workload
from schemas.answers.diagnosis import Diagnosis

OLD_HEAD = 'I0312 10:00:00.000000       1 score.go:90] "{words}" pod="ml/old-0"{more}'


def explain(text: str, pod: str) -> Diagnosis:
    case = read_case_text(text)
    (name,) = select_pods(case, pod)
    return explain_pod(case, name).diagnosis


def get_code(diagnosis: Diagnosis) -> str:
    return diagnosis.obstacle.code if diagnosis.obstacle else ""


def an_old_log(*lines: str) -> str:
    """A log of HAMi up to v2.5, whose node lines have no reason and whose device lines have no node."""
    start = (
        'I0312 09:59:59.000000       1 scheduler.go:452] "begin schedule filter" pod="old-0" uuid="u" namespaces="ml"'
    )
    requests = (
        'I0312 09:59:59.100000       1 pod.go:44] "collect requestreqs" '
        'counts=[{"NVIDIA":{"Nums":3,"Type":"NVIDIA","Memreq":5000,"MemPercentagereq":101,"Coresreq":0}}]'
    )
    end = "I0312 10:00:01.000000       1 scheduler.go:499] All node scores do not meet for pod old-0"
    return "\n".join((start, requests, *lines, end)) + "\n"


def write_device(uuid: str, words: str) -> str:
    return OLD_HEAD.format(words=words, more=f' device index=0 device="{uuid}"')


def write_node(name: str) -> str:
    return OLD_HEAD.format(words="calcScore:node not fit pod", more=f' node="{name}"')


MEMORY, CORES = "card Insufficient remaining memory", "card Insufficient remaining cores"


def test_devices_that_all_lack_the_same_explain_nodes_without_a_reason() -> None:
    log = an_old_log(write_device("GPU-q0", MEMORY), write_node("q"), write_device("GPU-r0", MEMORY), write_node("r"))
    diagnosis = explain(log, "ml/old-0")
    assert get_code(diagnosis) == "CardInsufficientMemory"
    assert diagnosis.sentence.en.startswith("2 of 2 nodes lack memory")


def test_devices_that_lack_different_things_explain_none_of_several_nodes() -> None:
    log = an_old_log(write_device("GPU-q0", MEMORY), write_node("q"), write_device("GPU-r0", CORES), write_node("r"))
    assert get_code(explain(log, "ml/old-0")) == "NodeUnfitPod"


def test_lines_about_too_few_devices_explain_as_many_nodes() -> None:
    short = OLD_HEAD.format(
        words="request devices nums cannot exceed the total number of devices on the node.",
        more=" request devices nums=3 node device nums=2",
    )
    diagnosis = explain(an_old_log(short, write_node("q")), "ml/old-0")
    assert get_code(diagnosis) == "NodeInsufficientDevice"
    assert diagnosis.other_obstacles == []
    assert [node.name for node in diagnosis.nodes or ()] == ["q"]


def test_a_crash_after_some_nodes_were_judged_is_the_obstacle() -> None:
    log = (
        'I0312 10:00:00.000000       1 scheduler.go:493] "Starting schedule filter process" pod="new-0" uuid="u" '
        'namespace="ml"\n'
        'I0312 10:00:00.100000       1 score.go:275] "NodeUnfitPod" pod="ml/new-0" node="q" '
        'reason="1/1 CardInsufficientMemory"\n'
        "panic: runtime error: integer divide by zero\n\ngoroutine 7 [running]:\n"
    )
    diagnosis = explain(log, "ml/new-0")
    assert get_code(diagnosis) == "SchedulerCrashed"
    assert "integer divide by zero" in diagnosis.sentence.en
    assert list_log_notes(read_case_text(log))


TABLE = """LAST SEEN   TYPE      REASON      OBJECT      MESSAGE
5m          Normal    Scheduled   pod/np-3    Successfully assigned default/np-3 to edge-4
{row}
"""


@pytest.mark.parametrize(
    ("reason", "note", "code"),
    [
        (
            "UnexpectedAdmissionError",
            "Allocate failed due to rpc error: code = Unknown desc = card 5 has no profile left, which is unexpected",
            "KubeletPluginFailed",
        ),
        ("TopologyAffinityError", "Resources cannot be allocated with Topology locality", "KubeletTopology"),
        (
            "OutOfamd.com/gpu",
            "Node didn't have enough resource: amd.com/gpu, requested: 2, used: 0, capacity: 0",
            "KubeletOffersNone",
        ),
    ],
)
def test_a_pod_that_its_node_refused_is_not_placed(reason: str, note: str, code: str) -> None:
    row = f"5m          Warning   {reason:11} pod/np-3    {note}"
    header = TABLE.partition("\n")[0]
    # kubectl widens a column to its longest text.
    wide = TABLE.replace(header, header.replace("REASON      ", f"{'REASON':{max(len(reason), 11) + 1}}"))
    wide = wide.replace("Scheduled   ", f"{'Scheduled':{max(len(reason), 11) + 1}}")
    diagnosis = explain(wide.format(row=row), "default/np-3")
    assert (diagnosis.state, get_code(diagnosis)) == ("rejected", code)
    assert "edge-4" in diagnosis.sentence.en


def test_an_event_without_counts_does_not_hide_the_counts_of_the_next_one() -> None:
    table = """LAST SEEN   TYPE      REASON             OBJECT      MESSAGE
61s         Warning   FilteringFailed    pod/old-1   no available node, all node scores do not meet
60s         Warning   FailedScheduling   pod/old-1   0/3 nodes are available: 3 node unregistered.
"""
    diagnosis = explain(table, "default/old-1")
    assert get_code(diagnosis) == "node unregistered"
    only = "\n".join(table.splitlines()[:2])
    assert get_code(explain(only, "default/old-1")) == "FilteringFailed"


@pytest.mark.parametrize(
    ("note", "reasons"),
    [
        (
            (
                'Failed to schedule pod, incompatible with nodepool "a", daemonset overhead={"cpu":"1"}, no instance '
                "type has enough resources, requirements=x In [y]; all available instance types exceed limits for "
                "nodepool (NodePool=b)"
            ),
            "NodePool b has reached its limits (`spec.limits`), no instance type of NodePool a has enough resources",
        ),
        (
            'Failed to schedule pod, incompatible with nodepool "a", did not tolerate team=blue:NoSchedule',
            "the pod does not tolerate the taint team=blue:NoSchedule of NodePool a",
        ),
        (
            (
                'Failed to schedule pod, incompatible with nodepool "a", no instance type satisfied resources '
                '{"amd.com/gpu":"1"} and requirements kind In [x] (no instance type has the required offering); '
                'incompatible with nodepool "b", no instance type which met the scheduling requirements and had '
                "enough resources, had a required offering, requirements=kind In [y]"
            ),
            (
                "every instance type of NodePool a that would do is not offered in the zones and capacity types "
                "allowed, or is unavailable there now, every instance type of NodePool b that would do is not offered "
                "in the zones and capacity types allowed, or is unavailable there now"
            ),
        ),
        (
            (
                'incompatible with nodepool "a", no instance type which met the scheduling requirements and the '
                "required offering had the required resources"
            ),
            "no instance type of NodePool a has enough resources",
        ),
        (
            'incompatible with nodepool "a", incompatible requirements, label "pool" does not have known values',
            "NodePool a does not offer the label that the pod's selector or affinity names: pool",
        ),
        (
            (
                'Failed to schedule pod, incompatible with nodepool "arm", daemonset overhead={"cpu":"1"}, '
                "incompatible requirements, key kubernetes.io/arch, kubernetes.io/arch In [amd64] not in "
                "kubernetes.io/arch In [arm64]; incompatible requirements, key zone, zone In [a] not in zone In [b]; "
                'incompatible with nodepool "gpu", daemonset overhead={"cpu":"1"}, '
                "did not tolerate taint (taint=gpu:NoSchedule)"
            ),
            (
                "the pod does not tolerate the taint gpu:NoSchedule of NodePool gpu, "
                "NodePool arm does not offer the label that the pod's selector or affinity names: kubernetes.io/arch "
                "and NodePool arm does not offer the label that the pod's selector or affinity names: zone"
            ),
        ),
    ],
)
def test_karpenters_words_are_divided_by_node_pool(note: str, reasons: str) -> None:
    diagnosis = explain(f"  Warning  FailedScheduling  2m   karpenter   {note}\n", "pod")
    assert diagnosis.sentence.en == f"Karpenter adds no node for the pod: {reasons}."


def test_a_manifest_is_not_an_object_of_a_cluster() -> None:
    manifest = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: x}]}
"""

    def find_code(text: str) -> str:
        case = read_case_text(text)
        (key,) = list_unmade(case.objects)
        (group,) = diagnose_workload(case, key).groups
        return group.obstacle.code if group.obstacle else ""

    assert find_code(manifest) == "NotFromCluster"
    stored = manifest.replace("{name: web}", "{name: web, uid: a1}", 1)
    assert find_code(stored + "status: {}\n") == "PodsNotMade"
    assert find_code(stored) == "PodsNotRead"
    case = read_case_text(stored + "status: {replicas: 1}\n")
    (group,) = diagnose_workload(case, CaseWorkload("Deployment.apps", "default", "web")).groups
    assert group.obstacle
    assert group.obstacle.code == "PodsNotRead"


def test_the_node_of_a_failed_bind_keeps_its_domain() -> None:
    table = """LAST SEEN   TYPE      REASON         OBJECT      MESSAGE
21s         Warning   BindingError   pod/inf-2   Failed to bind pod lab/inf-2 to node n4.lab.example.com: no card
"""
    diagnosis = explain(table, "default/inf-2")
    assert diagnosis.sentence.en.startswith("Node n4.lab.example.com was chosen")
