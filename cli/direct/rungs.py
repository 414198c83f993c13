"""Rungs of what may be read: what an answer stands on, and what it would say with further rights. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from cli.client.problems import NotAllowed, Problem
from cli.direct.scheduler_logs import LogReading
from engine.snapshot import kinds

_SHOWN_NODES: Final = 3
_RUNGS: Final = (
    (frozenset((kinds.NODE, kinds.POD)), "which node or device refuses the pod, and what would help"),
    (frozenset(("Event",)), "what the scheduler wrote about the pod"),
    (frozenset((kinds.VOLUME_CLAIM, kinds.VOLUME, kinds.STORAGE_CLASS)), "whether its volumes can be used"),
)
"""Kinds, and what the answer would say with them."""


def describe_rung(problems: Mapping[str, Problem]) -> str:
    """Describe what the answer stands on, and what it would say with further rights."""
    text = "Read from the cluster's objects, without schedulerlog's records (history needs its API)."
    if not problems:
        return text
    names = ", ".join(sorted(kind.partition(".")[0] for kind in problems))
    missing = [gain for needed, gain in _RUNGS if needed & problems.keys()]
    gains = f"; with the right to list them it would say {' and '.join(missing)}" if missing else ""
    return f"{text} You may not read: {names}{gains}."


def describe_log(log: LogReading | None, judged: int, differing: Sequence[str]) -> str:
    """Describe what the scheduler's log adds; ``differing``: nodes on which the judge decides otherwise now.

    Empty where no scheduler's pod was recognised.
    """
    if log is None or not log.source:
        return ""
    namespace = log.source.partition("/")[0]
    if isinstance(log.problem, NotAllowed):
        return (
            f"With the right to get pods/log in {namespace} it would say what the scheduler decided "
            f"(`kubectl auth can-i get pods/log -n {namespace}`)."
        )
    if log.problem:
        return f"The scheduler's log ({log.source}) can't be read: {log.problem.cause}."
    if log.tried_at is None:
        return f"The end of the scheduler's log ({log.source}) has no attempt of the pod."
    text = f"The scheduler's log ({log.source}) has its attempt of {log.tried_at:%Y-%m-%d %H:%M:%S} UTC"
    if differing:
        names = ", ".join(differing[:_SHOWN_NODES]) + (" …" if len(differing) > _SHOWN_NODES else "")
        return f"{text}; judged on the objects as they are now, {len(differing):,} nodes differ: {names}."
    return f"{text}; the judge agrees about every node." if judged else f"{text}."
