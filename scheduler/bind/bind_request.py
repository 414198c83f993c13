"""What kube-scheduler asks of a bind call."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

ANSWER_AFTER: Final = timedelta(seconds=25)
"""When a bind call is answered at the latest: below the 30 s of `httpTimeout` in HAMi's chart and in ours."""


@dataclass(frozen=True, slots=True)
class BindRequest:
    """Bind the pod with this namespace, name and UID to the node."""

    namespace: str
    name: str
    uid: str
    node: str
