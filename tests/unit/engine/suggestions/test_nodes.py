"""Nodes whose devices nothing registers any more, and locks that no bind holds: what would be, were that put right."""

from datetime import UTC, datetime, timedelta

import pytest

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.decision import SchedulingPolicy
from engine.hami.vendors import ONLY_NVIDIA
from engine.suggestions.answer import write_sentence
from engine.suggestions.ask import Ask
from engine.suggestions.exclusion import find_excluding_constraints
from engine.suggestions.nodes import HeldNodeLock, build_unregistered_nodes, suggest_registration, suggest_unlocking
from engine.suggestions.suggestion import Suggestion
from engine.suggestions.trial import Trial
from schemas.events import NodeObserved
from tests.support.builders.changed_objects import REGISTER, Objects
from tests.support.builders.nodes_to_judge import a_cluster, a_device, a_node, a_pod, a_running_pod, ask_for
from tests.support.builders.vendor_examples import VENDORS, read_node, read_pod

NOW = datetime(2026, 11, 24, 10, 0, tzinfo=UTC)
POLICY = SchedulingPolicy()


def lose(objects: Objects, *names: str) -> Objects:
    """Remove the annotations of these nodes from the objects."""
    for node in objects.nodes:
        if node["metadata"]["name"] in names:
            objects.lost[node["metadata"]["name"]] = node["metadata"]["annotations"].pop(REGISTER)
    return objects


def build_two_nodes(wanted_mib: int) -> Objects:
    """Build a small node, and a large one on which a pod holds 20,000 of 24,576 MiB."""
    held = a_running_pod("large-0,NVIDIA,20000,10:;", "large", "held", namespace="other")
    nodes = [a_node("small", [a_device("small-0", devmem=1000)]), a_node("large", [a_device("large-0")])]
    return Objects(nodes, a_pod(ask_for(1, gpumem=wanted_mib)), {"held": held})


def list_registrations(objects: Objects) -> list[Suggestion]:
    return [suggestion for suggestion in objects.list_suggestions() if suggestion.edits[0].constraint == "registration"]


def test_a_node_that_registers_nothing_any_more_is_named_with_when_it_last_did() -> None:
    (suggestion,) = list_registrations(lose(build_two_nodes(wanted_mib=4000), "large"))
    assert (suggestion.actor, suggestion.allocation.node, suggestion.fit_nodes) == ("administrator", "large", 1)
    assert [grant.uuid for grants in suggestion.allocation.containers for grant in grants] == ["large-0"]
    text = write_sentence(suggestion, suggestion.edits)
    # The time of the state in the builders.
    assert text.en.startswith("Get the device plugin of node large to register its devices again (last at 2026-11-21T")
    assert text.en.endswith("): then it fits on large.")
    assert text.zh.startswith("让节点 large 的设备插件重新注册设备（上次注册于 2026-11-21T")


def test_what_pods_hold_there_still_counts_and_what_they_held_does_not() -> None:
    # 24,576 MiB less the 20,000 of the pod that still holds them.
    assert not list_registrations(lose(build_two_nodes(wanted_mib=5000), "large"))
    objects = lose(build_two_nodes(wanted_mib=5000), "large")
    objects.ended = {"held": objects.running.pop("held")}
    assert list_registrations(objects)


def test_a_node_that_was_not_offered_is_not_named() -> None:
    objects = lose(build_two_nodes(wanted_mib=4000), "large")
    objects.offered = ("small",)
    assert not list_registrations(objects)


def test_of_a_cluster_that_has_lost_every_node_the_best_one_is_named() -> None:
    (suggestion,) = list_registrations(lose(build_two_nodes(wanted_mib=900), "large", "small"))
    assert suggestion.allocation.node in ("large", "small")


def test_what_keeps_the_pod_out_names_the_registration_without_which_it_would_fit() -> None:
    objects = lose(build_two_nodes(wanted_mib=4000), "large")
    ask = Ask.from_pod(objects.pod, ONLY_NVIDIA)
    # The small node refuses for memory alone, the large one has enough.
    assert find_excluding_constraints(objects.build_trial(), ask, objects.list_unregistered()) == [
        "registration",
        "memory",
    ]
    # The lost node would not take it either, so that its registration keeps nothing out.
    objects = lose(build_two_nodes(wanted_mib=30_000), "large")
    ask = Ask.from_pod(objects.pod, ONLY_NVIDIA)
    assert find_excluding_constraints(objects.build_trial(), ask, objects.list_unregistered()) == ["memory"]


def observe(node: str, **amounts: str) -> NodeObserved:
    return NodeObserved(
        cluster="default", node=node, observed_at=NOW, capacity=dict(amounts), allocatable=dict(amounts)
    )


def test_devices_of_a_vendor_that_a_capacity_names_need_no_earlier_registration() -> None:
    pod, node = read_pod("cambricon"), read_node("cambricon")
    capacity = node["status"]["capacity"]
    suggestion = build_unregistered_nodes(
        VENDORS, [], [observe("mlu", **{key: str(value) for key, value in capacity.items()})]
    )
    trial = Trial(ClusterColumns(VENDORS), ("mlu",), POLICY)
    (register,) = suggest_registration(trial, Ask.from_pod(pod, VENDORS), suggestion)
    assert register.allocation.node == "mlu"
    assert "never yet" in register.edits[0].before


def test_of_devices_that_were_never_registered_nothing_is_suggested_and_the_node_is_named_as_not_known() -> None:
    # How many slots the kubelet offers does not say how much memory a device has.
    suggestion = build_unregistered_nodes(ONLY_NVIDIA, [], [observe("new", **{"nvidia.com/gpu": "80"}), observe("cpu")])
    trial = Trial(ClusterColumns(ONLY_NVIDIA), ("new", "cpu"), POLICY)
    assert not list(suggest_registration(trial, Ask.from_pod(a_pod(), ONLY_NVIDIA), suggestion))
    assert suggestion.without == ["new"]


def a_lock(held: timedelta, failed_after: timedelta, node: str = "node-a") -> dict[str, HeldNodeLock]:
    return {node: HeldNodeLock(node, "llm/other", NOW - held, NOW - held + failed_after)}


def suggest_unlocks(locks: dict[str, HeldNodeLock], wanted_mib: int = 1000) -> list[Suggestion]:
    columns = a_cluster()
    trial = Trial(columns, columns.node_names, POLICY)
    return suggest_unlocking(trial, Ask.from_pod(a_pod(ask_for(1, gpumem=wanted_mib)), ONLY_NVIDIA), locks, NOW)


def test_a_lock_that_outlasts_every_bind_is_removed() -> None:
    (suggestion,) = suggest_unlocks(a_lock(timedelta(minutes=3), timedelta(minutes=2)))
    assert (suggestion.actor, suggestion.allocation.node) == ("administrator", "node-a")
    text = write_sentence(suggestion, suggestion.edits)
    command = "`kubectl annotate node node-a hami.io/mutex.lock-`"
    assert text.en == f"Remove the lock that the bind of llm/other left ({command}): then it can be bound to node-a."
    assert text.zh == f"删除 llm/other 的绑定遗留的锁（{command}）：之后可绑定到 node-a。"


@pytest.mark.parametrize(
    ("held", "failed_after", "why"),
    [
        (timedelta(seconds=20), timedelta(seconds=1), "a bind may be at work"),
        (timedelta(minutes=6), timedelta(minutes=2), "HAMi takes a lock over after five minutes"),
    ],
)
def test_a_lock_that_will_go_by_itself_is_not_mentioned(held: timedelta, failed_after: timedelta, why: str) -> None:
    assert not suggest_unlocks(a_lock(held, failed_after)), why


def test_a_scheduler_that_waits_longer_for_locks_than_hami_needs_the_hand_longer() -> None:
    assert suggest_unlocks(a_lock(timedelta(minutes=20), timedelta(minutes=19)))


def test_a_lock_on_another_node_and_one_that_helps_nothing_are_not_mentioned() -> None:
    dead = (timedelta(minutes=3), timedelta(minutes=2))
    assert not suggest_unlocks(a_lock(*dead, node="elsewhere"))
    assert not suggest_unlocks(a_lock(*dead), wanted_mib=100_000)
