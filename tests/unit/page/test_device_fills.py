"""Cells of devices, their heights worked out by hand: a whole cell is 20 high and 11 wide."""

import re
from typing import Any

from page.device_fills import draw_devices, group_nodes

WORDS = {"memory": "memory", "cores": "cores", "slots": "slots", "unhealthy": "sick", "cordoned": "closed"}


def a_device(memory: int | None = 0, cores: int | None = 0, slots: int | None = 0, **fields: Any) -> dict[str, Any]:
    shares = {"memory_percent": memory, "cores_percent": cores, "slots_percent": slots}
    return {"model": "A40", **shares, "healthy": True, "cordoned": False} | fields


def a_node(name: str, *devices: dict[str, Any], free: int = 0) -> dict[str, Any]:
    models = [{"model": model} for model in sorted({device["model"] for device in devices})]
    return {"node": name, "fill": devices, "models": models, "devices": len(devices), "free_devices": free}


def list_bars(node: dict[str, Any]) -> list[tuple[str, str, str]]:
    """List position, width and height of the bars of what pods hold."""
    pattern = r'<rect class="held" x="([^"]+)" y="[^"]+" width="([^"]+)" height="([^"]+)"/>'
    return re.findall(pattern, draw_devices(node, WORDS))


def test_memory_is_at_the_left_and_cores_are_at_the_right() -> None:
    node = a_node("n", a_device(50, 100), a_device(), a_device(1, 120))
    assert list_bars(node) == [("1", "5.5", "10"), ("6.5", "5.5", "20"), ("27", "5.5", "1"), ("32.5", "5.5", "20")]


def test_a_device_of_which_only_slots_are_known_has_one_bar() -> None:
    assert list_bars(a_node("n", a_device(None, None, 25))) == [("1", "11", "5")]


def test_an_unhealthy_device_is_hatched_and_a_cordoned_one_is_marked() -> None:
    drawing = draw_devices(a_node("n", a_device(90, healthy=False), a_device(cordoned=True)), WORDS)
    assert drawing.count("url(#hatched)") == 1
    assert ('class="device unhealthy"' in drawing, 'class="device cordoned"' in drawing) == (True, True)
    assert "<title>0 A40: sick, memory 90 %, cores 0 %</title>" in drawing
    assert "<title>1 A40: closed, memory 0 %, cores 0 %</title>" in drawing
    assert list_bars(a_node("n", a_device(90, healthy=False))) == []


def test_nodes_are_grouped_by_their_models_and_those_without_devices_are_left_out() -> None:
    nodes = [
        a_node("n10", a_device(), free=1),
        a_node("n2", a_device(9)),
        a_node("t", a_device(model="T4")),
        a_node("o"),
    ]
    groups = [(group.name, [node["node"] for node in group.nodes], group.free, group.devices)
              for group in group_nodes(nodes, "model")]  # fmt: skip
    assert groups == [("A40", ["n2", "n10"], 1, 2), ("T4", ["t"], 0, 1)]


def test_nodes_are_grouped_by_pool_whatever_their_models_and_one_of_none_is_in_a_group_of_its_own() -> None:
    nodes = [
        {**a_node("n1", a_device(), free=1), "pool": "train"},
        {**a_node("n2", a_device(model="T4")), "pool": "train"},
        {**a_node("n3", a_device()), "pool": ""},
    ]
    groups = [(group.name, len(group.nodes), group.free, group.devices) for group in group_nodes(nodes, "pool")]
    assert groups == [("", 1, 0, 1), ("train", 2, 1, 2)]


def test_names_of_nodes_and_models_are_escaped() -> None:
    drawing = draw_devices(a_node('"<n>', a_device(model="A<40>")), WORDS)
    assert "&#34;&lt;n&gt;: 0/1" in drawing
    assert "<title>0 A&lt;40&gt;: memory 0 %, cores 0 %</title>" in drawing
