"""Availability of OpenSearch: one probe for all callers, none of whom waits long twice while it hangs."""

import asyncio
from typing import Final

from api.index.reading.client import IndexDownError, IndexRefusedError, IndexTimeoutError, OpenSearch

BACK_SECONDS: Final = 0.2
"""Wait of a caller after a probe that hung: an OpenSearch that is back answers within that time."""


class IndexProbe:
    def __init__(self, index: OpenSearch) -> None:
        self._index = index
        self._probing: asyncio.Task[None] | None = None
        self._problem = ""
        self._hangs = False

    async def find_problem(self) -> str:
        """Find why OpenSearch does not answer; empty if it does.

        Takes two seconds while OpenSearch hangs, and ``BACK_SECONDS`` from then on: the answer is that of the last
        probe, unless the current one ends before.
        """
        if self._probing is None or self._probing.done():
            self._probing = asyncio.create_task(self._probe())
        # A caller who leaves does not take the probe from the others: ``wait`` cancels nothing.
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
