"""Namespaces in the index, of which memory has only those of the latest attempts."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from api.index.reading.client import IndexDownError, IndexRefusedError, OpenSearch
from runtime.log_once import LoggedProblem
from schemas.indices import OBSERVATIONS, OCCUPANCY, POD_STATES
from schemas.json_types import Json

READ_SECONDS: Final = 60.0
MAX_NAMESPACES: Final = 60_000
"""Maximum number of namespaces: as many buckets as OpenSearch counts at once."""
_ALIASES: Final = f"{POD_STATES.alias},{OCCUPANCY.alias},{OBSERVATIONS.alias}"
_NAMESPACES: Final[Json] = {
    "size": 0,
    "track_total_hits": False,
    "aggs": {"namespaces": {"terms": {"field": "namespace", "size": MAX_NAMESPACES}}},
}

log = logging.getLogger(__name__)


class NamespacesInIndex:
    """Reader of the namespaces. ``add``: takes them, also those that it has taken before."""

    def __init__(self, index: OpenSearch, add: Callable[[Iterable[str]], None]) -> None:
        self._index, self._add = index, add
        self._trouble = LoggedProblem(partial(log.warning, "namespaces can't be read: %s; trying again"))

    async def follow(self) -> None:
        """Read them again and again until cancelled."""
        while True:
            try:
                await self.read()
                self._trouble.note("")
            except (IndexDownError, IndexRefusedError) as error:
                self._trouble.note(str(error))
            await asyncio.sleep(READ_SECONDS)

    async def read(self) -> None:
        """Read them once. Raises ``IndexDownError``, ``IndexRefusedError``."""
        answer = await self._index.search(_ALIASES, _NAMESPACES)
        buckets = answer.get("aggregations", {}).get("namespaces", {}).get("buckets", ())
        self._add(str(bucket["key"]) for bucket in buckets)
