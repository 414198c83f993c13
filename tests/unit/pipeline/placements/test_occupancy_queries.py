"""The obstacle that the wait of a placed pod is charged to."""

from datetime import timedelta
from typing import Any, Final

import pytest

from pipeline.placements.occupancy_queries import choose_obstacle
from tests.support.builders.kube_objects import STARTED

MEMORY, NUMA, LOCK = "CardInsufficientMemory", "NumaNotFit", "node lock contention"
UNKNOWN: Final = ""


def an_episode(hour: int, obstacle: str | None) -> dict[str, Any]:
    began = (STARTED + timedelta(hours=hour)).isoformat()
    return {"_source": {"episode_started_at": began, "reasons": ["CardNotHealth"], "obstacle": obstacle}}


# Hours at which episodes begin, the latest first as searches sort them; the pod is placed ten hours after the first.
CASES: Final = {
    "one": ([(0, MEMORY)], MEMORY),
    "the longest, not the latest": ([(9, LOCK), (0, MEMORY)], MEMORY),
    "the longest together": ([(7, MEMORY), (3, NUMA), (0, MEMORY)], MEMORY),
    "among equals the latest": ([(5, NUMA), (0, MEMORY)], NUMA),
    "of an earlier version": ([(0, None)], UNKNOWN),
    "mostly of an earlier version": ([(9, MEMORY), (0, None)], UNKNOWN),
    "partly of an earlier version": ([(1, MEMORY), (0, None)], MEMORY),
    "no attempt": ([], UNKNOWN),
}


@pytest.mark.parametrize(("episodes", "obstacle"), CASES.values(), ids=CASES)
def test_a_wait_is_charged_to_the_obstacle_that_kept_the_pod_longest(
    episodes: list[tuple[int, str | None]], obstacle: str
) -> None:
    assert choose_obstacle([an_episode(*episode) for episode in episodes], STARTED + timedelta(hours=10)) == obstacle


@pytest.mark.parametrize(("hours", "obstacle"), [(2, MEMORY), (30, UNKNOWN)])
def test_a_pod_that_waited_longer_before_its_first_attempt_has_no_known_obstacle(hours: int, obstacle: str) -> None:
    made_at = STARTED - timedelta(hours=hours)
    assert choose_obstacle([an_episode(0, MEMORY)], STARTED + timedelta(hours=10), made_at) == obstacle
