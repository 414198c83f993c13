"""Positions of bars, derived by hand."""

from datetime import UTC, datetime
from typing import Any

from page.heat_maps import WOULD_BE_PICKED, draw_device_map
from page.timelines import draw_device_lines, draw_episodes, draw_waits, find_ends, fit_begin, map_pod_colours

BEGIN, END = datetime(2026, 11, 23, 0, tzinfo=UTC), datetime(2026, 11, 23, 10, tzinfo=UTC)


def a_placement(name: str, begin: int, end: int | None, *uuids: str) -> dict[str, Any]:
    return {
        "namespace": "llm",
        "name": name,
        "started_at": f"2026-11-23T{begin:02}:00:00Z",
        "ended_at": None if end is None else f"2026-11-23T{end:02}:00:00Z",
        "devices": [{"uuid": uuid} for uuid in uuids],
    }


def test_a_bar_stands_where_its_time_is() -> None:
    (line,) = draw_device_lines([a_placement("a", 1, 3, "GPU-1")], ["GPU-1"], BEGIN, END)
    assert [(bar.x, bar.width, bar.lane) for bar in line.bars] == [(100.0, 200.0, 0)]


def test_a_bar_that_has_no_end_reaches_to_the_edge() -> None:
    (line,) = draw_device_lines([a_placement("a", 8, None, "GPU-1")], [], BEGIN, END)
    assert [(bar.x, bar.width) for bar in line.bars] == [(800.0, 200.0)]


def test_what_began_before_begins_at_the_edge_and_what_was_over_is_left_out() -> None:
    later = datetime(2026, 11, 23, 5, tzinfo=UTC)
    placements = [a_placement("a", 1, 6, "GPU-1"), a_placement("b", 1, 2, "GPU-1")]
    (line,) = draw_device_lines(placements, [], later, END)
    assert [(bar.placement["name"], bar.x, bar.width) for bar in line.bars] == [("a", 0.0, 200.0)]


def test_pods_that_share_a_device_stand_in_lanes_which_are_used_again() -> None:
    placements = [a_placement("a", 1, 4, "G"), a_placement("b", 2, 6, "G"), a_placement("c", 5, 7, "G")]
    (line,) = draw_device_lines(placements, [], BEGIN, END)
    assert [(bar.placement["name"], bar.lane) for bar in line.bars] == [("a", 0), ("b", 1), ("c", 0)]
    assert line.lanes == 2


def test_a_pod_has_one_colour_and_devices_come_in_their_order_with_free_ones() -> None:
    lines = draw_device_lines([a_placement("a", 1, 2, "G2", "G9")], ["G1", "G2"], BEGIN, END)
    assert [(line.uuid, len(line.bars)) for line in lines] == [("G1", 0), ("G2", 1), ("G9", 1)]
    assert lines[1].bars[0].colour == lines[2].bars[0].colour
    assert map_pod_colours(lines) == {("llm", "a"): lines[1].bars[0].colour}


def test_a_drawing_begins_shortly_before_its_first_bar() -> None:
    later = datetime(2026, 11, 23, 8, 54, tzinfo=UTC)
    assert fit_begin([a_placement("b", 9, None, "G"), a_placement("c", 9, 9, "G")], BEGIN, END) == later


def test_a_drawing_begins_with_its_range_where_a_bar_fills_it_or_it_has_none() -> None:
    assert fit_begin([a_placement("a", 0, None, "G")], BEGIN, END) == BEGIN
    assert fit_begin([], BEGIN, END) == BEGIN


def test_a_bar_of_this_moment_has_a_drawing_of_a_minute() -> None:
    assert fit_begin([a_placement("a", 10, None, "G")], BEGIN, END) == datetime(2026, 11, 23, 9, 58, 54, tzinfo=UTC)


def an_episode(first: int, last: int) -> dict[str, Any]:
    return {"first_seen_at": f"2026-11-23T{first:02}:00:00Z", "last_seen_at": f"2026-11-23T{last:02}:00:00Z"}


def test_episodes_stand_on_one_line_earliest_first() -> None:
    bars = draw_episodes([an_episode(10, 10), an_episode(4, 9), an_episode(0, 2)])
    assert [(bar.x, bar.width) for bar in bars] == [(0.0, 200.0), (400.0, 500.0), (994.0, 6.0)]


def test_one_episode_needs_no_drawing() -> None:
    assert draw_episodes([an_episode(1, 2)]) == []


def test_a_device_is_chosen_on_the_chosen_node_alone() -> None:
    judged = [{"node": node, "container": "c", "verdict": "picked"} for node in ("node1", "node2")]
    drawn = draw_device_map(judged, [], "node2")
    assert drawn
    assert [row.devices[0]["verdict"] for row in drawn.rows] == [WOULD_BE_PICKED, "picked"]


def test_devices_of_node2_are_drawn_before_those_of_node10() -> None:
    names = ("node10", "node2", "node1")
    drawn = draw_device_map([{"node": name, "container": "c", "verdict": "fits"} for name in names], [])
    assert drawn
    assert [row.node for row in drawn.rows] == ["node1", "node2", "node10"]


def test_waits_fill_their_line_in_their_order() -> None:
    waits = [
        {"layer": "queue", "since": "2026-11-23T09:00:00Z", "waited_seconds": 30.0},
        {"layer": "nodes", "since": "2026-11-23T09:00:30Z", "waited_seconds": 90.0},
        {"layer": "bind", "since": "2026-11-23T09:02:00Z", "waited_seconds": 0.0},
    ]
    bars = [(bar.wait["layer"], bar.x, bar.width) for bar in draw_waits(waits)]
    assert bars == [("queue", 0.0, 250.0), ("nodes", 250.0, 750.0), ("bind", 1000.0, 0.0)]
    assert draw_waits(waits[2:]) == draw_waits([]) == []


def test_a_wait_stands_where_its_time_is() -> None:
    waits = [
        {"layer": "queue", "since": "2026-11-23T09:00:00Z", "waited_seconds": 60.0},
        {"layer": "nodes", "since": "2026-11-23T09:03:00Z", "waited_seconds": 60.0},
    ]
    assert [(bar.x, bar.width) for bar in draw_waits(waits)] == [(0.0, 250.0), (750.0, 250.0)]
    assert find_ends(waits) == (
        datetime(2026, 11, 23, 9, tzinfo=UTC), datetime(2026, 11, 23, 9, 4, tzinfo=UTC),
    )  # fmt: skip
