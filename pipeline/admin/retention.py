"""Retention: deletes indices that are older than they are kept, and single documents of the states of pods.

The name of an index ends with the first day (UTC) of the day or month of its attempts. It is deleted when that time
ended longer ago than the index is kept, and it was made as long ago: a log of years ago that is read today is kept from
today on. A family that has more bytes than its limit loses its oldest indices earlier than that. An index with a
placement that has not ended yet, or with documents of a cluster whose data is to be kept, is left. An index with
another name is not ours: it is left. Where a family's days have little, the index of its next month is made as well,
and the trends' minutes of a week ago are summed up into hours.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any, NamedTuple

from opensearchpy import AsyncOpenSearch
from opensearchpy.exceptions import TransportError

from pipeline.admin.document_deletion import delete_documents
from pipeline.admin.months import choose_next_month
from pipeline.admin.trend_hours import SummedHours, sum_up_hours
from pipeline.settings import RetentionSettings
from runtime.errors import UnreachableError
from runtime.opensearch.client import create_client
from runtime.opensearch.refusals import explain_refusal
from runtime.opensearch.roles import PROVISIONER
from schemas.codec.records import format_rfc3339
from schemas.index_family import Index
from schemas.indices import INDICES, OF_DAYS, TRENDS


@dataclass(frozen=True, slots=True)
class Dropped:
    """A deleted index, or deleted documents of one."""

    index: str
    kept_days: int
    is_dry_run: bool
    days_past: int | None = None
    """Days since the index should have been deleted; None for documents."""
    documents: int | None = None
    """Number of documents; None: the index itself."""
    bytes_over: int | None = None
    """Bytes that the family had above its limit; None where the time was the reason."""

    def __str__(self) -> str:
        done = "would be dropped" if self.is_dry_run else "dropped"
        if self.documents is not None:
            return f"index {self.index}: {self.documents} documents {done}"
        if self.bytes_over is not None:
            return f"index {self.index}: {done}, its family had {self.bytes_over:,} bytes above its limit"
        return f"index {self.index}: {done}, {self.days_past} days past the {self.kept_days} that it is kept"


@dataclass(frozen=True, slots=True)
class MadeMonth:
    """An index made for the next month, in place of one a day."""

    index: str
    expected_bytes: int
    is_dry_run: bool

    def __str__(self) -> str:
        done = "would be made" if self.is_dry_run else "made"
        return f"index {self.index}: {done} for the whole month, with {self.expected_bytes:,} bytes expected"


Item = Dropped | MadeMonth | SummedHours | str
"""A thing done; a text is about a run that failed."""
Say = Callable[[Item], None]


def to_json_line(item: Item) -> str:
    """Encode the item as a JSON object; a text, about a run that failed, is its ``error``."""
    return json.dumps({"error": item} if isinstance(item, str) else asdict(item))


class Expired(NamedTuple):
    name: str
    since: timedelta
    """Time since it should have been deleted."""


class Stored(NamedTuple):
    """An index as OpenSearch has it."""

    made_at: datetime
    size: int = 0
    """Bytes on the disks, replicas included."""
    primary_size: int = 0
    """Bytes of the primary shards."""


def derive_retention(settings: RetentionSettings, index: Index) -> timedelta:
    """Derive how long indices of the family are kept."""
    return settings.retention_by_family.get(index.family) or settings.retention or index.retention


def list_expired(index: Index, made_at: Mapping[str, datetime], keep: timedelta, now: datetime) -> Iterator[Expired]:
    """List the indices of ``index`` in ``made_at`` (creation time by name) whose retention has passed, oldest first."""
    for name in sorted(made_at):
        if (kept_from := _derive_start(index, name, made_at[name])) and (since := now - kept_from - keep) > timedelta():
            yield Expired(name, since)


def list_oldest(index: Index, made_at: Mapping[str, datetime], now: datetime) -> list[str]:
    """List the indices of ``index`` whose time has ended, the one that has been kept longest first."""
    starts = {name: start for name in made_at if (start := _derive_start(index, name, made_at[name]))}
    return [name for name, start in sorted(starts.items(), key=itemgetter(1)) if start < now]


def _derive_start(index: Index, name: str, made_at: datetime) -> datetime | None:
    """Derive the time from which the index is kept; None for one that is not of this family."""
    # The index holds attempts up to the end of its time.
    end = index.parse_end(name)
    return max(end, made_at) if end else None


async def keep_clean(
    settings: RetentionSettings,
    every: timedelta | None,
    *,
    dry_run: bool,
    say: Say,
    families: Sequence[Index] = INDICES,
) -> None:
    """Delete expired indices of ``families`` once, or ``every`` so often.

    Raises ``UnreachableError``, unless it runs again anyway.
    """
    store = create_client(settings)
    try:
        while True:
            try:
                await drop_expired(store, settings, datetime.now(UTC), dry_run=dry_run, say=say, families=families)
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


async def drop_expired(
    store: AsyncOpenSearch,
    settings: RetentionSettings,
    now: datetime,
    *,
    dry_run: bool,
    say: Say,
    families: Sequence[Index] = INDICES,
) -> None:
    """Delete expired indices now, sum up hours, and make indices of the next month; ``say`` gets each. Raises
    ``UnreachableError``."""
    run = _Cleaning(store, settings, now, dry_run, say)
    left: dict[str, Mapping[str, Stored]] = {}
    try:
        for index in INDICES:
            if index in families or index.family in settings.retention_sizes or index is TRENDS:
                left[index.alias] = await _clean_family(run, index, by_age=index in families)
        # Clusters whose data is kept keep their minutes, and so does every other beside them.
        if not settings.kept_clusters:
            summed = await sum_up_hours(store, list(left[TRENDS.alias]), now, dry_run=dry_run)
            if summed.documents:
                say(summed)
        # Last: an account that may not make indices still deletes them.
        for alias, index in OF_DAYS.items():
            if index in families and index.family not in settings.retention_sizes:
                await _make_next_month(run, index, left[alias])
    except TransportError as error:
        cause = explain_refusal(error, f"the role {PROVISIONER}")
        raise UnreachableError(f"OpenSearch at {settings.opensearch_url}: {cause}") from None


@dataclass(frozen=True, slots=True)
class _Cleaning:
    """One run over all families."""

    store: AsyncOpenSearch
    settings: RetentionSettings
    now: datetime
    is_dry_run: bool
    say: Say

    async def drop(self, index: Index, name: str, item: Dropped) -> bool:
        """Delete the index, unless something in it has to be kept; return whether it was deleted."""
        if await _is_needed(self.store, index, name, self.settings.kept_clusters):
            return False
        if not self.is_dry_run:
            # By its full name and never by a pattern, which could match what is not ours. 404: another run was faster.
            await self.store.transport.perform_request("DELETE", f"/{name}", ignore=(404,))
        self.say(item)
        return True


async def _clean_family(run: _Cleaning, index: Index, *, by_age: bool) -> Mapping[str, Stored]:
    """Delete what has expired and what is above the limit; return the indices that have not expired."""
    keep = derive_retention(run.settings, index)
    stored = await _read_stored(run.store, index)
    # Whole indices: deleting documents only marks them, and costs the index a merge before it frees the disk.
    for old in list_expired(index, _list_creation_times(stored), keep, run.now) if by_age else ():
        item = Dropped(old.name, keep.days, run.is_dry_run, days_past=old.since.days)
        if await run.drop(index, old.name, item):
            del stored[old.name]
    if limit := run.settings.retention_sizes.get(index.family):
        await _drop_oversized(run, index, stored, limit)
    if by_age and index.period == "all":
        before, kept_clusters = run.now - keep, run.settings.kept_clusters
        if count := await _drop_documents(run.store, index, before, kept_clusters, dry_run=run.is_dry_run):
            run.say(Dropped(index.alias, keep.days, run.is_dry_run, documents=count))
    return stored


async def _make_next_month(run: _Cleaning, index: Index, stored: Mapping[str, Stored]) -> None:
    """Make the index of the next month, where the family's days have little.

    A family with a limit of bytes keeps an index a day: of a whole month nothing could be deleted before it ends.
    """
    month = choose_next_month(index, {name: item.primary_size for name, item in stored.items()}, run.now)
    if month is None:
        return
    if not run.is_dry_run:
        # 400: another run was faster.
        await run.store.transport.perform_request("PUT", f"/{month.name}", ignore=(400,))
    run.say(MadeMonth(month.name, month.expected_bytes, run.is_dry_run))


async def _drop_oversized(run: _Cleaning, index: Index, stored: Mapping[str, Stored], limit: int) -> None:
    """Delete the oldest indices until the family has no more bytes than its limit, or only such that have to be
    kept."""
    keep = derive_retention(run.settings, index)
    over = sum(item.size for name, item in stored.items() if index.parse_end(name)) - limit
    for name in list_oldest(index, _list_creation_times(stored), run.now):
        if over <= 0:
            return
        if await run.drop(index, name, Dropped(name, keep.days, run.is_dry_run, bytes_over=over)):
            over -= stored[name].size
    if over > 0:
        run.say(f"index {index.alias}: {over:,} bytes above its limit, and no index left that may be deleted")


def _list_creation_times(stored: Mapping[str, Stored]) -> dict[str, datetime]:
    return {name: item.made_at for name, item in stored.items()}


async def _drop_documents(
    store: AsyncOpenSearch, index: Index, before: datetime, kept_clusters: tuple[str, ...], *, dry_run: bool
) -> int:
    """Delete the documents that were written about an earlier time, one by one; return their number."""
    query = {
        "bool": {
            "filter": [{"range": {"@timestamp": {"lt": format_rfc3339(before)}}}],
            "must_not": _match_clusters(kept_clusters),
        }
    }
    if not dry_run:
        return await delete_documents(store, f"{index.alias}-*", query)
    params = {"ignore_unavailable": "true", "allow_no_indices": "true"}
    path = f"/{index.alias}-*/_count"
    answer = await store.transport.perform_request("POST", path, params=params, body={"query": query})
    return int(answer["count"])


def _match_clusters(clusters: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{"terms": {"cluster": list(clusters)}}] if clusters else []


async def _is_needed(store: AsyncOpenSearch, index: Index, name: str, kept_clusters: tuple[str, ...]) -> bool:
    """Tell whether the index has a document that has to be kept, such as a placement that has not ended."""
    wanted = [*_match_clusters(kept_clusters), *([index.kept_while] if index.kept_while else [])]
    if not wanted:
        return False
    # One such document decides, so a shard stops at the first.
    search = {"query": {"bool": {"should": wanted}}, "size": 0, "terminate_after": 1}
    answer = await store.transport.perform_request("POST", f"/{name}/_search", body=search, ignore=(404,))
    return bool(answer.get("hits", {}).get("total", {}).get("value"))


async def _read_stored(store: AsyncOpenSearch, index: Index) -> dict[str, Stored]:
    # `expand_wildcards`: closed and hidden indices take disk space too.
    path = f"/_cat/indices/{index.alias}-*"
    columns = {"format": "json", "h": "index,creation.date,store.size,pri.store.size", "bytes": "b"}
    rows: list[dict[str, Any]] = await store.transport.perform_request(
        "GET", path, params=columns | {"expand_wildcards": "all"}
    )
    # Milliseconds since 1970. A closed index has no size there.
    return {
        row["index"]: Stored(
            datetime.fromtimestamp(int(row["creation.date"]) / 1000, UTC),
            int(row.get("store.size") or 0),
            int(row.get("pri.store.size") or 0),
        )
        for row in rows
    }
