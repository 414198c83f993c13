"""Verdicts that were worked out and keep differing from the scheduler's counts: a finding.

One difference means little, because objects change between an attempt and its event. One that stays over several
attempts of a pod shows a rule that the judge does not know, or objects that are not those of the scheduler.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Final

from ingest.readers.kube.objects import remember
from schemas.events import AttemptConcluded, FindingReported

VERDICTS_DIFFER: Final = "VerdictsDiffer"
PERSISTING: Final = 3
"""Attempts of a pod in a row whose verdicts differ from the scheduler's counts."""


class VerdictMismatches:
    """Counts the differing attempts of each pod."""

    def __init__(self) -> None:
        self._attempts: OrderedDict[str, int] = OrderedDict()

    def check(self, conclusion: AttemptConcluded) -> Iterator[FindingReported]:
        """Check the end of an attempt; yield a finding when its difference begins to persist."""
        pod, reconstruction = str(conclusion.pod), conclusion.reconstruction
        if reconstruction is None or reconstruction.agreement == "not compared":
            return
        if reconstruction.agreement == "equal":
            self._attempts.pop(pod, None)
            return
        remember(self._attempts, pod, self._attempts.get(pod, 0) + 1)
        if self._attempts[pod] == PERSISTING:
            yield _build_finding(conclusion, reconstruction.counts)


def _build_finding(conclusion: AttemptConcluded, counts: Mapping[str, int]) -> FindingReported:
    worked_out = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
    return FindingReported(
        cluster=conclusion.cluster, attempt_id=conclusion.attempt_id, pod=conclusion.pod,
        scheduler=conclusion.scheduler, reader=conclusion.reader, started_at=conclusion.started_at,
        finding=VERDICTS_DIFFER, found_at=conclusion.ended_at, node="",
        numbers={"judged_nodes": conclusion.judged_nodes, "offered_nodes": conclusion.offered_nodes},
        evidence=[conclusion.scheduler_message, f"worked out: {worked_out or 'no node is refused'}"],
        evidence_pods=[str(conclusion.pod)] * 2,
    )  # fmt: skip
