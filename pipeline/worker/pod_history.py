"""The latest attempt of each pod, reduced to the fields that the next one is compared with. No I/O; bounded in pods."""

from datetime import datetime
from typing import Any, Final, NamedTuple

from process.bounded_cache import BoundedCache
from schemas.documents.attempts import Digests, EpisodeRef
from schemas.events import AttemptSummarized
from summaries.episodes import PreviousAttempt

MAX_PODS: Final = 50_000

Key = tuple[str, str, str]


class Predecessor(NamedTuple):
    """The answer to: which attempt came before this one?"""

    attempt: PreviousAttempt | None
    """None where there is none: the attempt is the first of its pod."""


class _Pod(NamedTuple):
    previous: PreviousAttempt | None
    latest: PreviousAttempt


class PodHistory:
    """The latest attempts, by pod and scheduler."""

    def __init__(self, max_pods: int = MAX_PODS) -> None:
        self._pods: BoundedCache[Key, _Pod] = BoundedCache(max_pods)

    def __len__(self) -> int:
        return len(self._pods)

    def before(self, summary: AttemptSummarized) -> Predecessor | None:
        """The attempt before this one, which may be written for the first time or again; None where only the index
        knows it."""
        pod = self._pods.get(_key(summary))
        if pod is None:
            return None
        if pod.latest.attempt_id == summary.attempt_id:
            return Predecessor(pod.previous)
        return Predecessor(pod.latest) if pod.latest.is_before(summary) else None

    def put(self, summary: AttemptSummarized, attempt: PreviousAttempt, previous: PreviousAttempt | None) -> None:
        """Note an attempt that is written, and the one before it."""
        key = _key(summary)
        pod = self._pods.get(key)
        # A late record can complete an older attempt when the next one is written already.
        is_outdated = pod is not None and pod.latest.started_at > attempt.started_at
        self._pods.put(key, pod if pod is not None and is_outdated else _Pod(previous, attempt))

    def clear(self) -> None:
        self._pods.clear()


def _key(summary: AttemptSummarized) -> Key:
    # By UID too: a pod of the same name that was made later has no predecessor. By scheduler: another one's verdicts
    # are no repetition.
    return str(summary.pod), summary.pod.uid, summary.scheduler


def previous_attempt_of(document: dict[str, Any]) -> PreviousAttempt | None:
    """The attempt of a document in the attempts index; None for a document that lacks these fields (older versions)."""
    repeated = document.get("repeated") or {}
    try:
        started_at = datetime.fromisoformat(document["@timestamp"])
        return PreviousAttempt(
            attempt_id=document["attempt_id"],
            scheduler=document["scheduler"],
            pod_uid=document["pod_uid"],
            started_at=started_at,
            status=document["status"],
            digests=Digests(document["verdict_digest"], document["detail_digest"] or ""),
            episode=EpisodeRef(document["episode"], datetime.fromisoformat(document["episode_started_at"])),
            whole=repeated.get("repeats", document["attempt_id"]),
            whole_started=datetime.fromisoformat(repeated["repeats_started_at"]) if repeated else started_at,
        )
    except (KeyError, ValueError, TypeError):
        return None
