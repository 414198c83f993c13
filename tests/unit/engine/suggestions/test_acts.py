"""Acts of an administrator and pods whose end lets a pod in, with sums by hand."""

from typing import Any

import pytest

from engine.hami.vendors import ONLY_NVIDIA
from engine.suggestions.acts import list_nodes_to_empty
from engine.suggestions.ask import Ask
from tests.support.builders.changed_objects import Objects
from tests.support.builders.nodes_to_judge import a_device, a_node, a_pod, a_quota, a_running_pod, ask_for

Edits = list[tuple[str, str, str]]


def list_edits(objects: Objects, constraint: str) -> list[Edits]:
    """List the edits of the suggestions about one constraint only."""
    return [
        [(edit.where, edit.before, edit.after) for edit in suggestion.edits]
        for suggestion in objects.list_suggestions()
        if {edit.constraint for edit in suggestion.edits} == {constraint}
    ]


MEMORY, CORES = "nvidia.com/gpumem", "nvidia.com/gpucores"


@pytest.mark.parametrize(
    ("apps", "init", "quota", "held", "edits"),
    [
        # Containers run next to each other: 3,000 + 4,000.
        ([(3000, 0), (4000, 0)], [], {"gpumem": 5000}, 0, [(MEMORY, "5000", "7000")]),
        # Init containers run before them, one after the other: the largest counts.
        ([(3000, 0)], [(8000, 0), (6000, 0)], {"gpumem": 5000}, 0, [(MEMORY, "5000", "8000")]),
        ([(9000, 0)], [(8000, 0)], {"gpumem": 5000}, 0, [(MEMORY, "5000", "9000")]),
        # What the namespace's pods hold is added.
        ([(3000, 0)], [], {"gpumem": 5000}, 4000, [(MEMORY, "5000", "7000")]),
        ([(1000, 60)], [], {"gpucores": 50}, 0, [(CORES, "50", "60")]),
        ([(3000, 60)], [], {"gpumem": 2000, "gpucores": 50}, 0, [(MEMORY, "2000", "3000"), (CORES, "50", "60")]),
        ([(3000, 50)], [], {"gpumem": 2000, "gpucores": 50}, 0, [(MEMORY, "2000", "3000")]),
    ],
)
def test_a_quota_is_raised_to_what_is_held_and_requested(
    apps: list[tuple[int, int]], init: list[tuple[int, int]], quota: Any, held: int, edits: Edits
) -> None:
    def build(containers: list[tuple[int, int]]) -> list[dict[str, Any]]:
        return [ask_for(1, gpumem=memory, gpucores=cores) for memory, cores in containers]

    objects = Objects([a_node("n0", [a_device("GPU-0"), a_device("GPU-1")])], a_pod(*build(apps), init=build(init)))
    objects.quotas = [a_quota(**quota)]
    if held:
        objects.running = {"u": a_running_pod(f"GPU-0,NVIDIA,{held},0:;", "n0", "u")}
    assert list_edits(objects, "quota") == [edits]


def test_each_of_several_quotas_is_raised() -> None:
    objects = Objects([a_node("n0", [a_device()])], a_pod(ask_for(1, gpumem=5000)))
    objects.quotas = [a_quota("a", gpumem=3000), a_quota("b", gpumem=3000)]
    ((first, second),) = list_edits(objects, "quota")
    assert first == second == (MEMORY, "3000", "5000")


def test_as_few_devices_as_needed_are_healed_or_uncordoned() -> None:
    sick = [a_device(f"GPU-{number}", health=False) for number in range(3)]
    objects = Objects([a_node("n0", sick)], a_pod(ask_for(2, gpumem=1000)))
    ((first, second),) = list_edits(objects, "health")
    assert len({first[0], second[0]} & {"GPU-0", "GPU-1", "GPU-2"}) == 2
    cordoned = Objects(
        [a_node("n0", [a_device("GPU-0"), a_device("GPU-1"), a_device("GPU-2")], device_cordon="GPU-0,GPU-1")],
        a_pod(ask_for(2, gpumem=1000)),
    )
    ((edit,),) = list_edits(cordoned, "cordon")
    assert edit[0] in ("GPU-0", "GPU-1")


@pytest.mark.parametrize(
    ("holders", "request_mib", "ended"),
    [
        # Of pods of one node the fewest: the larger one alone is enough.
        ({"a": ("n0", 4_000), "b": ("n0", 16_000)}, 12_000, [("b", "16,000 MiB")]),
        ({"a": ("n0", 4_000), "b": ("n0", 16_000)}, 22_000, [("a", "4,000 MiB"), ("b", "16,000 MiB")]),
        # Of nodes with one pod each the one that holds less.
        ({"a": ("n0", 20_000), "b": ("n1", 18_000)}, 12_000, [("b", "18,000 MiB")]),
        # One pod of one node before two of another.
        ({"a": ("n0", 22_000), "b": ("n1", 9_000), "c": ("n1", 9_000)}, 20_000, [("a", "22,000 MiB")]),
    ],
)
def test_the_fewest_pods_of_one_node_end(
    holders: dict[str, tuple[str, int]], request_mib: int, ended: list[tuple[str, str]]
) -> None:
    names = sorted({node for node, _ in holders.values()})
    objects = Objects(
        [a_node(name, [a_device(f"GPU-{name}")]) for name in names], a_pod(ask_for(1, gpumem=request_mib))
    )
    objects.running = {
        uid: a_running_pod(f"GPU-{node},NVIDIA,{memory},5:;", node, uid) for uid, (node, memory) in holders.items()
    }
    (edits,) = list_edits(objects, "use")
    assert sorted((uid, before.partition(" and ")[0]) for uid, before, _ in edits) == ended


def test_what_a_pod_holds_is_described_with_its_devices() -> None:
    nodes = [a_node("n0", [a_device("GPU-0"), a_device("GPU-1")])]
    objects = Objects(nodes, a_pod(ask_for(1, gpumem=20_000)))
    objects.running = {"u": a_running_pod("GPU-0,NVIDIA,10000,10:GPU-1,NVIDIA,9000,20:;", "n0", "u")}
    assert list_edits(objects, "use") == [[("u", "19,000 MiB and 30 % cores on 2 devices of n0", "")]]


def test_nodes_to_empty_begin_with_the_least_memory_in_use() -> None:
    nodes = [a_node(name, [a_device(f"GPU-{name}")]) for name in ("n0", "n1", "n2")]
    nodes.append(a_node("small", [a_device("GPU-small", devmem=1000)]))
    objects = Objects(nodes, a_pod(ask_for(1, gpumem=20_000)))
    objects.running = {
        node: a_running_pod(f"GPU-{node},NVIDIA,{memory},5:;", node, node)
        for node, memory in (("n0", 9_000), ("n1", 6_000), ("n2", 9_000))
    }
    trial = objects.build_trial(objects.build_columns())
    assert list_nodes_to_empty(trial, Ask.from_pod(objects.pod, ONLY_NVIDIA)) == ["n1", "n0", "n2"]
