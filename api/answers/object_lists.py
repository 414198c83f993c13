"""Lists of objects of the API server: read in pages, trimmed, bounded, and remembered for a moment for all questions.

People ask about several pods when a cluster has a problem, and each answer needs the same nodes, pods and queues.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from api.answers.object_api import Objects
from engine.snapshot.case_objects import Key, collect_objects
from engine.snapshot.needed_kinds import API_GROUPS, EVENTS, GroupVersions, ListedKind, parse_versions
from engine.snapshot.trimming import trim_object
from engine.summaries.foreign_namespaces import KnownNamespaces
from runtime.kubernetes.errors import NO_ANSWER, KubeApiError
from runtime.kubernetes.object_fields import Fields, get_text, iterate_objects

T = TypeVar("T")

PAGE: Final = 500
MAX_OBJECTS: Final = 20_000
"""Maximum number of objects of a list in the whole cluster."""
MAX_NAMESPACE_OBJECTS: Final = 5_000
MAX_EVENTS: Final = 2_000
MAX_LISTS: Final = 200
"""Maximum number of lists in memory."""
CLUSTER_SECONDS: Final = 15.0
"""Time for which a list of the whole cluster is remembered: it is the longest to read."""
NAMESPACE_SECONDS: Final = 5.0
MAX_SECONDS: Final = 120.0
SHARE_OF_TIME: Final = 10
"""Factor of the time that a list takes: reading lists of a large cluster takes at most a tenth of the time."""
VERSIONS_SECONDS: Final = 60.0
REFUSAL_SECONDS: Final = 60.0
"""Time for which a refusal is remembered: an administrator changes rights rarely."""


@dataclass(frozen=True, slots=True)
class ObjectList:
    """Objects of one list by namespace and name."""

    kind: str
    table: Mapping[Key, Fields] = field(default_factory=dict)
    error: KubeApiError | None = None
    """Refusal or failure for which some or all objects are missing."""
    is_cut: bool = False
    """True if there are more objects than a list may have."""
    is_of_cluster: bool = False
    """True if it has the objects of all namespaces, or of none."""


class ObjectLists:
    """Lists by path, each read once at a time."""

    def __init__(self, api: Objects, namespaces: KnownNamespaces | None = None) -> None:
        """Read from ``api``; the namespaces of what was read join ``namespaces``."""
        self._api, self._namespaces = api, namespaces or KnownNamespaces()
        self._lists: _SharedAnswers[ObjectList] = _SharedAnswers(MAX_LISTS)
        self._versions: _SharedAnswers[GroupVersions] = _SharedAnswers(1)

    async def read_versions(self) -> GroupVersions:
        """Read the API groups of the cluster; none if they can't be read."""
        return await self._versions.get(API_GROUPS, self._ask_versions)

    async def _ask_versions(self) -> tuple[GroupVersions, float]:
        try:
            return parse_versions(await self._api.get(API_GROUPS)), VERSIONS_SECONDS
        except KubeApiError:
            return GroupVersions({}), NAMESPACE_SECONDS

    async def read(self, listed: ListedKind) -> ObjectList:
        """Read a list; a kind that the cluster does not have has no objects."""
        key = f"{listed.path}?{sorted(listed.query.items())}"
        try:
            return await self._lists.get(key, lambda: self._ask_list(listed))
        except _FullError:
            return ObjectList(listed.kind, error=KubeApiError(NO_ANSWER, f"{MAX_LISTS} lists are in memory already"))

    async def _ask_list(self, listed: ListedKind) -> tuple[ObjectList, float]:
        is_of_namespace = "/namespaces/" in listed.path
        seconds = NAMESPACE_SECONDS if is_of_namespace else CLUSTER_SECONDS
        limit = MAX_NAMESPACE_OBJECTS if is_of_namespace else MAX_OBJECTS
        limit = MAX_EVENTS if listed.kind.partition(".")[0] == EVENTS else limit
        table: dict[Key, Fields] = {}
        started = time.monotonic()
        try:
            is_cut = await self._read_pages(listed, limit, table)
        except KubeApiError as error:
            if error.is_missing:
                return ObjectList(listed.kind), VERSIONS_SECONDS
            seconds = REFUSAL_SECONDS if error.status in (401, 403) else NAMESPACE_SECONDS
            return ObjectList(listed.kind, table, error), seconds
        seconds = min(max(seconds, SHARE_OF_TIME * (time.monotonic() - started)), MAX_SECONDS)
        return ObjectList(listed.kind, table, is_cut=is_cut, is_of_cluster=not is_of_namespace), seconds

    async def _read_pages(self, listed: ListedKind, limit: int, table: dict[Key, Fields]) -> bool:
        """Read the pages into the table; true if there is more than the limit."""
        position: dict[str, str] = {}
        while True:
            page = await self._api.read_page(listed.path, limit=PAGE, **listed.query, **position)
            items = [trim_object(listed.kind, _name_kind(listed, item)) for item in iterate_objects(page, "items")]
            table |= (objects := collect_objects(items).tables.get(listed.kind, {}))
            self._namespaces.add(namespace for namespace, _ in objects)
            token = get_text(page, "metadata", "continue")
            if not token or len(table) >= limit:
                return bool(token)
            position = {"continue": token}
            # A large list must not hold up the other requests of this process.
            await asyncio.sleep(0)


def _name_kind(listed: ListedKind, item: Fields) -> Fields:
    """Name version and kind of an object, which API servers leave out of lists."""
    name, _, group = listed.kind.partition(".")
    version = f"{group}/{listed.path.split('/')[3]}" if group else "v1"
    return {**item, "apiVersion": version, "kind": name}


class _FullError(Exception):
    """Refusal of a question because as many answers as allowed are in memory."""


class _SharedAnswers(Generic[T]):
    """Answers by key. Each is asked for once, and forgotten when its time has passed, also if nobody asks again."""

    def __init__(self, max_answers: int) -> None:
        self._max_answers = max_answers
        self._tasks: dict[str, asyncio.Task[tuple[T, float]]] = {}

    async def get(self, key: str, ask: Callable[[], Awaitable[tuple[T, float]]]) -> T:
        """Return the answer; ``ask`` returns it with the seconds for which it holds. Raises ``_FullError``."""
        task = self._tasks.get(key)
        if task is None:
            if len(self._tasks) >= self._max_answers:
                raise _FullError
            task = self._tasks[key] = asyncio.ensure_future(ask())
            task.add_done_callback(lambda done: self._schedule_forgetting(key, done))
        # A caller who hangs up must not take the answer from the others who wait for it.
        return (await asyncio.shield(task))[0]

    def _schedule_forgetting(self, key: str, task: asyncio.Task[tuple[T, float]]) -> None:
        seconds = 0.0 if task.cancelled() or task.exception() else task.result()[1]
        task.get_loop().call_later(seconds, self._tasks.pop, key, None)
