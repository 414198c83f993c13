"""Decoder of records into inputs; most records concern no placement and are recognized without decoding. Pure."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from pydantic import Field

from engine.summaries.pod_facts import BindFact
from schemas.codec.records import Rejected, decode, decode_value
from schemas.documents.observations import OBSERVATION_KINDS, Observed
from schemas.events import (
    AttemptEvent,
    AttemptRepeated,
    AttemptSummarized,
    BindOutcome,
    Count,
    DeviceAllocation,
    Moment,
    PickedDevice,
    PodDescription,
    Request,
    Words,
)
from schemas.forecasts import StartForecast


class BoundAttempt(AttemptEvent):
    """The fields of an attempt's summary that tell where the pod was bound, with which devices."""

    version: Count
    ended_at: Moment | None = None
    requests: list[Request]
    chosen: str | None = None
    picked_devices: Words = Field(default_factory=list)
    picked: list[PickedDevice] = Field(default_factory=list)
    bind: BindOutcome
    description: PodDescription | None = None
    first_judged_at: Moment | None = None
    waited_for: Words = Field(default_factory=list)
    """The reasons that the pod's attempts before this one failed for: no summary says them, the index does."""
    obstacle: str = ""
    """Code of the obstacle that kept the pod longest before this attempt, of the same attempts."""


class RefusedAgain(AttemptRepeated):
    """A repeated refusal of a pod that waits for devices of nodes: a pod whose start may be forecast."""

    forecast: StartForecast | None = None
    """Forecast that is made when the refusal is read; no record has it."""


PlacementInput: TypeAlias = BoundAttempt | RefusedAgain | Observed

_MAX_AHEAD: Final = timedelta(days=1)
_OBSERVED: Final = frozenset(kind.TYPE for kind in OBSERVATION_KINDS.values())
_NO_BIND: Final = b'"bind":null'
"""Bytes of the empty field: inside a text of the JSON its quotes would be escaped."""
_WAITS_FOR_DEVICES: Final = b'"layer":"nodes"'


def decode_input(
    value: bytes | None, headers: Iterable[tuple[str, bytes]], now: datetime
) -> PlacementInput | Rejected | None:
    """Decode the input that a record holds; None if it concerns no placement."""
    named = {name: text for name, text in headers if name in ("ce_type", "ce_id")}
    kind = named.get("ce_type", b"").decode(errors="replace")
    # Only an attempt without a chosen node is published as a repetition, so no bind belongs to it.
    if kind == AttemptRepeated.TYPE:
        return _decode_refusal(value) if value and _WAITS_FOR_DEVICES in value else None
    if kind != AttemptSummarized.TYPE:
        event = decode(value, headers)
        return _reject_future(event, now) if kind in _OBSERVED else event if isinstance(event, Rejected) else None
    if value is None:
        return Rejected("the record has no value", "value")
    # Most attempts bind nothing, and decoding a summary of thousands of nodes is expensive. Every part of a summary
    # contains the bind, so the first part is enough.
    if not named.get("ce_id", b"").endswith(b"/0") or _NO_BIND in value:
        return None
    return _reject_future(decode_value(BoundAttempt, value), now)


def _decode_refusal(value: bytes) -> RefusedAgain | Rejected | None:
    """Decode the refusal of a pod for which the nearest nodes lack a known number of devices; None for another."""
    refusal = decode_value(RefusedAgain, value)
    if isinstance(refusal, Rejected):
        return refusal
    is_counted = refusal.wait and refusal.wait.missing_devices and refusal.wait.nearest_nodes
    return refusal if is_counted and refusal.pod.uid else None


def _reject_future(item: Any, now: datetime) -> PlacementInput | Rejected:
    """Reject what happened in the future: a placement that begins there would never be dropped."""
    happened_at = item.bind.ended_at if isinstance(item, BoundAttempt) else getattr(item, "observed_at", now)
    if happened_at - now > _MAX_AHEAD:
        return Rejected(
            f"{happened_at:%Y-%m-%d %H:%M} is more than a day ahead: the clock of the source is wrong, synchronize it",
            "time",
        )
    checked: PlacementInput | Rejected = item
    return checked


def to_bind_fact(attempt: BoundAttempt) -> BindFact:
    return BindFact(
        attempt.attempt_id,
        attempt.scheduler,
        attempt.started_at,
        attempt.pod.uid,
        attempt.bind.node,
        attempt.bind.ended_at,
        attempt.bind.bound,
        attempt.version,
        tuple(_list_allocations(attempt)) if attempt.bind.bound else (),
        attempt.first_judged_at,
        attempt.ended_at,
        tuple(attempt.waited_for),
        attempt.obstacle,
    )


def _list_allocations(attempt: BoundAttempt) -> list[DeviceAllocation]:
    # The picked devices are those of the chosen node; which ones a bind to another node took is not known.
    if attempt.chosen not in (None, attempt.bind.node):
        return []
    with_amounts = [_to_allocation(attempt, device) for device in attempt.picked]
    listed = {allocation.uuid for allocation in with_amounts}
    return with_amounts + [
        DeviceAllocation(uuid=uuid, container="") for uuid in attempt.picked_devices if uuid not in listed
    ]


def _to_allocation(attempt: BoundAttempt, device: PickedDevice) -> DeviceAllocation:
    requests = attempt.requests
    # The number of a container that the attempt does not list must not end in an error.
    request = requests[device.container] if device.container < len(requests) else Request(container="")
    return DeviceAllocation(
        uuid=device.uuid,
        container=request.container,
        init=request.init,
        model=device.model,
        memory_mib=device.memory_mib,
        cores_percent=device.cores_percent,
    )
