"""Events as front ends and consoles show them: without a reason, with a time of their own, with fewer columns."""

import pytest

from ingest.cases.answers import diagnose_pods, explain_pod
from ingest.cases.read_case import list_pod_names, read_case_text
from schemas.answers.diagnosis import Diagnosis

SPAWNED = """\
Event log
Server requested
2024-05-06T07:00:00.125000Z [Warning] 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.
2024-05-06T07:00:02Z [Normal] pod triggered scale-up: [{gpu-a10 1->2 (max: 4)}]
"""


def diagnose_text(text: str) -> Diagnosis:
    case = read_case_text(text)
    (answer,) = diagnose_pods(case, list_pod_names(case))
    return answer.diagnosis


def test_a_front_end_says_that_the_pod_was_placed_in_the_end() -> None:
    placed = "2024-05-06T07:04:09.5Z [Normal] Successfully assigned hub/jupyter-ana to gpu-a10-2\n"
    diagnosis = diagnose_text(SPAWNED + placed)
    assert (diagnosis.namespace, diagnosis.name, diagnosis.state) == ("hub", "jupyter-ana", "placed")
    assert "gpu-a10-2" in diagnosis.sentence.en


def test_rows_with_a_time_are_of_that_time() -> None:
    diagnosis = diagnose_text(SPAWNED)
    assert diagnosis.at == "2024-05-06T07:00:02.000000Z"
    assert diagnosis.timeline[0].at == "2024-05-06T07:00:00.000000Z"
    assert diagnosis.obstacle is not None
    assert diagnosis.obstacle.code == "AutoscalerAdds"


def test_karpenters_word_to_a_front_end_names_the_node_that_is_coming() -> None:
    diagnosis = diagnose_text(
        "2024-05-06T07:00:00Z [Warning] 0/3 nodes are available: 3 node(s) had untolerated taint {a: b}.\n"
        "2024-05-06T07:00:01Z [Normal] Pod should schedule on: nodeclaim/h100-x7k2p\n"
    )
    assert diagnosis.obstacle is not None
    assert diagnosis.obstacle.code == "AutoscalerAdds"
    assert "h100-x7k2p" in diagnosis.sentence.en


@pytest.mark.parametrize(
    "words",
    [
        "creating instance, with fleet error(s), UnfulfillableCapacity: Unable to fulfill your request.",
        "launching nodeclaim, creating instance, with fleet error(s), InsufficientInstanceCapacity: We do not have it.",
    ],
)
def test_a_node_that_the_cloud_refused_comes_before_the_nodes_that_there_are(words: str) -> None:
    diagnosis = diagnose_text(
        "2024-05-06T07:00:00Z [Warning] 0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.\n"
        f"2024-05-06T07:00:01Z [Normal] Pod should schedule on: nodeclaim/h100-x7k2p\n\nThe claim shows:\n\n{words}\n"
    )
    assert diagnosis.obstacle is not None
    assert diagnosis.obstacle.code == "AutoscalerFailed"
    assert words[:50] in diagnosis.sentence.en
    assert [obstacle.code for obstacle in diagnosis.other_obstacles] == ["AffinityMismatch"]


def test_a_console_shows_the_reporter_behind_the_words() -> None:
    diagnosis = diagnose_text("FilteringFailed    2 nodes CardInsufficientMemory(gpu-1,gpu-2)    hami-scheduler\n")
    assert diagnosis.obstacle is not None
    assert diagnosis.obstacle.code == "CardInsufficientMemory"
    assert diagnosis.obstacle.nodes == ["gpu-1", "gpu-2"]


def test_a_number_behind_a_reason_is_no_age_of_the_row() -> None:
    diagnosis = diagnose_text("FailedScheduling 4 nodes CardNotHealth(a,b,c,d)\n")
    assert diagnosis.obstacle is not None
    assert diagnosis.obstacle.code == "CardNotHealth"


def test_a_count_with_a_space_before_its_total_counts_nodes() -> None:
    diagnosis = diagnose_text(
        "it says `0 /7 nodes are available: 3 Insufficient amd.com/gpu, 4 node(s) were unschedulable.`"
    )
    assert diagnosis.sentence.en.startswith("3 of 7 nodes")
    assert "4 of 7 nodes" in diagnosis.other_obstacles[0].sentence.en


def test_kais_gang_has_nodes_for_some_of_its_pods() -> None:
    diagnosis = diagnose_text(
        "Events:\n"
        "  Warning  Unschedulable  5s  kai-scheduler  Resources were found for 6 pods while 8 are required for gang "
        "scheduling. Additional pods cannot be scheduled due to: no nodes with enough resources were found: "
        "3 node(s) didn't have enough resources: GPUs.\n"
    )
    assert diagnosis.obstacle is not None
    assert diagnosis.obstacle.code == "GangTooLarge"
    assert "6 of the 8 pods" in diagnosis.sentence.en
    # The three nodes are those that the seventh pod does not fit, not all nodes of the cluster.
    assert "3 of 3" not in diagnosis.sentence.en
    assert "3 node(s)" in diagnosis.sentence.en


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (
            "topology_hints.go:61] [devicemanager] {words} for 'nvidia.com/gpu': requested: 2, available: 1",
            "pod",
        ),
        (
            'topology_hints.go:187] "{words}" resource="nvidia.com/gpu" request=2 available=1',
            "pod",
        ),
        (
            'topology_hints.go:67] "{words}" resourceName="nvidia.com/gpu" pod="nlp/bert-0" request=2 available=1',
            "bert-0",
        ),
    ],
    ids=["up to 1.20", "since 1.21", "with its pod"],
)
def test_a_kubelet_that_aligns_devices_finds_too_few(line: str, name: str) -> None:
    words = "Unable to generate topology hints: requested number of devices unavailable"
    written = f"E0203 04:05:06.000001    911 {line.format(words=words)}"
    diagnosis = diagnose_text(f"The pod failed with a topology affinity error. The kubelet writes:\n{written}\n")
    assert (diagnosis.name, diagnosis.state) == (name, "rejected")
    assert "2 of nvidia.com/gpu asked, 1 available" in diagnosis.sentence.en


def test_a_node_without_a_name_and_without_pods_is_left_open() -> None:
    text = (
        "  Warning  FailedScheduling  1s  default-scheduler  0/2 nodes are available: 2 Insufficient amd.com/gpu.\n"
        "\noc describe node | egrep 'Allocatable|gpu'\nAllocatable:\n amd.com/gpu:  4\n\napiVersion: v1\nkind: Pod\n"
        "metadata:\n  name: bert-0\nspec:\n  containers:\n  - name: main\n    resources:\n      limits:\n"
        "        amd.com/gpu: 1\n"
    )
    diagnosis = explain_pod(read_case_text(text), "default/bert-0").diagnosis
    assert diagnosis.sentence.en.startswith("2 of 2 nodes")
    assert not [node for node in diagnosis.nodes or () if node.status == "passed"]
    assert diagnosis.comparison is not None
    assert "what was read leaves the verdict open" in diagnosis.comparison.text.en


def test_a_line_of_prose_that_begins_with_a_quoted_word_has_its_quoted_row() -> None:
    diagnosis = diagnose_text(
        "`bert-0` has been Pending for an hour or so and `kubectl describe` shows: ` Warning  FailedScheduling  77s  "
        "volcano  0/2 nodes are unavailable: 2 Insufficient amd.com/gpu.`\n"
    )
    assert diagnosis.sentence.en.startswith("2 of 2 nodes")


def test_a_console_lists_the_obstacles_of_one_pod_one_below_the_other() -> None:
    diagnosis = diagnose_text(
        "PodUnschedulable\nCannot schedule pods: Insufficient nvidia.com/gpu.\nPodUnschedulable\n"
        "Cannot schedule pods: node(s) had untolerated taint {pool: gpu}.\n\nWhat can I do?\n"
    )
    assert diagnosis.obstacle is not None
    assert diagnosis.obstacle.code == "NodesUncounted"
    assert "Insufficient nvidia.com/gpu, node(s) had untolerated taint {pool: gpu}" in diagnosis.sentence.en


def test_the_same_code_of_a_node_twice_is_one_reason() -> None:
    row = "Warning  FilteringFailed  9s  hami-scheduler  1 nodes CardNotHealth(gpu-1)\n"
    text = f"Events:\n  {row}\nkubectl describe says: `{row.strip()}`\n"
    nodes = explain_pod(read_case_text(text), "default/pod").diagnosis.nodes
    assert [container.reason for node in nodes or [] for container in node.containers] == ["CardNotHealth"]


@pytest.mark.parametrize(
    "ends",
    [
        "no instance type satisfied resources {resources} and requirements {types} ({few})",
        "{few}, requirements={types}, resources={resources}",
    ],
    ids=["up to 1.0", "since 1.1"],
)
def test_a_pool_without_enough_devices_names_them_and_its_machines(ends: str) -> None:
    types = "node.kubernetes.io/instance-type In [p4d.24xlarge p5.48xlarge]"
    resources = '{"cpu":"200m","nvidia.com/gpu":"16"}'
    words = ends.format(types=types, resources=resources, few="no instance type has enough resources")
    diagnosis = diagnose_text(
        f'Warning  FailedScheduling  9s  karpenter  Failed to schedule pod, incompatible with nodepool "big", {words}\n'
    )
    assert "NodePool big has enough resources" in diagnosis.sentence.en
    assert "a node needs 16 nvidia.com/gpu, of the allowed kinds p4d.24xlarge, p5.48xlarge" in diagnosis.sentence.en
