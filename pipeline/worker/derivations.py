"""Derivations from the content of an attempt alone, made once for attempts that say the same."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from engine.diagnosis.waiting import derive_wait, digest_wait_inputs
from engine.summaries.messages import build_messages, move_messages
from engine.summaries.trends import derive_contribution
from runtime.bounded_cache import BoundedCache
from schemas.documents.attempts import Digests
from schemas.events import AttemptSummarized, Contribution, MessagesEmitted, PodWait

REMEMBERED_WAITS: Final = 2_000
"""Limit of the remembered reasons why pods wait, of some 2 kB each."""
REMEMBERED_RETRIES: Final = 2_000
"""Limit of pods of which the lines and counts of an attempt without a node are remembered, some 3 kB each."""


class Derived(NamedTuple):
    """Parts of an attempt's records that another attempt of the pod may have in common with it."""

    inputs: Sequence[Any]
    """Their inputs that are not in the digest of details."""
    messages: list[MessagesEmitted]
    adds: Contribution
    wait: PodWait | None


class Derivations:
    """Derives these parts, and remembers them. ``pool_of``: the pool of a node by its name, empty for none."""

    def __init__(self, pool_of: Callable[[str], str] | None) -> None:
        self._pool_of = pool_of
        self._waits: BoundedCache[bytes, PodWait] = BoundedCache(REMEMBERED_WAITS)
        self._retries: BoundedCache[str, Derived] = BoundedCache(REMEMBERED_RETRIES)

    def derive(self, summary: AttemptSummarized, digests: Digests, *, is_repetition: bool) -> Derived:
        """Derive the parts of the attempt. One that ``is_repetition`` ended as an earlier one with the same digests."""
        # What a reader works out of a reconstruction changes with every pod that comes or goes, and is in no digest.
        if not is_repetition or summary.reconstruction:
            return self._derive(summary, digests)
        remembered = self._retries.get(digests.detail)
        if remembered and remembered.inputs == _list_inputs(summary):
            adds = remembered.adds.model_copy(update={"version": summary.version})
            return remembered._replace(messages=move_messages(remembered.messages, summary), adds=adds)
        derived = self._derive(summary, digests)
        self._retries.put(digests.detail, derived)
        return derived

    def derive_contribution(self, summary: AttemptSummarized, obstacle: str) -> Contribution:
        return derive_contribution(summary, self._pool_of, obstacle)

    def _derive(self, summary: AttemptSummarized, digests: Digests) -> Derived:
        wait = self.derive_wait(summary, digests.verdicts)
        adds = self.derive_contribution(summary, wait.code if wait else "")
        return Derived(_list_inputs(summary), build_messages(summary), adds, wait)

    def derive_wait(self, summary: AttemptSummarized, verdict_digest: str) -> PodWait | None:
        """Derive why the pod waits; most attempts wait as an earlier one of the pod or of its workload does."""
        if summary.status == "succeeded":
            return None
        key = digest_wait_inputs(summary, verdict_digest)
        wait = self._waits.get(key)
        if wait is None and (wait := derive_wait(summary, self._pool_of)):
            self._waits.put(key, wait)
        return wait


def _list_inputs(summary: AttemptSummarized) -> Sequence[Any]:
    reports = [(report.source, report.levels, report.not_reported) for report in summary.reports]
    return summary.description, summary.scheduler_message, summary.nominated, reports
