"""The nearest node in a row of ``list --pending``."""

from typing import Any

import pytest

from cli.terminal.pending import to_rows


@pytest.mark.parametrize(
    ("devices", "memory", "cores", "words"),
    [
        (2, 6000, 60, "node2 lacks 2 devices, 6,000 MiB, 60 % cores"),
        (1, 0, 30, "node2 lacks 1 device, 30 % cores"),
        (None, 3000, None, "node2 lacks 3,000 MiB"),
        (2, None, None, "node2 lacks 2 devices"),
        (None, None, None, "node2"),
    ],
)
def test_the_nearest_node_lacks_what_the_page_says(
    devices: int | None, memory: int | None, cores: int | None, words: str
) -> None:
    nearest = {
        "node": "node2",
        "missing_devices": devices,
        "missing_memory_mib": memory,
        "missing_cores_percent": cores,
    }
    pod: dict[str, Any] = {
        "namespace": "llm", "name": "a", "first_judged_at": "", "gpu_hours": 0.5, "obstacle": None, "reasons": [],
        "devices": 2, "attempts": 1, "workload": "", "queue": "", "scheduler": "", "attempt": "/attempts/f00",
    }  # fmt: skip
    for node, column in ((nearest, words), (None, "")):
        (row,) = to_rows({"items": [pod | {"nearest": node}]}, "pod", lambda _: 60.0)
        assert row[4] == column
