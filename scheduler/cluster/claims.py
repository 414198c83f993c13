"""Whose word counts about a pod that is not bound yet: our own, or the annotations that a watch brings. Pure.

A watch is always a little behind. While the scheduler writes a decision, and until the watch tells of it, what it hears
about that pod is older than what it knows; and annotations of a decision that it gave up still stand in the pod, but
hold nothing. A bound pod's annotations always count: a bind may have succeeded although its answer was lost.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from hami.annotations import ASSIGNED_NODE, ASSIGNED_TIME, DEVICES_ALLOCATED
from scheduler.cluster.cluster_api import annotation
from scheduler.devices.pod_usage import has_ended

Mark = tuple[str | None, ...]

MAX_REMEMBERED_VOID: Final = 100_000
"""Of so many pods it is known that their annotations hold nothing; of those before them they count again."""

_MARKS: Final = (ASSIGNED_NODE, ASSIGNED_TIME, DEVICES_ALLOCATED)
_UNMARKED: Final[Mark] = (None,) * len(_MARKS)


def mark_of(pod: Mapping[str, Any]) -> Mark:
    """What tells one decision about a pod from another, as it stands in the pod's annotations."""
    return tuple(annotation(pod, key) for key in _MARKS)


class Claims:
    """All by the pod's UID. One per scheduler; a scheduler that does not lead makes none."""

    def __init__(self) -> None:
        self._writing: set[str] = set()
        self._untold: dict[str, Mark] = {}
        self._void: OrderedDict[str, set[Mark]] = OrderedDict()

    def is_writing(self, uid: str) -> bool:
        return uid in self._writing

    def begin(self, uid: str) -> None:
        """A decision is made and reserved, and is now being written into the pod."""
        self._writing.add(uid)
        self._untold.pop(uid, None)
        self._void.pop(uid, None)

    def stand(self, uid: str, mark: Mark) -> None:
        """It is written. What the watch says of the pod before it says this is of an earlier decision."""
        self._writing.discard(uid)
        self._untold[uid] = mark

    def let_go(self, uid: str, *marks: Mark) -> None:
        """The pod holds nothing any more, although these annotations stand in it, or may come to."""
        self._writing.discard(uid)
        self._untold.pop(uid, None)
        if told := {mark for mark in marks if mark != _UNMARKED}:
            self._void.setdefault(uid, set()).update(told)
        if len(self._void) > MAX_REMEMBERED_VOID:
            self._void.popitem(last=False)

    def count(self, pod: Mapping[str, Any]) -> bool:
        """Whether what this telling of a pod says it holds is to be believed."""
        uid = pod["metadata"]["uid"]
        if (pod.get("spec") or {}).get("nodeName") or has_ended(pod):
            self._untold.pop(uid, None)
            self._void.pop(uid, None)
            return True
        mark = mark_of(pod)
        if uid in self._writing or self._untold.get(uid, mark) != mark:
            return False
        self._untold.pop(uid, None)
        return mark not in self._void.get(uid, ())

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._writing.discard(uid)
        self._untold.pop(uid, None)
        self._void.pop(uid, None)

    def reset(self) -> set[str]:
        """Begin anew: only annotations count, until something is decided. The pods whose annotations did not."""
        voided = set(self._void)
        self._writing.clear()
        self._untold.clear()
        self._void.clear()
        return voided
