"""Refusals by Kafka and OpenSearch: readiness shows them, and one of a secret from a variable ends its process.

A secret in a file is read again, so that a process waits for it. Of a variable a container has the present value of its
Secret only when it is started again: the process ends when it was refused for minutes.
"""

import asyncio
import time
from typing import Final, Literal, NamedTuple

from runtime.errors import FixedCredentialsError

LIMIT_SECONDS: Final = 180.0
"""Time between the first refusal and one from which the process ends, without success in between."""
_LOOK_SECONDS: Final = 1.0
RECENT_SECONDS: Final = 60.0
"""Age from which a refusal says nothing any more. Clients that are refused try again every few seconds."""

Store = Literal["Kafka", "OpenSearch"]


class _Refusal(NamedTuple):
    latest: float
    """Time by the monotonic clock."""
    words: str
    first: float


_by_address: Final[dict[tuple[Store, str], _Refusal]] = {}
"""Refusals by addresses that have accepted nothing since."""
_by_variable: Final[dict[str, _Refusal]] = {}
"""Refusals of variables' values that the store has accepted nowhere since."""


def note_refusal(store: Store, address: str, words: str, variable: str = "") -> None:
    """Note that a store, or its server of tokens, refuses us at this address. ``variable``: the refused secret is its
    value."""
    now = time.monotonic()
    _by_address[store, address] = _Refusal(now, words, now)
    if variable:
        first = _by_variable[variable].first if variable in _by_variable else now
        _by_variable[variable] = _Refusal(now, words, first)


def note_acceptance(store: Store, address: str, variable: str = "") -> None:
    """Note that it accepts us at this address, with the value of ``variable``."""
    _by_address.pop((store, address), None)
    _by_variable.pop(variable, None)


def describe_refusal(*stores: Store) -> str:
    """Describe the latest refusal, by one of these stores or by any; empty where none is recent."""
    since = time.monotonic() - RECENT_SECONDS
    # The thread that answers probes asks, while others note.
    refusals = [refusal for (store, _), refusal in list(_by_address.items()) if not stores or store in stores]
    return max((refusal for refusal in refusals if refusal.latest > since), default=_Refusal(0.0, "", 0.0)).words


async def end_when_refused() -> None:
    """Wait until a refusal has lasted. Raises ``FixedCredentialsError``."""
    while not (lasting := _find_lasting()):  # noqa: ASYNC110 - the worker's consumer notes refusals in another thread
        await asyncio.sleep(_LOOK_SECONDS)
    raise FixedCredentialsError(
        f"{_by_variable[lasting].words}. This has lasted {LIMIT_SECONDS / 60:.0f} minutes, and {lasting} is read only "
        f"at the start: this process ends, so that a restart reads its present value. {lasting}_FILE names a file that "
        "is read again"
    )


def _find_lasting() -> str:
    """Find a variable whose refusal has lasted; empty if none has."""
    refusals = list(_by_variable.items())
    return next((name for name, refusal in refusals if refusal.latest - refusal.first >= LIMIT_SECONDS), "")
