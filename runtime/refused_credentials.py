"""Credentials that Kafka or OpenSearch refuses: readiness shows them, and one from a variable ends its process.

A secret in a file is read again, so that a process waits for it. Of a variable a container has the present value of its
Secret only when it is started again: the process ends when it was refused for minutes.
"""

import asyncio
import time
from typing import Final

from runtime.errors import FixedCredentialsError

LIMIT_SECONDS: Final = 180.0
"""Time between the first refusal and one from which the process ends, without success in between."""
_LOOK_SECONDS: Final = 1.0
RECENT_SECONDS: Final = 60.0
"""Age from which a refusal says nothing any more. Clients that are refused try again every few seconds."""
_latest: Final[dict[str, tuple[float, str]]] = {}
"""By credential: time of its latest refusal since it was accepted, by the monotonic clock, and the cause."""
_refused_since: Final[dict[str, float]] = {}
"""By variable: time of the first refusal since the store accepted it."""
_lasting: Final[dict[str, str]] = {}
"""By variable: the cause of a refusal that has lasted."""


def note_refusal(credential: str, cause: str, *, is_fixed: bool = False) -> None:
    """Note that a store refuses a credential. is_fixed: it is the value of the variable ``credential``."""
    now = time.monotonic()
    _latest[credential] = now, cause
    if is_fixed and now - _refused_since.setdefault(credential, now) >= LIMIT_SECONDS:
        _lasting[credential] = cause


def note_acceptance(credential: str) -> None:
    """Note that a store accepts a credential."""
    for noted in (_latest, _refused_since, _lasting):
        noted.pop(credential, None)


def describe_refusal() -> str:
    """Describe the credential that was refused last and not accepted since; empty where none is refused."""
    since = time.monotonic() - RECENT_SECONDS
    # The thread that answers probes asks, while others note.
    return max((entry for entry in list(_latest.values()) if entry[0] > since), default=(0.0, ""))[1]


async def end_when_refused() -> None:
    """Wait until a refusal has lasted. Raises ``FixedCredentialsError``."""
    while not _lasting:  # noqa: ASYNC110 - the worker's consumer notes refusals in a thread of its own
        await asyncio.sleep(_LOOK_SECONDS)
    variable, cause = next(iter(_lasting.items()))
    raise FixedCredentialsError(
        f"{cause}. This has lasted {LIMIT_SECONDS / 60:.0f} minutes, and {variable} is read only at the start: "
        f"this process ends, so that a restart reads its present value. {variable}_FILE names a file that is read again"
    )
