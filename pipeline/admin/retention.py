"""Deletes daily indices that are older than they are kept: whole indices, never single documents.

The name of an index ends with the day (UTC) on which its attempts started. It is deleted when that day ended longer ago
than the index is kept, unless a placement in it has not ended yet. An index with another name is not ours: it is left.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from opensearchpy import AsyncOpenSearch
from opensearchpy.exceptions import TransportError

from pipeline.settings import Settings
from pipeline.sinks.opensearch import client
from process.addresses import without_user_info
from process.errors import UnreachableError
from schemas.indices import INDICES, Index

Say = Callable[[str], None]

# ASCII: without it `\d` matches the digits of all scripts, which no index of ours has.
_DAY: Final = re.compile(r"\d{4}\.\d\d\.\d\d", re.ASCII)


class Expired(NamedTuple):
    name: str
    since: timedelta
    """How long ago it should have been deleted."""


def expired(index: Index, names: Iterable[str], keep: timedelta, now: datetime) -> Iterator[Expired]:
    """Of the indices called ``names``, those of ``index`` that are kept no longer, oldest first."""
    for name in sorted(names):
        day = _day_of(index, name)
        # One more day than is kept: the index holds attempts up to the end of its day.
        if day and (since := now - (day + timedelta(days=1) + keep)) > timedelta():
            yield Expired(name, since)


def _day_of(index: Index, name: str) -> datetime | None:
    day = name.removeprefix(f"{index.alias}-")
    # Nothing was removed: an index of another alias. `strptime` alone would also take "2026.1.2".
    if day == name or not _DAY.fullmatch(day):
        return None
    try:
        return datetime.strptime(day, "%Y.%m.%d").replace(tzinfo=UTC)
    except ValueError:
        return None


async def keep_clean(settings: Settings, every: timedelta | None, *, dry_run: bool, say: Say) -> None:
    """Delete expired indices once, or ``every`` so often. Raises ``UnreachableError``, unless it runs again anyway."""
    store = client(settings.opensearch_url)
    try:
        while True:
            try:
                await drop_expired(store, settings, datetime.now(UTC), dry_run=dry_run, say=say)
            except UnreachableError as error:
                # A run of a CronJob has to fail so that somebody sees it; one that stays running tries again.
                if every is None:
                    raise
                say(f"{error}; trying again in {every}")
            if every is None:
                return
            await asyncio.sleep(every.total_seconds())
    finally:
        await store.close()


async def drop_expired(store: AsyncOpenSearch, settings: Settings, now: datetime, *, dry_run: bool, say: Say) -> None:
    """Delete expired indices now; ``say`` gets a line about each. Raises ``UnreachableError``."""
    try:
        for index in INDICES:
            keep = timedelta(days=settings.retention_days) if settings.retention_days else index.retention
            # Whole indices: deleting documents only marks them, and costs the index a merge before it frees the disk.
            for old in expired(index, await _names(store, index), keep, now):
                if await _is_needed(store, index, old.name):
                    continue
                if not dry_run:
                    # By its full name and never by a pattern, which could match what is not ours. 404: another run was
                    # faster.
                    await store.transport.perform_request("DELETE", f"/{old.name}", ignore=(404,))
                done = "would be dropped" if dry_run else "dropped"
                say(f"index {old.name}: {done}, {old.since.days} days past the {keep.days} that it is kept")
    except TransportError as error:
        raise UnreachableError(without_user_info(f"OpenSearch at {settings.opensearch_url}: {error}")) from None


async def _is_needed(store: AsyncOpenSearch, index: Index, name: str) -> bool:
    """Does it have a document that has to be kept, such as a placement that has not ended?"""
    if index.kept_while is None:
        return False
    # One such document decides, so a shard stops at the first.
    search = {"query": index.kept_while, "size": 0, "terminate_after": 1}
    found = await store.transport.perform_request("POST", f"/{name}/_search", body=search, ignore=(404,))
    return bool(found.get("hits", {}).get("total", {}).get("value"))


async def _names(store: AsyncOpenSearch, index: Index) -> list[str]:
    # `expand_wildcards`: closed and hidden indices take disk space too.
    path = f"/_cat/indices/{index.alias}-*"
    found: list[dict[str, Any]] = await store.transport.perform_request(
        "GET", path, params={"format": "json", "h": "index", "expand_wildcards": "all"}
    )
    return [entry["index"] for entry in found]
