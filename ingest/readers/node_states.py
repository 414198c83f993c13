"""The states of nodes' devices as a log shows them: revisions from their content, and which are to be emitted."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Annotated, Any, Final, NamedTuple

import orjson
from pydantic import ConfigDict, PlainSerializer, PlainValidator, TypeAdapter

from runtime.bounded_cache import BoundedCache
from schemas.events import NOT_REPORTED, DeviceKind, NodeStateChanged

EMITTED_AGAIN_AFTER: Final = timedelta(days=1)
"""Log time, so that retention deletes no state that a later verdict refers to."""
MAX_STATES: Final = 20_000
"""Emitted states that are remembered; one that is forgotten is at worst emitted once more."""

_REVISION_BITS: Final = 53
"""What every JSON reader keeps of a number exactly."""
_SAVED: Final = TypeAdapter(list[tuple[str, int, datetime]], config=ConfigDict(defer_build=True))


class LoggedState(NamedTuple):
    """What an attempt's lines and the registrations show of the devices of one node."""

    node: str
    """Empty for devices of which the log does not name the node."""
    revision: int
    columns: dict[str, Any]
    """As in ``NodeStateChanged``."""

    @property
    def uuids(self) -> list[str]:
        uuids: list[str] = self.columns["uuid"]
        return uuids

    def event(self, cluster: str, scheduler: str, observed_at: datetime) -> NodeStateChanged:
        return NodeStateChanged(
            cluster=cluster, node=self.node, observed_at=observed_at, scheduler=scheduler, epoch=0,
            revision=self.revision,
            **self.columns,
        )  # fmt: skip


def logged_state(node: str, uuid: list[str], kinds: list[DeviceKind], **columns: list[Any]) -> LoggedState:
    """The state of these devices; of a column that is not given, the log reports nothing."""
    unreported = [NOT_REPORTED] * len(uuid)
    names = ("index", "numa", "memory_used_mib", "cores_used_percent", "slots_used")
    # A log names the devices that are unhealthy or cordoned, and no other.
    whole: dict[str, Any] = {"healthy": [True] * len(uuid), "cordoned": [False] * len(uuid)}
    whole |= dict.fromkeys(names, unreported) | columns | {"uuid": uuid, "kinds": kinds}
    return LoggedState(node, _revision(whole), whole)


def _revision(columns: Mapping[str, Any]) -> int:
    """The same for the same content, in every process: a log that is read again gives the same ids."""
    content = orjson.dumps(columns, default=dict, option=orjson.OPT_SORT_KEYS)
    return int.from_bytes(blake2b(content, digest_size=8).digest()) >> (64 - _REVISION_BITS)


class EmittedStates:
    """The latest state of each node that was emitted: an equal one is emitted again only after a day of log time."""

    def __init__(self) -> None:
        self._latest: BoundedCache[str, tuple[int, datetime]] = BoundedCache(MAX_STATES)

    def is_due(self, state: LoggedState, at: datetime) -> bool:
        """True where the state has to be emitted with an attempt that started at that time; it then counts as emitted.

        A state is searched for in the index of the attempt's day and of the day before (UTC).
        """
        at = at.astimezone(UTC)
        # Of devices without a node there are many states side by side, and none replaces another.
        key = state.node or f"/{state.revision}"
        known = self._latest.get(key)
        # Attempts are emitted as they end: one that started a day before the state may come after it.
        if (
            known
            and known[0] == state.revision
            and at - known[1] < EMITTED_AGAIN_AFTER
            and at.date() >= known[1].date()
        ):
            return False
        self._latest.put(key, (state.revision, at))
        return True

    def saved(self) -> list[tuple[str, int, datetime]]:
        return [(key, *known) for key in self._latest if (known := self._latest.get(key))]

    @classmethod
    def restored(cls, saved: Any) -> "EmittedStates":
        """Raises ``ValidationError`` for what ``saved`` did not return."""
        states = cls()
        for key, revision, at in _SAVED.validate_python(saved):
            states._latest.put(key, (revision, at))
        return states


SavedEmittedStates = Annotated[
    EmittedStates, PlainValidator(EmittedStates.restored), PlainSerializer(EmittedStates.saved)
]
"""A field of what a reader saves in a checkpoint."""
