"""Reporters whose Kubernetes events are believed: any creator of events may name any reporter.

Pure, without pydantic.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

DEFAULT_REPORTERS: Final = (
    # kube-scheduler reports under the name of the profile that decided.
    "default-scheduler", "schedulerlog", "hami-scheduler", "koord-scheduler", "volcano", "kai-scheduler", "binder",
    "yunikorn", "slurm-bridge-scheduler", "scheduler-plugins-scheduler", "kubelet",
    "replicaset-controller", "replication-controller", "statefulset-controller", "daemonset-controller",
    "job-controller", "cronjob-controller", "*job-controller", "cluster-autoscaler", "karpenter",
)  # fmt: skip
"""Kubernetes' own schedulers and controllers, those of HAMi, Koordinator, Volcano, KAI (with its binder), YuniKorn,
Slurm and scheduler-plugins, the jobs of Kubeflow, and autoscalers."""
MAX_LEFT_OUT: Final = 100
"""Reporters that are not believed, by name; the names of further ones are not kept."""
_MAX_NAME: Final = 128
"""Kubernetes' bound of ``reportingController``; the older ``source.component`` has none."""


def parse_reporter_patterns(text: str) -> tuple[str, ...]:
    """Parse names between commas, each with ``*`` and ``?``. Raises ``ValueError``."""
    patterns = tuple(pattern for part in text.split(",") if (pattern := part.strip()))
    if not patterns:
        raise ValueError("names no reporter: no event would be read; write for example default-scheduler,kubelet")
    return patterns


class TrustedReporters:
    """The reporters that any of the patterns names, and the names of those that were left out."""

    def __init__(self, patterns: Sequence[str] = DEFAULT_REPORTERS) -> None:
        self._patterns = tuple(patterns)
        self.check = lru_cache(maxsize=10_000)(self._check)
        self.left_out: dict[str, None] = {}
        """In the order in which they came."""

    def _check(self, reporter: str) -> bool:
        if any(fnmatchcase(reporter, pattern) for pattern in self._patterns):
            return True
        if len(self.left_out) < MAX_LEFT_OUT:
            self.left_out[reporter[:_MAX_NAME]] = None
        return False
