"""Watch for indices that somebody deleted, or put back from a snapshot, while a process writes them.

What the process knows of such an index (that its mapping is right, that documents are there) no longer holds.
Documents that are gone are written again only when the topics are read again, which is for an operator to decide.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from opensearchpy import AsyncOpenSearch
from opensearchpy.exceptions import OpenSearchException

from runtime.log_once import LoggedProblem
from runtime.opensearch.refusals import explain_refusal
from runtime.opensearch.roles import WRITER
from schemas.indices import INDICES

logger = logging.getLogger(__name__)

CHECK_SECONDS: Final = 10.0
_PATH: Final = "/schedulerlog-*/_settings/index.uuid,index.history.uuid"
_MAX_NAMED: Final = 10


class IndexIdentity(NamedTuple):
    """``history`` is another one after an index was closed and restored in place, which keeps its ``uuid``."""

    uuid: str
    history: str


def find_lost_indices(
    expected: Mapping[str, IndexIdentity | None], identities: Mapping[str, IndexIdentity], now: datetime
) -> dict[str, str]:
    """Find what happened to each index of ``expected`` that is another one in ``identities`` or is not there; None
    stands for an index of which only the name is known.

    Indices whose time ended a day ago may be missing: retention deletes those.
    """
    lost: dict[str, str] = {}
    for name, identity in expected.items():
        if name not in identities and not _has_ended(name, now - timedelta(days=1)):
            lost[name] = "was deleted"
        elif identity and identities.get(name, identity) != identity:
            lost[name] = "was made again or restored"
    return lost


def _has_ended(name: str, moment: datetime) -> bool:
    ends = (index.parse_end(name) for index in INDICES)
    return any(end and end <= moment for end in ends)


class IndexWatch:
    """Watch of the indices: ``check``, called again and again, logs the indices that were lost since the call before,
    and gives their names to ``on_lost``. ``written`` names the indices that must exist, also when they were made
    since."""

    def __init__(
        self,
        store: AsyncOpenSearch,
        on_lost: Callable[[Sequence[str]], None],
        written: Callable[[], Iterable[str]] = tuple,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store, self._on_lost, self._written, self._clock = store, on_lost, written, clock
        self._identities: Mapping[str, IndexIdentity] = {}
        self._problem = LoggedProblem(partial(logger.warning, "deleted indices are not noticed: %s; trying again"))

    async def check(self) -> None:
        # Before OpenSearch is asked: what is made meanwhile may not be in its answer.
        expected = dict.fromkeys(self._written()) | dict(self._identities)
        try:
            identities = await self._read_identities()
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - an answer that is not JSON raises the parser's own errors
            is_known = isinstance(error, OpenSearchException)
            self._problem.note(explain_refusal(error, f"the role {WRITER}") if is_known else repr(error))
            return
        self._problem.note("")
        lost = find_lost_indices(expected, identities, self._clock())
        self._identities = identities
        if lost:
            logger.error(
                "%s: documents are missing that OpenSearch had acknowledged. Read the topics again to write them, as "
                "docs/recovery.md says (Rebuilding the index)",
                ", ".join(f"{name} {what}" for name, what in list(lost.items())[:_MAX_NAMED]),
            )
            self._on_lost(list(lost))

    async def _read_identities(self) -> dict[str, IndexIdentity]:
        answer = await self._store.transport.perform_request("GET", _PATH, params={"expand_wildcards": "all"})
        return {name: _to_identity(index["settings"]["index"]) for name, index in answer.items()}


def _to_identity(settings: Mapping[str, Any]) -> IndexIdentity:
    return IndexIdentity(settings["uuid"], settings.get("history", {}).get("uuid", ""))


async def watch_until_cancelled(watch: IndexWatch) -> None:
    """Check until cancelled."""
    while True:
        await watch.check()
        await asyncio.sleep(CHECK_SECONDS)
