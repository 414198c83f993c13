"""Whether OpenSearch answers: one probe for all who ask, and none waits long twice while it hangs."""

import asyncio
from typing import Final

from api.index.reading.client import IndexDownError, IndexRefusedError, IndexTimeoutError, OpenSearch

BACK_SECONDS: Final = 0.2
"""How long a caller waits while OpenSearch hung the last time: one that is back answers within that."""


class IndexProbe:
    def __init__(self, index: OpenSearch) -> None:
        self._index = index
        self._probing: asyncio.Task[None] | None = None
        self._problem = ""
        self._hangs = False

    async def problem(self) -> str:
        """Why OpenSearch does not answer; empty where it does.

        Takes two seconds where OpenSearch hangs, and ``BACK_SECONDS`` from then on: the answer is that of the last
        probe, unless the one that is under way ends otherwise.
        """
        if self._probing is None or self._probing.done():
            self._probing = asyncio.create_task(self._probe())
        # A caller who leaves does not take the probe from the others: waiting cancels nothing.
        ended, _ = await asyncio.wait({self._probing}, timeout=BACK_SECONDS if self._hangs else None)
        for probe in ended:
            probe.result()
        return self._problem

    async def _probe(self) -> None:
        try:
            await self._index.ping()
        except (IndexDownError, IndexRefusedError) as error:
            self._problem, self._hangs = str(error), isinstance(error, IndexTimeoutError)
        else:
            self._problem, self._hangs = "", False
