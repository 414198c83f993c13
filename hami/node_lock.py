"""The node lock: `hami.io/mutex.lock` says which pod is being bound to a node right now (HAMi's `nodelock.go`).

`<RFC 3339 time>,<namespace>,<pod>`; before HAMi v2.3 the time alone. Pure: reading, writing, and what to do about a
lock that is there. Error texts are HAMi's, those of Go's time parser included.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Final

from hami import durations

LOCK: Final = "hami.io/mutex.lock"

PodKey = tuple[str, str]
"""(namespace, name)"""

_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_STEPS: Final = (
    (r"\d{4}", "2006"),
    ("-", "-"),
    (r"\d\d", "01"),
    ("-", "-"),
    (r"\d\d", "02"),
    ("T", "T"),
    (r"\d\d", "15"),
    (":", ":"),
    (r"\d\d", "04"),
    (":", ":"),
    (r"\d\d", "05"),
    (r"(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)", "Z07:00"),
)
"""What Go's parser expects one after the other, and how it names each in its errors."""


class LockError(ValueError):
    """The annotation is no lock; the text is HAMi's."""


@dataclass(frozen=True, slots=True)
class Lock:
    """Since when a node is locked, and by which pod; owner ("", "") in the old form, which names none."""

    since: datetime
    owner: PodKey


def parse(value: str) -> Lock:
    """Raises `LockError` with HAMi's text."""
    parts = value.split(",")
    if len(parts) == 1:
        return Lock(parse_time(value), ("", ""))
    if len(parts) != 3:
        raise LockError(f"malformed lock annotation: expected 3 parts, got {len(parts)} from {value}")
    return Lock(parse_time(parts[0]), (parts[1], parts[2]))


def owner_of(value: str) -> PodKey | None:
    """The pod that a lock names; None where it names none, or is no lock."""
    parts = value.split(",")
    return (parts[1], parts[2]) if len(parts) == 3 else None


def parse_time(text: str) -> datetime:
    """RFC 3339 as Go reads it. Raises `LockError` with Go's text."""
    rest = text
    for pattern, name in _STEPS:
        found = re.match(pattern, rest, re.ASCII)
        if not found:
            raise LockError(f'parsing time "{text}" as "{_LAYOUT}": cannot parse "{rest}" as "{name}"')
        rest = rest[found.end() :]
    if rest:
        raise LockError(f'parsing time "{text}": extra text: "{rest}"')
    try:
        return datetime.fromisoformat(_to_microseconds(text)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise LockError(f'parsing time "{text}": {error}') from None


def _to_microseconds(text: str) -> str:
    return re.sub(r"[.,](\d{1,6})\d*", lambda found: "." + found[1].ljust(6, "0"), text)


def format_lock(since: datetime, owner: PodKey) -> str:
    return f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ},{owner[0]},{owner[1]}"


class Step(Enum):
    """What to do about the lock of a node before binding a pod to it."""

    TAKE = auto()
    """Free, or ours and too old: write our own."""
    KEEP = auto()
    """Already ours."""
    ASK = auto()
    """Another pod's: whoever locked may be gone; take it over then, else it is contended."""
    CONTENDED = auto()


def next_step(value: str | None, pod: PodKey, now: datetime, timeout: timedelta) -> Step:
    """Raises `LockError` for an annotation that is no lock. A lock counts up to and including `timeout`."""
    if value is None:
        return Step.TAKE
    lock = parse(value)
    if now - lock.since > timeout:
        return Step.TAKE
    if lock.owner == pod:
        return Step.KEEP
    return Step.ASK if all(lock.owner) else Step.CONTENDED


def is_ours_to_release(value: str | None, pod: PodKey) -> bool:
    """Whether the pod whose bind failed may remove the lock.

    One that names no pod (the old form, or no lock at all) is removed by whoever fails on it, as HAMi does, so that
    the next try gets through.
    """
    return value is not None and ("," not in value or owner_of(value) == pod)


def contended(node: str, timeout: timedelta) -> str:
    return f"node {node} has been locked within {durations.text(timeout)}: node lock contention"


def waited_in_vain(node: str, waited: timedelta) -> str:
    return f"timed out after {durations.text(waited)} waiting for node {node} to be unlocked: node lock contention"


def unsettled(node: str, cause: str) -> str:
    """Somebody else kept changing the node while we tried to write the lock."""
    strategy = "{Duration:100ms Factor:2 Jitter:0.5 Steps:5 Cap:0s}"
    return f"failed to set node lock (node={node}, retry strategy={strategy}): {cause}"
