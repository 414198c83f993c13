"""Reflector: lists and watches all objects of a kind, resumes a broken watch where it stopped, or else lists again.

The handler receives every change once, in order, on the event loop; changes that were missed while the connection was
down follow when it is back.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol

from runtime.backoff import draw_backoff_seconds
from runtime.kubernetes import watch_events
from runtime.kubernetes.client import PAGE_LIMIT, Client
from runtime.kubernetes.errors import KubeApiError
from runtime.kubernetes.resources import Resource
from runtime.kubernetes.store import Change, ObjectRef, ObjectStore, PagedList, Update
from runtime.kubernetes.watch_events import LineSplitter
from schemas.json_types import Json

log = logging.getLogger(__name__)

_MIN_WATCH_SECONDS: Final = 1.0
"""Length of a watch below which a pause follows: a server that refuses watches must not get them in a loop."""


class ChangeHandler(Protocol):
    """Receiver of the changes. Its methods must not raise and must not block."""

    def on_changed(self, obj: Json) -> None: ...

    def on_deleted(self, ref: ObjectRef) -> None: ...


@dataclass(frozen=True, slots=True)
class Selection:
    """Objects to follow: of one kind, in one namespace (empty: all), by label and field selectors."""

    resource: Resource
    namespace: str = ""
    labels: str = ""
    fields: str = ""

    @property
    def path(self) -> str:
        return self.resource.build_collection_path(self.namespace)

    @property
    def query(self) -> dict[str, str | int]:
        selectors: dict[str, str | int] = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: value for name, value in selectors.items() if value}


@dataclass(frozen=True, slots=True)
class WatchTimeouts:
    """Limits of the time that a watch may be silent, broken and open."""

    silence_seconds: float = 100.0
    """Seconds of silence after which a watch counts as dead: the server sends a bookmark every minute."""
    stale_seconds: float = 15.0
    """Seconds during which a broken watch still counts as in sync."""
    watch_seconds: int = 420
    """Seconds for which we ask the server to keep one watch open."""


class Reflector:
    """Follower of one selection. `restarts` counts the watches that ended; `heard_at` is the time of the server's last
    message (monotonic).
    """

    def __init__(
        self,
        client: Client,
        selection: Selection,
        handler: ChangeHandler,
        timeouts: WatchTimeouts = WatchTimeouts(),
        clock: Callable[[], float] = time.monotonic,
        rng: Random | None = None,
    ) -> None:
        self._client, self._selection, self._handler = client, selection, handler
        self._timeouts, self._clock, self._rng = timeouts, clock, rng or Random()  # noqa: S311 - no secret
        self._store = ObjectStore()
        self._is_listed = asyncio.Event()
        self._broken_since: float | None = None
        self._last_error = ""
        self.restarts = 0
        self.heard_at = clock()

    def __len__(self) -> int:
        return len(self._store)

    @property
    def problem(self) -> str:
        """Reason why the handler may lack the present state of the cluster; empty while it has it."""
        plural = self._selection.resource.plural
        if not self._is_listed.is_set():
            return f"{plural} are being listed" + (f" ({self._last_error})" if self._last_error else "")
        if self._broken_since is not None and self._clock() - self._broken_since > self._timeouts.stale_seconds:
            return f"the watch of {plural} is broken ({self._last_error})"
        return ""

    @property
    def last_error(self) -> str:
        """The last error of the list or watch; empty again when the watch works."""
        return self._last_error

    async def wait_until_synced(self) -> None:
        """Wait until the first list is complete."""
        await self._is_listed.wait()

    def apply_own_write(self, obj: Json) -> None:
        """Take an object that the server returned for our own request; the watch event that repeats it is ignored."""
        self._report(self._store.apply_object(obj))

    async def run(self) -> None:
        """List and watch until cancelled."""
        pauses = draw_backoff_seconds(self._rng)
        while True:
            started_at = self._clock()
            try:
                if not self._store.version:
                    await self.relist()
                    self._is_listed.set()
                await self._watch()
            except KubeApiError as error:
                self._note_failure(error)
            # It worked for a while, so the next failure is a new one and begins with short pauses.
            if self.heard_at - started_at >= _MIN_WATCH_SECONDS:
                pauses = draw_backoff_seconds(self._rng)
            if self._last_error or self._clock() - started_at < _MIN_WATCH_SECONDS:
                await asyncio.sleep(next(pauses))
            self.restarts += 1

    def _note_failure(self, error: KubeApiError) -> None:
        if error.is_expired:
            # Only a list can help: the server has forgotten the version at which the watch would continue.
            self._store.version = ""
        if self._broken_since is None:
            self._broken_since = self._clock()
            log.info("the watch of %s broke: %s", self._selection.resource.plural, error)
        self._last_error = str(error)

    async def relist(self) -> None:
        """List everything again, also while a watch runs. Raises `KubeApiError`."""
        # Pages are applied as they come: the handler need not wait for the last of ten pages.
        listing = PagedList(self._store)
        try:
            await self._list(listing, PAGE_LIMIT)
        except KubeApiError as error:
            if not error.is_expired:
                raise
            # Reading the pages took longer than the server keeps old versions: read all of it in one request.
            await self._list(PagedList(self._store), 0)

    async def _list(self, listing: PagedList, limit: int) -> None:
        continue_token = ""
        while True:
            query: dict[str, str | int] = {"limit": limit} if limit else {}
            query |= {"continue": continue_token} if continue_token else {}
            page = await self._client.get_page(self._selection.path, **self._selection.query, **query)
            # Only a complete list has what a broken watch missed.
            self.heard_at = self._clock()
            self._report(listing.add_page(page.get("items") or ()))
            continue_token = page["metadata"].get("continue", "")
            if not continue_token:
                self._report(listing.finish(page["metadata"]["resourceVersion"]))
                self._note_contact()
                return

    async def _watch(self) -> None:
        """Follow the changes until the server ends the watch."""
        lines = LineSplitter()
        query: dict[str, str | int] = {
            **self._selection.query,
            # Without a version a watch would begin with all objects again.
            "resourceVersion": self._store.version,
            # Bookmarks move the version on while nothing of the selection changes; else a quiet watch would resume at a
            # version that the server has forgotten (410).
            "allowWatchBookmarks": "true",
            # Spread at random, so that the watches of many clients do not all end in the same moment.
            "timeoutSeconds": int(self._timeouts.watch_seconds * (1 + self._rng.random())),
        }
        silence = self._timeouts.silence_seconds
        async with self._client.watch(self._selection.path, silence_seconds=silence, **query) as parts:
            self._note_contact()
            async for part in parts:
                for line in lines.split(part):
                    self._report(self._store.apply_event(watch_events.decode_event(line)))
                self._note_contact()

    def _note_contact(self) -> None:
        self.heard_at, self._broken_since, self._last_error = self._clock(), None, ""

    def _report(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if isinstance(change, Update):
                self._handler.on_changed(change.obj)
            else:
                self._handler.on_deleted(change.ref)
