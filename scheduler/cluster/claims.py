"""Claims on pods that are not bound yet: our own decision counts, or the annotations that a watch delivers. Pure.

A watch is always a little behind. From the moment the scheduler writes a decision until the watch shows it, every
observation of that pod is older than what the scheduler knows. Annotations of a decision that was given up remain in
the pod, but reserve nothing. The annotations of a bound pod always count: a bind may have succeeded although its answer
was lost.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from engine.fit.devices.pod_usage import has_ended
from engine.hami.annotations import ASSIGNED_NODE, ASSIGNED_TIME, DEVICES_ALLOCATED
from scheduler.cluster.cluster_api import get_annotation

Mark = tuple[str | None, ...]

MAX_REMEMBERED_VOID: Final = 100_000
"""Pods whose void annotations are remembered; beyond them the oldest are forgotten, and their annotations count."""

# The time has whole seconds: two decisions within one second differ by node or devices, if at all.
_MARKS: Final = (ASSIGNED_NODE, ASSIGNED_TIME, DEVICES_ALLOCATED)
_UNMARKED: Final[Mark] = (None,) * len(_MARKS)


def to_mark(pod: Mapping[str, Any]) -> Mark:
    """Return the annotations that distinguish one decision about the pod from another."""
    return tuple(get_annotation(pod, key) for key in _MARKS)


class Claims:
    """Claims by pod UID. One object per scheduler; a scheduler that does not lead makes no claims."""

    def __init__(self) -> None:
        self._writing: set[str] = set()
        self._unobserved: dict[str, Mark] = {}
        self._void: OrderedDict[str, set[Mark]] = OrderedDict()

    def is_writing(self, uid: str) -> bool:
        return uid in self._writing

    def begin(self, uid: str) -> None:
        """Begin a claim: a decision was made and reserved, and is now being written into the pod."""
        self._writing.add(uid)
        self._unobserved.pop(uid, None)
        self._void.pop(uid, None)

    def stand(self, uid: str, mark: Mark) -> None:
        """Let the decision stand: it is written. Observations without its mark are older and do not count."""
        self._writing.discard(uid)
        self._unobserved[uid] = mark

    def release_claim(self, uid: str, *marks: Mark) -> None:
        """Release the claim: the pod holds nothing, although these annotations are in it, or may still be written."""
        self._writing.discard(uid)
        self._unobserved.pop(uid, None)
        if voided := {mark for mark in marks if mark != _UNMARKED}:
            self._void.setdefault(uid, set()).update(voided)
        if len(self._void) > MAX_REMEMBERED_VOID:
            self._void.popitem(last=False)

    def accept(self, pod: Mapping[str, Any]) -> bool:
        """Take an observation of the pod; return whether its annotations count."""
        uid = pod["metadata"]["uid"]
        if (pod.get("spec") or {}).get("nodeName") or has_ended(pod):
            self._unobserved.pop(uid, None)
            self._void.pop(uid, None)
            return True
        mark = to_mark(pod)
        if uid in self._writing or self._unobserved.get(uid, mark) != mark:
            return False
        self._unobserved.pop(uid, None)
        # Asked again each time: void annotations remain in the pod, so every later observation has them too.
        return mark not in self._void.get(uid, ())

    def forget(self, uid: str) -> None:
        """Forget a deleted pod."""
        self._writing.discard(uid)
        self._unobserved.pop(uid, None)
        self._void.pop(uid, None)

    def reset(self) -> set[str]:
        """Drop all claims, so that only annotations count; return the UIDs whose annotations were void."""
        voided = set(self._void)
        self._writing.clear()
        self._unobserved.clear()
        self._void.clear()
        return voided
