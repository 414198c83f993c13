"""Rules of leadership by a Lease object (coordination.k8s.io/v1), as Kubernetes' components follow them. Pure.

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
    """Times of an election in seconds, with the defaults of Kubernetes' components.

    Raises ValueError unless duration > renew > 1.2 x retry: otherwise two could lead at once.
    """

    duration: float = 15.0
    """Time without a renewal after which another may take the lease."""
    renew: float = 10.0
    """Time without a renewal after which the holder stops leading."""
    retry: float = 2.0
    """Time between two attempts."""

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
    """The Lease object of the last reading (None: there is no Lease), and the time since which it has been unchanged.

    `since` is a time of our monotonic clock, in seconds.
    """

    obj: Json | None = None
    since: float = 0.0

    def observe(self, obj: Json | None, now: float) -> "ObservedLease":
        """Observe the lease again: return it after a reading of `obj`."""
        # Not by resourceVersion: the change of a label is no renewal and must not keep a dead holder in office.
        is_same = obj and self.obj and _read_renewal(obj) == _read_renewal(self.obj)
        return ObservedLease(obj, self.since if is_same else now)

    @property
    def holder(self) -> str:
        return str(_get_spec(self.obj).get("holderIdentity") or "")


def decide_step(observed: ObservedLease, identity: str, now: float) -> LeaseStep:
    if observed.obj is None:
        return LeaseStep.CREATE
    if observed.holder == identity:
        return LeaseStep.RENEW
    is_expired = now - observed.since > float(_get_spec(observed.obj).get("leaseDurationSeconds") or _ONE_SECOND)
    return LeaseStep.TAKE if not observed.holder or is_expired else LeaseStep.WAIT


def build_claim(observed: ObservedLease, key: Key, identity: str, timings: LeaseTimings, now: datetime) -> Json:
    """Build the Lease to write in order to lead. Its resourceVersion lets only one of two claims succeed."""
    before, written = _get_spec(observed.obj), _format_micro_time(now)
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
    return _build_lease(observed, key, spec)


def build_resignation(observed: ObservedLease, key: Key, now: datetime) -> Json:
    """Build the Lease to write in order to let another lead at once."""
    written = _format_micro_time(now)
    # As client-go's ``release``: an empty holder may be taken at once, without waiting for the duration.
    freed = {"holderIdentity": "", "leaseDurationSeconds": _ONE_SECOND, "renewTime": written, "acquireTime": written}
    return _build_lease(observed, key, {**_get_spec(observed.obj), **freed})


def _build_lease(observed: ObservedLease, key: Key, spec: Json) -> Json:
    # With its resourceVersion, so that only one of two candidates that read the same Lease can write it.
    metadata = observed.obj["metadata"] if observed.obj else {"name": key.name, "namespace": key.namespace}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def _get_spec(obj: Json | None) -> dict[str, Any]:
    return (obj or {}).get("spec") or {}


def _read_renewal(obj: Json) -> tuple[Any, ...]:
    """Read the fields of which any renewal changes at least one."""
    spec = _get_spec(obj)
    return spec.get("holderIdentity"), spec.get("renewTime"), spec.get("leaseDurationSeconds")


def _format_micro_time(now: datetime) -> str:
    # Kubernetes' MicroTime: exactly six digits, or the API server refuses it.
    return f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def derive_lead_end(observed: ObservedLease, host: str, timings: LeaseTimings) -> float:
    """Derive the time until which a process on `host` certainly leads (monotonic seconds); 0 if none does.

    Kubernetes' components write `<host>_<uuid>` into the leases that they hold; in a pod, `host` is the pod's name.
    """
    return observed.since + timings.renew if observed.holder.startswith(f"{host}_") else 0.0


@dataclass(frozen=True, slots=True)
class LeadershipDeadline:
    """Time until which we may act as the leader, in monotonic seconds."""

    until: float = 0.0

    def renew(self, started_at: float, timings: LeaseTimings) -> "LeadershipDeadline":
        """Renew the deadline: return it after a renewal whose request was sent at `started_at`.

        It counts from the request, not from the answer: others may have seen the new lease that early.
        """
        return replace(self, until=started_at + timings.renew)

    def holds(self, now: float) -> bool:
        return now < self.until
