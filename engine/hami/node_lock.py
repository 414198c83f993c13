"""Node lock: `hami.io/mutex.lock` on a node names the pod that is being bound to it (HAMi's `nodelock.go`).

`<RFC 3339 time>,<namespace>,<pod>`; before HAMi v2.3 only the time. This module reads, writes and judges it. Error
texts are HAMi's, with the texts of Go's time parser.
"""

import re
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Final, NamedTuple

from engine.hami.reason_codes import ReasonCode
from runtime import durations

CONTENTION: Final = ReasonCode.NODE_LOCK_CONTENTION.value
"""End of every error about a lock that another pod holds."""

EXPIRES_AFTER: Final = timedelta(minutes=5)
"""Age at which HAMi takes over a lock, unless its --node-lock-timeout says another time."""

PodKey = tuple[str, str]
"""(namespace, name)"""

_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
# A parser by hand, because its errors reach users in pod events and have to be Go's, word for word.
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
"""Parts of a time in order: a pattern, and the name that Go's parser gives the part in its errors."""


class NodeLockError(ValueError):
    """Text of an annotation that is not a lock; the message is HAMi's."""


class Lock(NamedTuple):
    """Lock of a node. since: time of locking; owner: the pod that locked it, ("", "") in the old form."""

    since: datetime
    owner: PodKey


def parse_lock(value: str) -> Lock:
    """Parse an annotation. Raises `NodeLockError` with HAMi's text."""
    parts = value.split(",")
    if len(parts) == 1:
        return Lock(parse_time(value), ("", ""))
    # A pod's name holds no comma, so three parts are exact.
    if len(parts) != 3:
        raise NodeLockError(f"malformed lock annotation: expected 3 parts, got {len(parts)} from {value}")
    return Lock(parse_time(parts[0]), (parts[1], parts[2]))


def parse_owner(value: str) -> PodKey | None:
    """Parse the pod in a lock; None for the old form and for other texts."""
    parts = value.split(",")
    return (parts[1], parts[2]) if len(parts) == 3 else None


def parse_time(text: str) -> datetime:
    """Parse RFC 3339 as Go reads it. Raises `NodeLockError` with Go's text."""
    remainder = text
    for pattern, name in _STEPS:
        match = re.match(pattern, remainder, re.ASCII)
        if not match:
            raise NodeLockError(f'parsing time "{text}" as "{_LAYOUT}": cannot parse "{remainder}" as "{name}"')
        remainder = remainder[match.end() :]
    if remainder:
        raise NodeLockError(f'parsing time "{text}": extra text: "{remainder}"')
    try:
        return datetime.fromisoformat(_to_microseconds(text)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise NodeLockError(f'parsing time "{text}": {error}') from None


def _to_microseconds(text: str) -> str:
    # Go accepts nanoseconds and a comma before them; ``fromisoformat`` stops at microseconds.
    return re.sub(r"[.,](\d{1,6})\d*", lambda match: "." + match[1].ljust(6, "0"), text)


def format_lock(since: datetime, owner: PodKey) -> str:
    # In UTC and without fractions, as HAMi writes it: its own scheduler and device plugin read this lock as well.
    return f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ},{owner[0]},{owner[1]}"


class Step(Enum):
    """Steps that a bind may take with the node's lock."""

    TAKE = auto()
    """Write our lock: the node is free, or its lock is too old."""
    KEEP = auto()
    """The lock is already ours."""
    CHECK_OWNER = auto()
    """Another pod holds the lock: take it over if that pod is gone, fail otherwise."""
    CONTENDED = auto()
    """A lock in the old form, whose owner can't be looked up: fail."""


def choose_step(value: str | None, pod: PodKey, now: datetime, timeout: timedelta) -> Step:
    """Choose the bind's step. A lock is valid up to and including `timeout`.

    Raises `NodeLockError` for an annotation that is not a lock.
    """
    if value is None:
        return Step.TAKE
    lock = parse_lock(value)
    # First, and for our own lock too: another may take an expired lock, so it is written again.
    if now - lock.since > timeout:
        return Step.TAKE
    if lock.owner == pod:
        return Step.KEEP
    # HAMi steals the lock of a pod that no longer exists; without a name none can be looked up.
    return Step.CHECK_OWNER if all(lock.owner) else Step.CONTENDED


def is_ours_to_release(value: str | None, pod: PodKey) -> bool:
    """Tell whether the pod whose bind failed may remove the lock.

    As in HAMi, it also removes a lock without an owner (the old form, or any other text): the next try succeeds.
    """
    return value is not None and ("," not in value or parse_owner(value) == pod)


def describe_contention(node: str, timeout: timedelta) -> str:
    return f"node {node} has been locked within {durations.format_go(timeout)}: {CONTENTION}"


def describe_wait(node: str, waited: timedelta) -> str:
    """Describe the failure of a member of a pod group that waited for the lock."""
    return f"timed out after {durations.format_go(waited)} waiting for node {node} to be unlocked: {CONTENTION}"


_CONTENTION_TEXTS: Final = re.compile(
    # v2.4 to v2.6: "within 5 minutes"; v2.7 to v2.9: "within 5m0s"; since v2.10 with the reason behind it.
    r"node (?P<locked>\S{1,253}) has been locked within "
    # Members of a pod group wait for the lock, since v2.10.
    r"|waiting for node (?P<waited>\S{1,253}) to be unlocked"
)
"""Errors of binds to a node that another pod has locked, as each version of HAMi spells them."""


def is_contention(error: str) -> bool:
    """Tell whether a bind failed because another pod holds the node's lock."""
    return error.endswith(CONTENTION) or _CONTENTION_TEXTS.search(error) is not None


def find_locked_node(error: str) -> str:
    """Find the node whose lock the error is about; empty for any other error."""
    match = _CONTENTION_TEXTS.search(error)
    return (match["locked"] or match["waited"]) if match else ""


def describe_conflict(node: str, cause: str) -> str:
    """Describe the failure where the node changed each time that we tried to write the lock."""
    # Go's ``%+v`` of the ``wait.Backoff`` with which HAMi retries the write; a part of its error text.
    strategy = "{Duration:100ms Factor:2 Jitter:0.5 Steps:5 Cap:0s}"
    return f"failed to set node lock (node={node}, retry strategy={strategy}): {cause}"
