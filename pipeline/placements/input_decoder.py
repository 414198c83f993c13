"""A record as what it says about who is where; what says nothing about that is not read."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from pydantic import Field

from schemas.codec.records import Rejected, decode, decode_value
from schemas.documents.observations import Observed
from schemas.events import (
    AttemptEvent,
    AttemptRepeated,
    AttemptSummarized,
    BindOutcome,
    Count,
    NodeChecked,
    NodeObserved,
    NodeRegistered,
    PickedDevice,
    PodObserved,
    Request,
    Words,
)
from schemas.placements import DeviceAllocation
from summaries.pod_timelines import BindFact


class BoundAttempt(AttemptEvent):
    """Of an attempt's summary what says where the pod was bound, with which devices."""

    version: Count
    requests: list[Request]
    chosen: str | None = None
    picked_devices: Words = Field(default_factory=list)
    picked: list[PickedDevice] = Field(default_factory=list)
    bind: BindOutcome


Said: TypeAlias = BoundAttempt | Observed

_AHEAD: Final = timedelta(days=1)
_OBSERVED: Final = frozenset(kind.TYPE for kind in (PodObserved, NodeObserved, NodeRegistered, NodeChecked))
_NO_BIND: Final = b'"bind":null'
"""Between no quotes of a text can this stand: there its quotes are escaped."""


def said_in(value: bytes | None, headers: Iterable[tuple[str, bytes]], now: datetime) -> Said | Rejected | None:
    """None where it says nothing about who is where.

    Most attempts bind nothing, and all say so in every part: of thousands of nodes nothing is read for that.
    """
    named = {name: text for name, text in headers if name in ("ce_type", "ce_id")}
    kind = named.get("ce_type", b"").decode(errors="replace")
    if kind == AttemptRepeated.TYPE:
        return None
    if kind != AttemptSummarized.TYPE:
        said = decode(value, headers)
        return _not_ahead(said, now) if kind in _OBSERVED else said if isinstance(said, Rejected) else None
    if value is None:
        return Rejected("the record has no value", "value")
    if not named.get("ce_id", b"").endswith(b"/0") or _NO_BIND in value:
        return None
    return _not_ahead(decode_value(BoundAttempt, value), now)


def _not_ahead(said: Any, now: datetime) -> Said | Rejected:
    """A stay that begins in a far future would never be dropped."""
    at = said.bind.ended_at if isinstance(said, BoundAttempt) else getattr(said, "observed_at", now)
    if at - now > _AHEAD:
        return Rejected(f"it happened at {at:%Y-%m-%d %H:%M} by the clock of whoever says so, which is wrong", "time")
    answer: Said | Rejected = said
    return answer


def bind_of(attempt: BoundAttempt) -> BindFact:
    return BindFact(
        attempt.attempt_id,
        attempt.scheduler,
        attempt.started_at,
        attempt.pod.uid,
        attempt.bind.node,
        attempt.bind.ended_at,
        attempt.bind.bound,
        attempt.version,
        tuple(_held(attempt)) if attempt.bind.bound else (),
    )


def _held(attempt: BoundAttempt) -> list[DeviceAllocation]:
    """Of a bind to another node than the chosen one the devices are not known."""
    if attempt.chosen not in (None, attempt.bind.node):
        return []
    told = [_row(attempt, each) for each in attempt.picked]
    known = {each.uuid for each in told}
    return told + [DeviceAllocation(uuid=uuid, container="") for uuid in attempt.picked_devices if uuid not in known]


def _row(attempt: BoundAttempt, device: PickedDevice) -> DeviceAllocation:
    of = attempt.requests[device.container] if device.container < len(attempt.requests) else Request(container="")
    return DeviceAllocation(
        uuid=device.uuid,
        container=of.container,
        init=of.init,
        model=device.model,
        memory_mib=device.memory_mib,
        cores_percent=device.cores_percent,
    )
