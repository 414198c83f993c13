"""Namespaces with a record, in all clusters: the names by which answers are redacted."""

import asyncio
import logging
from collections.abc import Iterable
from functools import partial
from typing import Final

from api.index.reading.client import IndexDownError, IndexRefusedError, OpenSearch
from runtime.log_once import LoggedProblem
from schemas.indices import OBSERVATIONS, OCCUPANCY, POD_STATES
from schemas.json_types import Json

MAX_NAMESPACES: Final = 60_000
"""Maximum number of namespaces: as many buckets as OpenSearch counts at once."""
READ_SECONDS: Final = 60.0
_ALIASES: Final = f"{POD_STATES.alias},{OCCUPANCY.alias},{OBSERVATIONS.alias}"
_NAMESPACES: Final[Json] = {
    "size": 0,
    "track_total_hits": False,
    "aggs": {"namespaces": {"terms": {"field": "namespace", "size": MAX_NAMESPACES}}},
}

log = logging.getLogger(__name__)


class KnownNamespaces:
    """Namespaces by name. They are never removed: texts name a namespace long after its end."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    @property
    def revision(self) -> int:
        """Number that changes with every new namespace."""
        return len(self.names)

    def add(self, names: Iterable[str]) -> None:
        if len(self.names) < MAX_NAMESPACES:
            self.names.update(filter(None, names))


class NamespacesInIndex:
    """Reader of the namespaces in the index, of which memory has only those of the latest attempts."""

    def __init__(self, index: OpenSearch, namespaces: KnownNamespaces) -> None:
        self._index, self._namespaces = index, namespaces
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
        self._namespaces.add(str(bucket["key"]) for bucket in buckets)
