"""Rules of leading by a Lease object (coordination.k8s.io/v1), which are those of Kubernetes' own components. Pure.

A lease has expired when *we* have observed it unchanged for its duration: clocks of two machines are never compared.
A leader stops by itself `renew` seconds after it began its last renewal, well before another may take the lease.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

from runtime.kubernetes.resources import Key
from schemas.json_types import Json

_ONE_SECOND: Final = 1


@dataclass(frozen=True, slots=True)
class LeaseTimings:
    """Times of an election in seconds; the defaults are those of Kubernetes' components.

    Raises ValueError unless duration > renew > 1.2 x retry: otherwise two could lead at once.
    """

    duration: float = 15.0
    """Another may take a lease that has not been renewed for so long."""
    renew: float = 10.0
    """The holder stops leading when it could not renew the lease for so long."""
    retry: float = 2.0
    """Between two attempts."""

    def __post_init__(self) -> None:
        if not self.duration > self.renew > self.retry * 1.2 > 0:
            raise ValueError(
                f"lease duration {self.duration:g} s, renew deadline {self.renew:g} s, retry period {self.retry:g} s: "
                "the duration must be longer than the deadline, and the deadline longer than 1.2 retry periods"
            )


class LeaseStep(Enum):
    """Next step with the lease."""

    CREATE = "there is no lease: create it"
    TAKE = "the lease is free or has expired: write our name"
    RENEW = "we hold the lease: write the time"
    WAIT = "another holds the lease"


@dataclass(frozen=True, slots=True)
class ObservedLease:
    """The Lease object as it was last read (None: there is no Lease), and since when it has been unchanged.

    `since` is our own monotonic clock, in seconds.
    """

    obj: Json | None = None
    since: float = 0.0

    def next(self, obj: Json | None, now: float) -> "ObservedLease":
        """Return the lease after it was read again as `obj`."""
        # Not by resourceVersion: a change of a label is no renewal and must not keep a dead holder in office.
        is_same = obj and self.obj and _record(obj) == _record(self.obj)
        return ObservedLease(obj, self.since if is_same else now)

    @property
    def holder(self) -> str:
        return str(_spec(self.obj).get("holderIdentity") or "")


def next_step(observed: ObservedLease, identity: str, now: float) -> LeaseStep:
    if observed.obj is None:
        return LeaseStep.CREATE
    if observed.holder == identity:
        return LeaseStep.RENEW
    is_expired = now - observed.since > float(_spec(observed.obj).get("leaseDurationSeconds") or _ONE_SECOND)
    return LeaseStep.TAKE if not observed.holder or is_expired else LeaseStep.WAIT


def claim(observed: ObservedLease, key: Key, identity: str, timings: LeaseTimings, now: datetime) -> Json:
    """Claim the lease: the Lease to write in order to lead; the resourceVersion in it lets only one of two claims
    succeed."""
    before, written = _spec(observed.obj), _micro_time(now)
    spec = {
        **before,
        "holderIdentity": identity,
        # A whole number in the API, at least 1, although our durations may be fractions in tests.
        "leaseDurationSeconds": max(round(timings.duration), _ONE_SECOND),
        "renewTime": written,
    }
    if observed.holder != identity:
        spec["acquireTime"] = written
        # Counts changes of the holder; creating the Lease is none.
        spec["leaseTransitions"] = int(before.get("leaseTransitions") or 0) + (observed.obj is not None)
    return _lease(observed, key, spec)


def resignation(observed: ObservedLease, key: Key, now: datetime) -> Json:
    """Build the Lease to write in order to let another lead at once."""
    written = _micro_time(now)
    # As client-go's ``release``: an empty holder may be taken at once, without waiting for the duration.
    freed = {"holderIdentity": "", "leaseDurationSeconds": _ONE_SECOND, "renewTime": written, "acquireTime": written}
    return _lease(observed, key, {**_spec(observed.obj), **freed})


def _lease(observed: ObservedLease, key: Key, spec: Json) -> Json:
    # With its resourceVersion, so that only one of two candidates that read the same Lease can write it.
    metadata = observed.obj["metadata"] if observed.obj else {"name": key.name, "namespace": key.namespace}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def _spec(obj: Json | None) -> dict[str, Any]:
    return (obj or {}).get("spec") or {}


def _record(obj: Json) -> tuple[Any, ...]:
    """Read the fields of which any renewal changes at least one."""
    spec = _spec(obj)
    return spec.get("holderIdentity"), spec.get("renewTime"), spec.get("leaseDurationSeconds")


def _micro_time(now: datetime) -> str:
    # Kubernetes' MicroTime: exactly six digits, or the API server refuses it.
    return f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def led_by_host(observed: ObservedLease, host: str, timings: LeaseTimings) -> float:
    """Return until when a process on `host` certainly leads (monotonic seconds); 0 if none does.

    Kubernetes' components write `<host>_<uuid>` into the leases that they hold; in a pod, `host` is the pod's name.
    """
    return observed.since + timings.renew if observed.holder.startswith(f"{host}_") else 0.0


@dataclass(frozen=True, slots=True)
class LeadershipDeadline:
    """Until when we may act as the leader, in monotonic seconds."""

    until: float = 0.0

    def renewed(self, started_at: float, timings: LeaseTimings) -> "LeadershipDeadline":
        """Return the deadline after a renewal whose request was sent at `started_at`.

        It counts from the request, not from the answer: others may have seen the new lease as early as that.
        """
        return replace(self, until=started_at + timings.renew)

    def holds(self, now: float) -> bool:
        return now < self.until
