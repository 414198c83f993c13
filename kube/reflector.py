"""Keeping up with all objects of a kind: list, watch, resume where the watch broke off, list again where that fails.

Changes are told on the event loop, in order, each once. What was missed while the connection was down is told after it.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol

from kube import watch_events
from kube.backoff import pauses
from kube.client import Client
from kube.errors import ApiError
from kube.resources import Json, Resource
from kube.store import Change, Listing, Mirror, Ref, Update
from kube.watch_events import Lines

log = logging.getLogger(__name__)

PAGE: Final = 500
_LONG_ENOUGH_SECONDS: Final = 1.0
"""A watch that ends sooner than this was no use: pause before the next."""


class Sink(Protocol):
    """Who is told what changed. Must not raise, and must not wait."""

    def changed(self, found: Json) -> None: ...

    def gone(self, ref: Ref) -> None: ...


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects: of one kind, in one namespace (empty: all), by label and field selectors."""

    resource: Resource
    namespace: str = ""
    labels: str = ""
    fields: str = ""

    @property
    def path(self) -> str:
        return self.resource.collection(self.namespace)

    @property
    def query(self) -> dict[str, str | int]:
        said: dict[str, str | int] = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: value for name, value in said.items() if value}


@dataclass(frozen=True, slots=True)
class Patience:
    """silence: a watch that says nothing for so long is dead (the server sends a bookmark a minute). stale: for how
    long a broken watch still counts as in sync. watch: how long the server is asked to keep one watch up."""

    silence_seconds: float = 100.0
    stale_seconds: float = 15.0
    watch_seconds: int = 420


class Reflector:
    """`restarts` counts the watches that broke; `heard` is when the server last spoke (monotonic)."""

    def __init__(
        self,
        client: Client,
        selection: Selection,
        sink: Sink,
        patience: Patience = Patience(),
        clock: Callable[[], float] = time.monotonic,
        rng: Random | None = None,
    ) -> None:
        self._client, self._selection, self._sink = client, selection, sink
        self._patience, self._clock, self._rng = patience, clock, rng or Random()  # noqa: S311 - no secret
        self._mirror = Mirror()
        self._is_listed = asyncio.Event()
        self._broken_since: float | None = None
        self._trouble = ""
        self.restarts = 0
        self.heard = clock()

    def __len__(self) -> int:
        return len(self._mirror)

    @property
    def problem(self) -> str:
        """Why what was told does not show the cluster as it is; empty while it does."""
        plural = self._selection.resource.plural
        if not self._is_listed.is_set():
            return f"{plural} are being listed" + (f" ({self._trouble})" if self._trouble else "")
        if self._broken_since is not None and self._clock() - self._broken_since > self._patience.stale_seconds:
            return f"the watch of {plural} is broken ({self._trouble})"
        return ""

    @property
    def trouble(self) -> str:
        """What the server last said against it; empty once it goes on."""
        return self._trouble

    async def synced(self) -> None:
        """Return when the first list is whole."""
        await self._is_listed.wait()

    def absorb(self, found: Json) -> None:
        """Take an object as our own write, or a read of it, was answered; the watch's echo then changes nothing."""
        self._tell(self._mirror.take(found))

    async def run(self) -> None:
        """Keep up for ever."""
        waits = pauses(self._rng)
        while True:
            began = self._clock()
            try:
                if not self._mirror.version:
                    await self.relist()
                    self._is_listed.set()
                await self._watch()
            except ApiError as error:
                self._lament(error)
            if self.heard - began >= _LONG_ENOUGH_SECONDS:
                waits = pauses(self._rng)
            if self._trouble or self._clock() - began < _LONG_ENOUGH_SECONDS:
                await asyncio.sleep(next(waits))
            self.restarts += 1

    def _lament(self, error: ApiError) -> None:
        if error.is_expired:
            self._mirror.version = ""
        if self._broken_since is None:
            self._broken_since = self._clock()
            log.info("the watch of %s broke: %s", self._selection.resource.plural, error)
        self._trouble = str(error)

    async def relist(self) -> None:
        """Read everything as it is now, also while a watch goes on. Raises `ApiError`; what was told then stays."""
        listing = Listing(self._mirror)
        try:
            await self._list(listing, PAGE)
        except ApiError as error:
            if not error.is_expired:
                raise
            # The pages took longer than the server keeps old versions.
            await self._list(Listing(self._mirror), 0)

    async def _list(self, listing: Listing, limit: int) -> None:
        following = ""
        while True:
            asked: dict[str, str | int] = {"limit": limit} if limit else {}
            asked |= {"continue": following} if following else {}
            page = await self._client.page(self._selection.path, **self._selection.query, **asked)
            self._hear()
            self._tell(listing.page(page.get("items") or ()))
            following = page["metadata"].get("continue", "")
            if not following:
                self._tell(listing.end(page["metadata"]["resourceVersion"]))
                return

    async def _watch(self) -> None:
        """Follow the changes until the server ends the watch."""
        lines = Lines()
        asked: dict[str, str | int] = {
            **self._selection.query,
            "resourceVersion": self._mirror.version,
            "allowWatchBookmarks": "true",
            # Spread, so that the watches of a cluster do not all end in one moment.
            "timeoutSeconds": int(self._patience.watch_seconds * (1 + self._rng.random())),
        }
        silence = self._patience.silence_seconds
        async with self._client.watch(self._selection.path, silence_seconds=silence, **asked) as parts:
            self._hear()
            async for part in parts:
                for line in lines.feed(part):
                    self._tell(self._mirror.notice(watch_events.read(line)))
                self._hear()

    def _hear(self) -> None:
        self.heard, self._broken_since, self._trouble = self._clock(), None, ""

    def _tell(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if isinstance(change, Update):
                self._sink.changed(change.found)
            else:
                self._sink.gone(change.ref)
