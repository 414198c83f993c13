"""Whose lines are believed: any container may print what looks like a scheduler's decision. Pure, without pydantic."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, NamedTuple

DEFAULT_CONTAINERS: Final = (
    "kube-system/hami-scheduler-*/*", "hami-system/hami-scheduler-*/*", "kai-scheduler/kai-scheduler-*/*",
)  # fmt: skip
"""Where the charts of HAMi and KAI-Scheduler put them; tenants make no pods in these namespaces."""


class ContainerName(NamedTuple):
    """Which container of which pod; parts that are not known are empty."""

    namespace: str
    pod: str
    container: str


def container_patterns(text: str) -> tuple[str, ...]:
    """``NAMESPACE/POD/CONTAINER`` between commas, each part with ``*`` and ``?``. Raises ``ValueError``."""
    patterns = tuple(pattern for part in text.split(",") if (pattern := part.strip()))
    if wrong := next((pattern for pattern in patterns if not all(_parts(pattern))), None):
        raise ValueError(f"{wrong!r} is no NAMESPACE/POD/CONTAINER: write for example kube-system/hami-scheduler-*/*")
    if not patterns:
        raise ValueError("names no container: no line would be read")
    return patterns


def _parts(pattern: str) -> tuple[str, str, str]:
    namespace, _, rest = pattern.partition("/")
    pod, _, container = rest.partition("/")
    return (namespace, pod, container) if "/" not in container else ("", "", "")


class TrustedContainers:
    """The containers that any of the patterns names."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [_parts(pattern) for pattern in patterns]
        # Asked for every line.
        self.trusts = lru_cache(maxsize=10_000)(self._trusts)

    def _trusts(self, container: ContainerName) -> bool:
        # Part by part: a name that a shipper takes from somewhere else may hold a slash, which `*` would match.
        return any(
            all(fnmatchcase(name, part) for name, part in zip(container, pattern, strict=True))
            for pattern in self._patterns
        )
