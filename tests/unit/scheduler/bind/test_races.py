"""No card is ever given away twice, whoever asks at the same time, however slow and wrong the API server is."""

import pytest

from tests.support.harness.racing import Race

CALLERS = 8


@pytest.mark.parametrize("seed", range(4))
async def test_in_ten_thousand_races_of_eight_callers_no_card_is_given_away_twice(seed: int) -> None:
    race, races = Race(seed), 2_500
    for number in range(races):
        await race.trial(number, CALLERS)
    assert races < race.ledger.placed < races * CALLERS / 2, "the cards were not scarce, or not used"
