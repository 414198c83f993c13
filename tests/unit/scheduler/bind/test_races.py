"""No device is ever given away twice, whatever is asked at the same time, however slow and wrong the API server is."""

import pytest

from tests.support.harness.racing import Race
from tests.support.stress import IS_STRESS

CALLERS = 8


@pytest.mark.stress
@pytest.mark.parametrize("seed", range(20 if IS_STRESS else 1))
async def test_when_eight_callers_race_no_device_is_given_away_twice(seed: int) -> None:
    race, races = Race(seed), 1_500 if IS_STRESS else 40
    for number in range(races):
        await race.try_callers(number, CALLERS)
    assert races < race.ledger.placed < races * CALLERS / 2, "the devices were not scarce, or not used"
