"""Ranking of changes that would help waiting pods: the one that admits most of them comes first."""

from typing import Any

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.decision import SchedulingPolicy
from engine.hami.vendors import ONLY_NVIDIA
from engine.suggestions.admission import AdmissionResult, AdmittingChange, PendingPod, rank_changes
from engine.suggestions.ask import Ask
from engine.suggestions.trial import Trial
from tests.support.builders.nodes_to_judge import a_cluster, a_device, a_node, a_pod, a_quota, ask_for


def list_waiting(count: int, **annotations: str) -> list[Ask]:
    """List pods that each request 3000 MiB of a device."""
    marks = {f"nvidia.com/{name.replace('_', '-')}": text for name, text in annotations.items()}
    pods = [
        a_pod(ask_for(gpumem=3000), uid=f"uid-{number}-{annotations}", annotations=marks) for number in range(count)
    ]
    return [Ask.from_pod(pod, ONLY_NVIDIA) for pod in pods]


def build_device(uuid: str, **fields: Any) -> dict[str, Any]:
    """Build a device with memory for one of these pods."""
    return a_device(uuid, devmem=4000, **fields)


def rank_admissions(columns: ClusterColumns, pending: list[Ask], *offered: str) -> AdmissionResult:
    """Rank the changes with all nodes offered, or these."""
    pods = [PendingPod(ask, offered or columns.node_names) for ask in pending]
    return rank_changes(Trial(columns, columns.node_names, SchedulingPolicy()), pods)


def list_admitting(columns: ClusterColumns, pending: list[Ask]) -> list[AdmittingChange]:
    return rank_admissions(columns, pending).changes


def test_a_node_admits_as_many_pods_as_it_has_devices_to_uncordon() -> None:
    one_node = a_node("one", [build_device("1-0")], device_cordon="1-0")
    two = a_node("two", [build_device("2-0"), build_device("2-1")], device_cordon="2-0,2-1")
    sick = a_node("sick", [build_device("3-0", health=False)])
    assert list_admitting(a_cluster(one_node, two, sick), list_waiting(3)) == [
        AdmittingChange("cordon", "two", (0, 1)),
        AdmittingChange("cordon", "one", (0,)),
        AdmittingChange("health", "sick", (0,)),
    ]


def test_pods_that_fit_as_it_is_are_not_counted() -> None:
    free = a_node("free", [build_device("1-0")])
    cordoned = a_node("kept", [build_device("2-0"), build_device("2-1")], device_cordon="2-0,2-1")
    ranking = rank_admissions(a_cluster(free, cordoned), list_waiting(3))
    assert ranking == AdmissionResult((0,), [AdmittingChange("cordon", "kept", (1, 2))])


def test_an_annotation_is_given_up_by_every_pod_that_has_it() -> None:
    columns = a_cluster(a_node("one", [build_device("1-0"), build_device("1-1")]))
    assert list_admitting(columns, list_waiting(2, use_gputype="H100")) == [AdmittingChange("type", "", (0, 1))]


def test_nodes_that_were_not_offered_are_a_change_of_their_own() -> None:
    full = a_node("full", [build_device("1-0", health=False)])
    free = a_node("free", [build_device("2-0"), build_device("2-1")], device_cordon="2-1")
    # To uncordon a device helps nobody to whom the node is not offered.
    assert rank_admissions(a_cluster(full, free), list_waiting(3), "full").changes == [
        AdmittingChange("health", "full", (0,)),
        AdmittingChange("nodes", "", (0,)),
    ]


def test_a_quota_that_holds_pods_back_is_named_by_its_namespace() -> None:
    columns = a_cluster(a_node("one", [build_device("1-0"), build_device("1-1")]))
    columns.apply_quota(a_quota(gpumem=1000))
    assert list_admitting(columns, list_waiting(2)) == [AdmittingChange("quota", "default", (0, 1))]


def test_nothing_that_was_tried_is_left_behind() -> None:
    columns = a_cluster(a_node("one", [build_device("1-0")], device_cordon="1-0"), a_node("two", [build_device("2-0")]))
    before = {name: column.tolist() for name, column in columns.devices.column.items()}
    list_admitting(columns, list_waiting(3))
    assert {name: column.tolist() for name, column in columns.devices.column.items()} == before
    assert columns.list_pod_uses() == []
    assert columns.quotas.used == {}
