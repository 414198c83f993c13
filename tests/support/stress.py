"""Number of examples that a test takes: a slice in the suite, forty times as many under ``make stress``.

``make stress`` runs the tests that are marked ``stress`` and every test of hypothesis, at full size.
"""

import os
from collections.abc import Callable
from typing import Final, TypeVar

import pytest
from hypothesis import HealthCheck, settings

T = TypeVar("T", bound=Callable[..., object])
SETTING: Final = "SCHEDULERLOG_TEST_STRESS"
FACTOR: Final = 40
IS_STRESS: Final = bool(os.environ.get(SETTING))


def count_examples(count: int) -> int:
    """Return ``count`` in the suite, ``FACTOR`` times as many under ``make stress``."""
    return count * FACTOR if IS_STRESS else count


def load_profile() -> None:
    """Make what hypothesis does by default independent of how fast the machine is."""
    settings.register_profile(
        "schedulerlog", max_examples=count_examples(13), deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("schedulerlog")


def run_in_make_stress(test: T) -> T:
    """Leave a test of what no user of the services meets to ``make stress``."""
    # Not collected rather than skipped: a skipped test looks like one that could run here.
    if not IS_STRESS:
        test.__test__ = False  # type: ignore[attr-defined]
    marked: T = pytest.mark.stress(test)
    return marked
