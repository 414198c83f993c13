"""Whether OpenSearch answers: one probe for all who ask, and nobody waits twice while it hangs."""

import asyncio

from api.index.client import IndexDownError, IndexRefusedError, IndexTimeoutError, OpenSearch


class IndexProbe:
    def __init__(self, index: OpenSearch) -> None:
        self._index = index
        self._probing: asyncio.Task[None] | None = None
        self._problem = ""
        self._hangs = False

    async def problem(self) -> str:
        """Why OpenSearch does not answer; empty where it does.

        Takes two seconds where OpenSearch hangs, and no time from then on: the answer is that of the last probe, until
        one that was begun meanwhile ends otherwise.
        """
        if self._probing is None or self._probing.done():
            self._probing = asyncio.create_task(self._probe())
        if not self._hangs:
            # A caller who leaves does not take the probe from the others.
            await asyncio.shield(self._probing)
        return self._problem

    async def _probe(self) -> None:
        try:
            await self._index.ping()
        except (IndexDownError, IndexRefusedError) as error:
            self._problem, self._hangs = str(error), isinstance(error, IndexTimeoutError)
        else:
            self._problem, self._hangs = "", False
