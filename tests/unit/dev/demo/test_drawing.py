"""The drawing of the demo's cluster: worked out by hand from the table of docs/demo.md."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from dev.demo.drawing import draw_cluster
from page.views.fleet import draw_bars

LINES = list(draw_cluster(list(yaml.safe_load_all(Path("examples/cluster.yaml").read_text("utf-8")))))


def a_device(memory: int = 0, cores: int = 0, slots: int = 0, *, is_healthy: bool = True) -> dict[str, Any]:
    shares = {"memory_percent": memory, "cores_percent": cores, "slots_percent": slots}
    return {"model": "NVIDIA A40", **shares, "healthy": is_healthy, "cordoned": False}


def test_each_node_has_a_bar_for_each_device() -> None:
    # node4: 0 and 1 unhealthy, 2 and 3 hold 44,000 of 45,912 MiB, 4 to 6 free, 7 cordoned.
    assert any(line.strip() == "node4   A40   xx██···-" + " " * 16 + "node9   A40   ····████" for line in LINES)
    assert any("node7   not registered" in line for line in LINES)
    assert LINES[0].startswith("10 nodes, 17 of 72 registered devices are free.")


@pytest.mark.parametrize(
    ("device", "bar"),
    [
        (a_device(), "·"),
        (a_device(memory=50, cores=10), "▅"),
        (a_device(memory=1, cores=100), "█"),
        (a_device(slots=10), "▁"),
        (a_device(memory=100, is_healthy=False), "x"),
    ],
)
def test_a_bar_is_as_high_as_the_fullest_share(device: dict[str, Any], bar: str) -> None:
    assert draw_bars({"fill": [device]}) == bar


def test_the_readme_shows_the_drawing() -> None:
    assert "\n".join(LINES) in Path("README.md").read_text("utf-8")
