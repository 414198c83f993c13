"""Proof of suggestions: the objects are changed as suggested, and the scheduler decides about them again."""

from dataclasses import replace
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.fit.judge.fitting_nodes import Left
from engine.hami.vendors import ONLY_NVIDIA
from engine.suggestions.answer import write_sentence
from engine.suggestions.ask import Ask
from engine.suggestions.exclusion import find_excluding_constraints
from engine.suggestions.suggest import suggest
from engine.suggestions.suggestion import Edit
from tests.support.builders.changed_objects import Objects, clusters
from tests.support.builders.nodes_to_judge import a_device, a_node, a_pod, a_quota, a_running_pod, ask_for
from tests.support.stress import IS_STRESS, count_examples


def build_one_node(pod: dict[str, Any], *devices: dict[str, Any], **fields: str) -> Objects:
    return Objects([a_node("n0", list(devices) or [a_device()], **fields)], pod)


def list_edits(objects: Objects) -> list[list[tuple[str, str, str]]]:
    return [
        [(edit.where, edit.before, edit.after) for edit in suggestion.edits]
        for suggestion in objects.list_suggestions()
    ]


def test_a_pod_that_fits_needs_no_change() -> None:
    assert build_one_node(a_pod(ask_for(1, gpumem=1000))).list_suggestions() == []


def test_less_memory_is_what_the_emptiest_device_has_free() -> None:
    objects = build_one_node(a_pod(ask_for(1, gpumem=20000)))
    objects.running = {"u": a_running_pod("GPU-0,NVIDIA,14576,10:;", "n0", "u")}
    # 24576 MiB in all, 14576 of them held; or the pod that holds them ends.
    assert list_edits(objects) == [
        [("main: nvidia.com/gpumem", "20000", "10000")],
        [("u", "14,576 MiB and 10 % cores on 1 device of n0", "")],
    ]
    ends = objects.list_suggestions()[1]
    assert (
        write_sentence(ends, ends.edits).zh
        == "等待 u 结束，它占用 n0 上 1 个设备的 14,576 MiB 显存和 10 % 算力：之后可调度到 n0。"
    )


def test_each_thing_that_stands_in_the_way_alone_is_given_up_alone() -> None:
    pod = a_pod(ask_for(2, gpumem=1000), annotations={"nvidia.com/numa-bind": "true", "nvidia.com/use-gputype": "A30"})
    across = build_one_node(pod, a_device("GPU-0", numa=0), a_device("GPU-1", numa=1))
    assert list_edits(across) == [[("nvidia.com/numa-bind", "true", "")], [("main: nvidia.com/gpu", "2", "1")]]
    other = build_one_node(
        pod, a_device("GPU-0", type="NVIDIA T4", numa=0), a_device("GPU-1", type="NVIDIA T4", numa=0)
    )
    assert list_edits(other) == [[("nvidia.com/use-gputype", "A30", "")]]


def test_what_only_an_administrator_can_do_names_the_devices_and_the_quota() -> None:
    objects = build_one_node(a_pod(ask_for(1, gpumem=1000)), a_device("GPU-0"), device_cordon="GPU-0")
    (cordoned,) = objects.list_suggestions()
    assert ([edit.where for edit in cordoned.edits], cordoned.actor) == (["GPU-0"], "administrator")
    objects = build_one_node(a_pod(ask_for(1, gpumem=5000)))
    objects.quotas = [a_quota(gpumem=3000)]
    assert list_edits(objects) == [
        [("main: nvidia.com/gpumem", "5000", "3000")],
        [("nvidia.com/gpumem", "3000", "5000")],
    ]


def test_a_node_that_was_not_offered_is_named() -> None:
    objects = Objects([a_node("n0", [a_device("GPU-0", devmem=1000)]), a_node("n1")], a_pod(ask_for(1, gpumem=8000)))
    objects.offered = ("n0",)
    first, second = objects.list_suggestions()
    assert (first.edits[0].constraint, first.allocation.node, first.actor) == ("nodes", "n1", "you")
    assert second.edits[0].after == "1000"


def test_the_constraints_that_keep_a_pod_from_every_node_are_minimal() -> None:
    pod = a_pod(ask_for(1, gpumem=20000), annotations={"nvidia.com/use-gputype": "A30"})
    small, other = a_node("n0", [a_device("GPU-0", devmem=10000)]), a_node("n1", [a_device("GPU-1", type="NVIDIA T4")])
    objects = Objects([small, other], pod)
    # The one node refuses for memory, the other for its type; nothing else has a part in it.
    assert set(find_excluding_constraints(objects.build_trial(), Ask.from_pod(pod, ONLY_NVIDIA))) == {"memory", "type"}


def test_where_no_single_change_helps_several_amounts_are_lowered_as_little_as_will_do() -> None:
    full = a_running_pod("n0-0,NVIDIA,3000,70:;", "n0", "uid-0")
    pod = a_pod({**ask_for(gpumem=2000, gpucores=50), "name": "main"})
    objects = Objects([a_node("n0", [a_device("n0-0", devmem=4000)])], pod, {"uid-0": full})
    needed = [("main: nvidia.com/gpumem", "2000", "1000"), ("main: nvidia.com/gpucores", "50", "30")]
    assert list_edits(objects)[0] == needed


def test_a_constraint_that_excludes_every_node_by_itself_is_named_alone() -> None:
    pod = a_pod(ask_for(gpumem=9000), annotations={"nvidia.com/use-gputype": "H100"})
    objects = build_one_node(pod, a_device("n0-0", devmem=4000))
    # So would the memory alone; one of them is enough to say why nothing fits.
    assert find_excluding_constraints(objects.build_trial(), Ask.from_pod(pod, ONLY_NVIDIA)) == ["type"]


# Both amounts have to fall, the cores to none: then no container names cores any more.
NO_CORES_LEFT = Objects(
    [a_node("n0", [a_device("GPU-0", devmem=1000), a_device("GPU-1", devmem=1000)])],
    a_pod({**ask_for(gpumem=1, gpucores=0), "name": "c0"}, {**ask_for(gpumem=2, gpucores=30), "name": "c1"}),
    quotas=[a_quota(gpumem=2, gpucores=0)],
)


@given(clusters())
@example(NO_CORES_LEFT)
@settings(max_examples=10_000 if IS_STRESS else 13)
def test_after_the_changes_the_scheduler_places_the_pod_on_that_node(objects: Objects) -> None:
    before = objects.build_columns()
    suggestions = objects.list_suggestions()
    assert not suggestions or objects.decide() is None
    # Nodes that can't take the pod are left out beforehand; that changes no answer.
    ask = Ask.from_pod(objects.pod, ONLY_NVIDIA)
    assert (
        (objects.build_trial().decide(ask) is None)
        == (objects.decide() is None)
        == (not objects.build_trial().fits(ask))
    )
    for suggestion in suggestions:
        decision = objects.copy_with(suggestion.edits).decide()
        assert decision is not None, suggestion.edits
        assert decision.allocation == suggestion.allocation, suggestion.edits
    # Nothing that was tried is left behind.
    after = objects.build_columns()
    trial = objects.build_trial(after)
    suggest(trial, Ask.from_pod(objects.pod, ONLY_NVIDIA))
    for name in ("used_memory", "used_cores", "used_slots", "is_cordoned", "is_healthy"):
        assert after.devices[name].tolist() == before.devices[name].tolist()


@given(clusters(), st.sampled_from(["memory_mib", "cores"]))
@settings(max_examples=count_examples(13))
def test_with_more_than_the_devices_have_left_it_fits_nowhere(objects: Objects, amount: Left) -> None:
    ask, trial = Ask.from_pod(objects.pod, ONLY_NVIDIA), objects.build_trial()
    positions = ask.find_positions(amount)
    left = trial.find_max_left(ask.cap(amount, 1), amount, positions) if positions else None
    if left is None or (amount == "cores" and left >= 100):  # more than 100 % counts as 100
        return
    for more in (left + 1, 2 * left + 1):
        change: dict[str, Any] = {amount: more}
        requests = [
            replace(request, **change) if position in positions else request
            for position, request in enumerate(ask.requests)
        ]
        assert trial.decide(replace(ask, requests=tuple(requests))) is None


@given(clusters())
@settings(max_examples=count_examples(10))
def test_a_little_less_of_a_change_is_not_enough(objects: Objects) -> None:
    for suggestion in objects.list_suggestions():
        for edit in suggestion.edits:
            other_edits = [other for other in suggestion.edits if other != edit]
            # Without this one the pod fits nowhere: nothing is given up for nothing.
            assert objects.copy_with(other_edits).decide() is None, suggestion.edits
            lowered = [other for other in suggestion.edits if other.constraint in ("memory", "cores", "count")]
            if lowered == [edit] and int(edit.after) + 1 < int(edit.before):
                more = Edit(edit.constraint, edit.where, edit.before, str(int(edit.after) + 1))
                assert objects.copy_with([*other_edits, more]).decide() is None, suggestion.edits
