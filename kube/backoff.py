"""How long to wait before the next attempt: exponential backoff with jitter.

The jitter keeps the clients of an API server that was restarted from all coming back in the same moment.
"""

from collections.abc import Iterator
from random import Random


def backoff_seconds(rng: Random, first_seconds: float = 0.2, max_seconds: float = 30.0) -> Iterator[float]:
    """Endless: each step is twice the one before, up to `max_seconds`, and drawn from the upper half of its range."""
    step = first_seconds
    while True:
        yield step * (0.5 + rng.random() / 2)
        step = min(step * 2, max_seconds)
