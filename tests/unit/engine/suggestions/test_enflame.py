"""Suggestions for parts of Enflame devices, which a pod asks for as slices or by an amount of memory and cores."""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.support.builders.simulations import simulate

EXAMPLES: Final = Path(__file__).parents[4] / "examples"
# Profiles of 1 and 2 of 6 slices, with 12 and 24 GiB.
NODE: Any = yaml.safe_load((EXAMPLES / "vendors/enflame.yaml").read_text())
POD: Any = yaml.safe_load((EXAMPLES / "vendors/pods/enflame.yaml").read_text())


@pytest.mark.parametrize(
    ("limits", "resource", "amount"),
    [
        ({"enflame.com/gcu-memory": 24577, "enflame.com/gcu-core": 10}, "enflame.com/gcu-memory", "24576"),
        ({"enflame.com/gcu-memory": 90000}, "enflame.com/gcu-memory", "24576"),
        # Up to twice the largest profile HAMi takes the amount for GiB.
        ({"enflame.com/gcu-memory": 40, "enflame.com/gcu-core": 10}, "enflame.com/gcu-memory", "24"),
        ({"enflame.com/drs-gcu": 5}, "enflame.com/drs-gcu", "2"),
    ],
)
def test_the_largest_profile_is_suggested_in_the_words_of_the_request(
    limits: dict[str, int], resource: str, amount: str
) -> None:
    pod = POD | {"spec": POD["spec"] | {"containers": [{"name": "main", "resources": {"limits": limits}}]}}
    suggestion, *others = simulate(pod, NODE)["suggestions"]["items"]
    assert others == []
    assert f"Lower {resource} of main from {limits[resource]} to {amount}: " in suggestion["sentence"]["en"]
