"""The pods whose end let a pod in, as ``schedulerlog history`` names them."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from cli.client.problems import NotAllowed, Problem
from cli.terminal.earlier_ends import describe_earlier_ends
from schemas.json_types import Json

REFUSED = {"status": "failed", "chosen": None, "first_seen_at": "2026-11-25T09:00:00Z",
           "last_seen_at": "2026-11-25T09:04:00Z"}  # fmt: skip
PLACED = {"status": "succeeded", "chosen": "node10", "first_seen_at": "2026-11-25T09:06:00Z",
          "last_seen_at": "2026-11-25T09:06:00Z"}  # fmt: skip


def a_placement(name: str, ended_at: str | None, *devices: str) -> Json:
    return {"namespace": "llm", "name": name, "ended_at": ended_at, "ended_by": "Succeeded" if ended_at else "",
            "devices": [{"uuid": uuid} for uuid in devices]}  # fmt: skip


PLACEMENT = a_placement("finetune", None, "GPU-1", "GPU-2")


def describe(items: list[Json] | Problem, *episodes: Mapping[str, Any]) -> list[str]:
    requests: list[tuple[str, Mapping[str, str]]] = []

    def get(path: str, query: Mapping[str, str]) -> Json | Problem:
        requests.append((path, query))
        return items if isinstance(items, Problem) else {"items": items}

    lines = describe_earlier_ends(SimpleNamespace(get=get), "llm", "finetune", episodes)
    assert [path for path, _ in requests] in ([], ["/nodes/node10/occupancy"])
    assert all(query["since"] == "2026-11-25T09:04:00Z" for _, query in requests)
    return lines


def test_the_pod_that_left_its_devices_to_it_comes_first() -> None:
    ended = [
        a_placement("other", "2026-11-25T09:04:30Z", "GPU-7"),
        a_placement("pretrain", "2026-11-25T09:05:00Z", "GPU-1", "GPU-2", "GPU-3"),
        a_placement("later", "2026-11-25T09:06:01Z", "GPU-1"),
        a_placement("running", None, "GPU-5"),
    ]
    assert describe([PLACEMENT, *ended], PLACED, REFUSED) == [
        "On node10 2 pods ended between its last refusal at 2026-11-25 09:04:00 and its placement:",
        "llm/pretrain at 2026-11-25 09:05:00 (Succeeded), which held 3 devices, 2 of which the pod has.",
        "llm/other at 2026-11-25 09:04:30 (Succeeded), which held 1 device.",
    ]


def test_without_an_end_nothing_is_claimed() -> None:
    assert describe([PLACEMENT], PLACED, REFUSED) == [
        "No pod is known to have ended on node10 between its last refusal at 2026-11-25 09:04:00 and its placement."
    ]


@pytest.mark.parametrize("episodes", [(), (REFUSED,), (PLACED,), (REFUSED, PLACED)])
def test_a_pod_that_waits_or_never_waited_has_no_such_lines(episodes: tuple[Mapping[str, Any], ...]) -> None:
    assert describe([PLACEMENT], *episodes) == []


def test_a_caller_without_the_right_to_see_nodes_reads_why() -> None:
    (line,) = describe(NotAllowed("nodes can't be read", ""), PLACED, REFUSED)
    assert line == "Who left node10 before it is not known: nodes can't be read."
