"""Containers whose lines are believed: any other could print a scheduler's lines too. Pure, without pydantic."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, NamedTuple

DEFAULT_CONTAINERS: Final = (
    "kube-system/hami-scheduler-*/*", "hami-system/hami-scheduler-*/*", "kai-scheduler/kai-scheduler-*/*",
)  # fmt: skip
"""The schedulers of the charts of HAMi and KAI-Scheduler; tenants create no pods in these namespaces."""


class ContainerName(NamedTuple):
    """A container of a pod; unknown parts are empty."""

    namespace: str
    pod: str
    container: str


def parse_container_patterns(text: str) -> tuple[str, ...]:
    """Parse ``NAMESPACE/POD/CONTAINER`` between commas, each part with ``*`` and ``?``. Raises ``ValueError``."""
    patterns = tuple(pattern for part in text.split(",") if (pattern := part.strip()))
    if wrong := next((pattern for pattern in patterns if not all(_split_pattern(pattern))), None):
        raise ValueError(f"{wrong!r} is no NAMESPACE/POD/CONTAINER: write for example kube-system/hami-scheduler-*/*")
    if not patterns:
        raise ValueError("names no container: no line would be read")
    return patterns


def _split_pattern(pattern: str) -> tuple[str, str, str]:
    namespace, _, pod_path = pattern.partition("/")
    pod, _, container = pod_path.partition("/")
    return (namespace, pod, container) if "/" not in container else ("", "", "")


class TrustedContainers:
    """The containers that any of the patterns names."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [_split_pattern(pattern) for pattern in patterns]
        # Asked for every line.
        self.trusts = lru_cache(maxsize=10_000)(self._trusts)

    def _trusts(self, container: ContainerName) -> bool:
        # Part by part: a name that a shipper takes from somewhere else may hold a slash, which `*` would match.
        return any(
            all(fnmatchcase(name, part) for name, part in zip(container, pattern, strict=True))
            for pattern in self._patterns
        )
