"""Ids are derived from what happened, never drawn at random.

The same decision published twice (a retry of the producer, a log read again) has the same id, so every store can drop
the second record.
"""

from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def count_microseconds(moment: datetime) -> int:
    """Count the whole microseconds since 1970. Exact, where ``timestamp() * 1e6`` is one short for some times from 2038
    on."""
    return (moment - _EPOCH) // _MICROSECOND


def derive_attempt_id(cluster: str, scheduler: str, pod_uid: str, started_at: datetime) -> str:
    """Derive the id of one scheduling try as one source reports it: 32 hexadecimal digits.

    A scheduler judges one pod once at a time, so its name, the pod's UID and the start (to the microsecond) are
    enough to tell every attempt of a cluster apart.
    """
    # A separator that occurs in no name of Kubernetes: without one, "a" + "bc" and "ab" + "c" would be one id.
    source = "\x1f".join((cluster, scheduler, pod_uid, str(count_microseconds(started_at))))
    # A name read from a log may hold half of a surrogate pair; it is refused when the record is encoded, not here.
    return blake2b(source.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def build_schema_id(name: str) -> str:
    """Build the ``$id`` of the JSON Schema of an event type or of an answer."""
    return f"urn:schedulerlog:{name}"
