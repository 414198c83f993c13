"""The books must show what is wrong, or the tests that compare them would prove nothing."""

from typing import Any

from tests.support.control_plane.bookkeeping import Placement, Share, Told, astray, differences, overbooked, shares_in
from tests.support.control_plane.objects import ALLOCATED, CARD_MEMORY_MIB, CHOSEN, Json

HALF = Share("GPU-a", CARD_MEMORY_MIB // 2, 50)


def a_bound_pod(name: str = "pod", node: str = "node1", chosen: str = "node1") -> Json:
    said = {CHOSEN: chosen, ALLOCATED: "GPU-a,NVIDIA,1000,10:;"}
    return {"metadata": {"name": name, "annotations": said}, "spec": {"nodeName": node}}


def a_telling(node: str = "node1", card: str = "GPU-a", **fields: Any) -> Told:
    return Told(chosen={"1": node}, picked={"1": {(node, card)}}, bound={"1": node}, **fields)


def test_a_container_without_cards_leaves_an_empty_place() -> None:
    assert shares_in(";GPU-b,NVIDIA,20480,20:GPU-a,NVIDIA,1,0:;") == (Share("GPU-a", 1, 0), Share("GPU-b", 20480, 20))


def test_a_card_that_is_full_is_not_overbooked_and_one_percent_more_is() -> None:
    full = [Placement("node1", (HALF,)), Placement("node1", (HALF,))]
    assert overbooked(full) == {}
    assert set(overbooked([*full, Placement("node1", (Share("GPU-a", 0, 1),))])) == {"GPU-a"}


def test_an_eleventh_container_is_one_too_many_for_a_card_of_ten_slots() -> None:
    small = Placement("node1", (Share("GPU-a", 1, 1),))
    assert overbooked([small] * 10) == {}
    assert overbooked([small] * 11)


def test_devices_of_another_node_than_the_pods_are_seen() -> None:
    assert astray([a_bound_pod(), a_bound_pod("lost", chosen="node2")]) == ["lost"]


def test_books_that_agree_have_no_differences() -> None:
    assert differences([a_bound_pod()], {"pod": a_telling()}) == []


def test_another_node_another_card_and_silence_are_differences() -> None:
    for books in ({"pod": a_telling("node2")}, {"pod": a_telling(card="GPU-b")}, {}):
        assert differences([a_bound_pod()], books)


def test_a_bound_pod_whose_bind_nobody_told_is_a_difference_and_so_is_one_of_which_two_were_told() -> None:
    untold, twice = a_telling(), a_telling()
    untold.bound.clear()
    twice.bound["2"], twice.picked["2"] = "node1", {("node1", "GPU-a")}
    for book in (untold, twice):
        assert differences([a_bound_pod()], {"pod": book})


def test_a_pod_that_is_told_to_be_bound_and_waits_is_a_difference() -> None:
    waiting = {"metadata": {"name": "pod"}, "spec": {}}
    assert differences([waiting], {"pod": a_telling()})
