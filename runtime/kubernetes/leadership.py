"""Interface of a leader election to its user, and the name under which a process takes part."""

import asyncio
import os
import uuid
from typing import Protocol


class Leadership(Protocol):
    """Leadership of this process.

    Ask `is_leading` before every answer: it turns false by itself when the lease can't be renewed in time.
    """

    term: int
    """Number of times that this process began to lead, also if no other led in between."""
    term_began: asyncio.Event
    """Event that is set when a term begins; the user clears it."""

    @property
    def is_leading(self) -> bool: ...

    @property
    def problem(self) -> str:
        """Reason why this process does not lead; empty while it does."""

    async def run(self) -> None:
        """Follow the lease until cancelled."""

    async def resign(self) -> None:
        """Stop leading, and let another lead at once."""


def get_host() -> str:
    return os.environ.get("POD_NAME") or os.uname().nodename


def generate_identity() -> str:
    """Generate a name that differs for each process and shows its pod: `<host>_<uuid>`, as Kubernetes' components write
    it."""
    return f"{get_host()}_{uuid.uuid4()}"
