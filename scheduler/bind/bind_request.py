"""Request of a bind call. A module of its own, because the settings import it and must start without a client."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

ANSWER_AFTER: Final = timedelta(seconds=25)
"""Time limit for the answer to a bind call: below the 30 s of `httpTimeout` in HAMi's chart and in ours."""


@dataclass(frozen=True, slots=True)
class BindRequest:
    """Bind the pod with this namespace, name and UID to the node."""

    namespace: str
    name: str
    uid: str
    node: str
