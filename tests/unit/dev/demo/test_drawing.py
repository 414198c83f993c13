"""The drawing of the demo's cluster: worked out by hand from the table of docs/demo.md."""

from pathlib import Path

import pytest
import yaml

from dev.demo.drawing import draw_cluster, draw_device
from schemas.answers.placements import DeviceOccupancy

LINES = list(draw_cluster(list(yaml.safe_load_all(Path("examples/cluster.yaml").read_text("utf-8")))))


def a_device(memory: int = 0, cores: int = 0, slots: int = 0, *, is_healthy: bool = True) -> DeviceOccupancy:
    return DeviceOccupancy(
        uuid="GPU-1",
        model="NVIDIA A40",
        memory_total_mib=1000,
        memory_held_mib=memory,
        cores_total_percent=100,
        cores_held_percent=cores,
        slots_total=10,
        slots_held=slots,
        healthy=is_healthy,
        cordoned=False,
        held_by=[],
    )


def test_each_node_has_a_bar_for_each_device() -> None:
    # node4: 0 and 1 unhealthy, 2 and 3 hold 44,000 of 45,912 MiB, 4 to 6 free, 7 cordoned.
    assert any(line.strip() == "node4   A40   xx██···-" + " " * 16 + "node9   A40   ····████" for line in LINES)
    assert any("node7   not registered" in line for line in LINES)
    assert LINES[0].startswith("10 nodes, 17 of 72 registered devices are free.")


@pytest.mark.parametrize(
    ("device", "bar"),
    [
        (a_device(), "·"),
        (a_device(memory=500, cores=10), "▅"),
        (a_device(memory=10, cores=100), "█"),
        (a_device(slots=1), "▁"),
        (a_device(memory=1000, is_healthy=False), "x"),
    ],
)
def test_a_bar_is_as_high_as_the_fullest_share(device: DeviceOccupancy, bar: str) -> None:
    assert draw_device(device) == bar


def test_the_readme_shows_the_drawing() -> None:
    assert "\n".join(LINES) in Path("README.md").read_text("utf-8")
