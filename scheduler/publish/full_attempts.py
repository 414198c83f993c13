"""Attempts that were published in full, by which the next attempt of a pod is found unchanged."""

from collections.abc import Hashable
from typing import Final, NamedTuple

from engine.fit.events.attempt import AttemptRef
from runtime.bounded_cache import BoundedCache
from schemas.events import UNCHANGED_FOR

MAX_PODS: Final = 100_000
"""Pods of which an attempt is remembered, of some 300 bytes each; one of any other pod is published in full."""


class _FullAttempt(NamedTuple):
    attempt: AttemptRef
    digest: bytes
    validity: Hashable


class FullAttempts:
    """The latest attempt of each pod that chose no node and was published in full."""

    def __init__(self) -> None:
        self._attempts: BoundedCache[str, _FullAttempt] = BoundedCache(MAX_PODS)

    def find(self, attempt: AttemptRef, digest: bytes, validity: Hashable) -> AttemptRef | None:
        """Find the attempt of the pod that this one may refer to.

        digest: of its decision. validity: everything with whose change an earlier attempt stops being one to refer to.
        """
        full = self._attempts.get(attempt.pod.uid)
        if full is None or (full.digest, full.validity, full.attempt.pod) != (digest, validity, attempt.pod):
            return None
        started_at = full.attempt.started_at
        # Indices are daily, and readers of one attempt need the other: both are deleted together.
        is_near = started_at.date() == attempt.started_at.date() and attempt.started_at - started_at <= UNCHANGED_FOR
        return full.attempt if is_near else None

    def put(self, attempt: AttemptRef, digest: bytes, validity: Hashable) -> None:
        """Note an attempt that is being published in full."""
        self._attempts.put(attempt.pod.uid, _FullAttempt(attempt, digest, validity))

    def forget(self, pod_uid: str) -> None:
        """Forget the attempt of a pod of which a later one ended otherwise."""
        self._attempts.pop(pod_uid)
