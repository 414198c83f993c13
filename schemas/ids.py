"""Ids are derived from what happened, never drawn at random.

The same decision told twice (a retry of the producer, a log read again) gets the same id, so every store can drop
the second telling.
"""

from datetime import datetime
from hashlib import blake2b


def attempt_id(scheduler: str, pod_uid: str, started: datetime) -> str:
    """The id of one scheduling try: 32 hexadecimal digits.

    A scheduler judges one pod once at a time, so its name, the pod's UID and the start (to the microsecond) are
    enough to tell every attempt apart.
    """
    microseconds = int(started.timestamp() * 1_000_000)
    said = "\x1f".join((scheduler, pod_uid, str(microseconds)))
    return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
