"""Credentials from variables, which a process can't read again: it ends when a store has refused them for minutes.

A secret in a file is read again, so that a process waits for it. Of a variable a container has the present value of its
Secret only when it is started again.
"""

import asyncio
import time
from typing import Final

from runtime.errors import FixedCredentialsError

LIMIT_SECONDS: Final = 180.0
"""Time between the first refusal and one from which the process ends, without success in between."""
_LOOK_SECONDS: Final = 1.0
_refused_since: Final[dict[str, float]] = {}
"""By variable: time of the first refusal since the store accepted it, by the monotonic clock."""
_lasting: Final[dict[str, str]] = {}
"""By variable: the cause of a refusal that has lasted."""


def note_refusal(variable: str, cause: str) -> None:
    """Note that a store refuses the value of this variable."""
    since = _refused_since.setdefault(variable, time.monotonic())
    if time.monotonic() - since >= LIMIT_SECONDS:
        _lasting[variable] = cause


def note_acceptance(variable: str) -> None:
    """Note that a store accepts the value of this variable."""
    _refused_since.pop(variable, None)
    _lasting.pop(variable, None)


async def end_when_refused() -> None:
    """Wait until a refusal has lasted. Raises ``FixedCredentialsError``."""
    while not _lasting:  # noqa: ASYNC110 - the worker's consumer notes refusals in a thread of its own
        await asyncio.sleep(_LOOK_SECONDS)
    variable, cause = next(iter(_lasting.items()))
    raise FixedCredentialsError(
        f"{cause}. This has lasted {LIMIT_SECONDS / 60:.0f} minutes, and {variable} is read only at the start: "
        f"this process ends, so that a restart reads its present value. {variable}_FILE names a file that is read again"
    )
