"""Pods that their node refused, and the younger pods by which their owners have replaced them.

A refused pod stays as an object until somebody deletes it, and waits only until its owner has made another.
"""

from collections import OrderedDict
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from engine.diagnosis.waiting import is_refused_by_node
from ingest.readers.kube.objects import remember
from schemas.events import PodObserved, PodRef

_LATER = timedelta(microseconds=1)


class _Youngest(NamedTuple):
    created_at: datetime
    name: str


class Replacements:
    """Refused pods and the youngest pod by owner."""

    def __init__(self) -> None:
        self._youngest: OrderedDict[str, _Youngest] = OrderedDict()
        self._refused: OrderedDict[str, dict[str, PodObserved]] = OrderedDict()

    def mark(self, event: PodObserved) -> Iterator[PodObserved]:
        """Yield the observation, marked if the pod is replaced, and those of refused pods that this one replaces."""
        owner = _name_owner(event)
        created = event.description.created_at if event.description else None
        if not owner or created is None:
            yield event
            return
        before = self._youngest.get(owner)
        if before is None or created > before.created_at:
            remember(self._youngest, owner, _Youngest(created, event.pod.name))
        refused = self._refused.get(owner, {})
        if is_refused_by_node(event):
            remember(self._refused, owner, refused | {event.pod.name: event})
            event = self._mark_refused(owner, event)
        yield event
        # Only a younger pod than before replaces some that were not replaced yet.
        if self._youngest[owner].name == event.pod.name:
            marked = [self._mark_refused(owner, other) for name, other in refused.items() if name != event.pod.name]
            yield from (other for other in marked if other.replaced_by)

    def _mark_refused(self, owner: str, event: PodObserved) -> PodObserved:
        youngest = self._youngest[owner]
        created = event.description.created_at if event.description else None
        # Pods that their owner made together with it, and before it was refused, replace nothing.
        if created is None or youngest.created_at <= created or youngest.created_at < event.problems[0].at:
            return event
        # Later than the refusal: the index keeps the latest state.
        moment = max(event.observed_at + _LATER, youngest.created_at)
        return event.model_copy(update={"replaced_by": youngest.name, "observed_at": moment})

    def forget(self, pod: PodRef) -> None:
        """Forget a pod that was deleted."""
        owners = [owner for owner, refused in self._refused.items() if pod.name in refused]
        for owner in owners:
            if owner.startswith(f"{pod.namespace}/"):
                del self._refused[owner][pod.name]
                if not self._refused[owner]:
                    del self._refused[owner]


def _name_owner(event: PodObserved) -> str:
    owners = event.description.owners if event.description else []
    return f"{event.pod.namespace}/{owners[0]}" if owners else ""
