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
"""The bits of a number that every JSON parser keeps exactly."""
_SAVED: Final = TypeAdapter(list[tuple[str, int, datetime]], config=ConfigDict(defer_build=True))


class LoggedState(NamedTuple):
    """The devices of one node, from an attempt's lines and the registrations."""

    node: str
    """Empty for devices whose node the log does not name."""
    revision: int
    columns: dict[str, Any]
    """Columns of ``NodeStateChanged``."""

    @property
    def uuids(self) -> list[str]:
        uuids: list[str] = self.columns["uuid"]
        return uuids

    def to_event(self, cluster: str, scheduler: str, observed_at: datetime) -> NodeStateChanged:
        return NodeStateChanged(
            cluster=cluster, node=self.node, observed_at=observed_at, scheduler=scheduler, epoch=0,
            revision=self.revision,
            **self.columns,
        )  # fmt: skip


def build_logged_state(node: str, uuid: list[str], kinds: list[DeviceKind], **columns: list[Any]) -> LoggedState:
    """Build the state of these devices; a missing column means that the log reports nothing about it."""
    unreported = [NOT_REPORTED] * len(uuid)
    names = ("index", "numa", "memory_used_mib", "cores_used_percent", "slots_used")
    # A log names the devices that are unhealthy or cordoned, and no other.
    all_columns: dict[str, Any] = {"healthy": [True] * len(uuid), "cordoned": [False] * len(uuid)}
    all_columns |= dict.fromkeys(names, unreported) | columns | {"uuid": uuid, "kinds": kinds}
    return LoggedState(node, _derive_revision(all_columns), all_columns)


def _derive_revision(columns: Mapping[str, Any]) -> int:
    """Derive the revision from the content, so that a log that is read again gives the same ids in every process."""
    content = orjson.dumps(columns, default=dict, option=orjson.OPT_SORT_KEYS)
    return int.from_bytes(blake2b(content, digest_size=8).digest()) >> (64 - _REVISION_BITS)


class EmittedStates:
    """The latest state of each node that was emitted: an equal one is emitted again only after a day of log time."""

    def __init__(self) -> None:
        self._latest: BoundedCache[str, tuple[int, datetime]] = BoundedCache(MAX_STATES)

    def mark_if_due(self, state: LoggedState, started_at: datetime) -> bool:
        """Mark the state as emitted if an attempt that started then has to emit it; False if it does not.

        A state is searched for in the index of the attempt's day and of the day before (UTC).
        """
        started_at = started_at.astimezone(UTC)
        # Of devices without a node there are many states side by side, and none replaces another.
        key = state.node or f"/{state.revision}"
        previous = self._latest.get(key)
        # Attempts are emitted as they end: one that started a day before the state may come after it.
        if (
            previous
            and previous[0] == state.revision
            and started_at - previous[1] < EMITTED_AGAIN_AFTER
            and started_at.date() >= previous[1].date()
        ):
            return False
        self._latest.put(key, (state.revision, started_at))
        return True

    def to_saved(self) -> list[tuple[str, int, datetime]]:
        return [(key, *entry) for key in self._latest if (entry := self._latest.get(key))]

    @classmethod
    def from_saved(cls, to_saved: Any) -> "EmittedStates":
        """Restore from ``to_saved``. Raises ``ValidationError`` for anything else."""
        states = cls()
        for key, revision, emitted_at in _SAVED.validate_python(to_saved):
            states._latest.put(key, (revision, emitted_at))
        return states


SavedEmittedStates = Annotated[
    EmittedStates, PlainValidator(EmittedStates.from_saved), PlainSerializer(EmittedStates.to_saved)
]
"""A field of what a reader saves in a checkpoint."""
