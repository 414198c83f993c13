"""Who leads, by a Lease object (coordination.k8s.io/v1), with the rules of Kubernetes' own components. Pure.

A lease is over when nobody has renewed it for its duration as *we* saw it: clocks of two machines are never compared.
Whoever leads stops by itself `renew` after the last renewal began, well before another may take the lease.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

from kube.resources import Json, Key

_ONE_SECOND: Final = 1


@dataclass(frozen=True, slots=True)
class Terms:
    """In seconds. duration: unrenewed, the lease may be taken after this. renew: unrenewed, its holder stops leading
    after this. retry: between two tries. Raises ValueError unless duration > renew > 1.2 x retry."""

    duration: float = 15.0
    renew: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not self.duration > self.renew > self.retry * 1.2 > 0:
            raise ValueError(
                f"lease duration {self.duration:g} s, renew deadline {self.renew:g} s, retry period {self.retry:g} s: "
                "the duration must be longer than the deadline, and the deadline longer than 1.2 retry periods"
            )


class Step(Enum):
    """What to do about the lease now."""

    CREATE = "there is none: create it"
    TAKE = "it is free or over: write our name"
    RENEW = "it is ours: write the time"
    WAIT = "somebody else leads"


@dataclass(frozen=True, slots=True)
class Seen:
    """The lease as it was read, and when it was first read like that (monotonic seconds); None: there is none."""

    found: Json | None = None
    since: float = 0.0

    def next(self, found: Json | None, now: float) -> "Seen":
        """After another look."""
        is_same = found and self.found and _record(found) == _record(self.found)
        return Seen(found, self.since if is_same else now)

    @property
    def holder(self) -> str:
        return str(_spec(self.found).get("holderIdentity") or "")


def next_step(seen: Seen, me: str, now: float) -> Step:
    if seen.found is None:
        return Step.CREATE
    if seen.holder == me:
        return Step.RENEW
    is_over = now - seen.since > float(_spec(seen.found).get("leaseDurationSeconds") or _ONE_SECOND)
    return Step.TAKE if not seen.holder or is_over else Step.WAIT


def claim(seen: Seen, key: Key, me: str, terms: Terms, now: datetime) -> Json:
    """The Lease to write in order to lead. It carries the version that was read, so that one of two wins."""
    before, written = _spec(seen.found), _micro_time(now)
    spec = {
        **before,
        "holderIdentity": me,
        "leaseDurationSeconds": max(round(terms.duration), _ONE_SECOND),
        "renewTime": written,
    }
    if seen.holder != me:
        spec["acquireTime"] = written
        spec["leaseTransitions"] = int(before.get("leaseTransitions") or 0) + (seen.found is not None)
    return _lease(seen, key, spec)


def resignation(seen: Seen, key: Key, now: datetime) -> Json:
    """The Lease to write in order to let another lead at once."""
    written = _micro_time(now)
    freed = {"holderIdentity": "", "leaseDurationSeconds": _ONE_SECOND, "renewTime": written, "acquireTime": written}
    return _lease(seen, key, {**_spec(seen.found), **freed})


def _lease(seen: Seen, key: Key, spec: Json) -> Json:
    metadata = seen.found["metadata"] if seen.found else {"name": key.name, "namespace": key.namespace}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def _spec(found: Json | None) -> dict[str, Any]:
    return (found or {}).get("spec") or {}


def _record(found: Json) -> tuple[Any, ...]:
    spec = _spec(found)
    return spec.get("holderIdentity"), spec.get("renewTime"), spec.get("leaseDurationSeconds")


def _micro_time(now: datetime) -> str:
    return f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def led_by_host(seen: Seen, host: str, terms: Terms) -> float:
    """Until when a process on `host` leads for certain (monotonic seconds); 0 where none does.

    Kubernetes' components write `host_uuid` into the leases that they hold; `host` is the pod's name.
    """
    return seen.since + terms.renew if seen.holder.startswith(f"{host}_") else 0.0


@dataclass(frozen=True, slots=True)
class Leading:
    """Until when we may act as the leader, in monotonic seconds."""

    until: float = 0.0

    def renewed(self, started_at: float, terms: Terms) -> "Leading":
        """After a renewal whose request began at `began`: what was in flight does not count in our favour."""
        return replace(self, until=started_at + terms.renew)

    def holds(self, now: float) -> bool:
        return now < self.until
