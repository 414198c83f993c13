"""The latest attempts of pods, as much of them as the next one is compared with: pure but for a memory."""

from collections import OrderedDict
from datetime import datetime
from typing import Any, Final, NamedTuple

from schemas.documents.attempts import Digests, EpisodeRef
from schemas.events import AttemptSummarized
from summaries.episodes import PreviousAttempt

REMEMBERED_PODS: Final = 50_000

Key = tuple[str, str, str]


class Predecessor(NamedTuple):
    """What came before an attempt; None where it is the first of its pod."""

    told: PreviousAttempt | None


class _Pod(NamedTuple):
    before: PreviousAttempt | None
    latest: PreviousAttempt


class PodHistory:
    def __init__(self, most: int = REMEMBERED_PODS) -> None:
        self._most = most
        self._pods: OrderedDict[Key, _Pod] = OrderedDict()

    def __len__(self) -> int:
        return len(self._pods)

    def before(self, summary: AttemptSummarized) -> Predecessor | None:
        """The attempt before this one, told for the first time or again; None where only the index knows it."""
        pod = self._pods.get(_key(summary))
        if pod is None:
            return None
        if pod.latest.attempt_id == summary.attempt_id:
            return Predecessor(pod.before)
        return Predecessor(pod.latest) if pod.latest.is_before(summary) else None

    def put(self, summary: AttemptSummarized, told: PreviousAttempt, before: PreviousAttempt | None) -> None:
        key = _key(summary)
        pod = self._pods.pop(key, None)
        newer = pod is not None and pod.latest.started_at > told.started_at
        self._pods[key] = pod if pod is not None and newer else _Pod(before, told)
        if len(self._pods) > self._most:
            self._pods.popitem(last=False)

    def clear(self) -> None:
        self._pods.clear()


def _key(summary: AttemptSummarized) -> Key:
    return str(summary.pod), summary.pod.uid, summary.scheduler


def previous_attempt_of(document: dict[str, Any]) -> PreviousAttempt | None:
    """What a document of the attempts index says of its attempt; None for one of an older version."""
    repeated = document.get("repeated") or {}
    try:
        started = datetime.fromisoformat(document["@timestamp"])
        return PreviousAttempt(
            attempt_id=document["attempt_id"],
            scheduler=document["scheduler"],
            pod_uid=document["pod_uid"],
            started_at=started,
            status=document["status"],
            digests=Digests(document["verdict_digest"], document["detail_digest"] or ""),
            episode=EpisodeRef(document["episode"], datetime.fromisoformat(document["episode_started_at"])),
            whole=repeated.get("repeats", document["attempt_id"]),
            whole_started=datetime.fromisoformat(repeated["repeats_started_at"]) if repeated else started,
        )
    except (KeyError, ValueError, TypeError):
        return None
