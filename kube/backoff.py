"""How long to wait before trying again: longer each time, spread so that many clients do not come back together."""

from collections.abc import Iterator
from random import Random


def pauses(rng: Random, first_seconds: float = 0.2, most_seconds: float = 30.0) -> Iterator[float]:
    """Seconds for ever: doubled each time up to `most_seconds`, each drawn from the upper half of its step."""
    step = first_seconds
    while True:
        yield step * (0.5 + rng.random() / 2)
        step = min(step * 2, most_seconds)
