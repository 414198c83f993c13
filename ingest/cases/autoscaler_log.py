"""Lines of the cluster autoscaler's log: about a pod, and what only makes sense together with others.

The autoscaler checks equal pods once per node group, and names their namespace in another line.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from ingest.cases.stated_sentences import PastedEvent

REPORTER: Final = "cluster-autoscaler"
_UNPLACED: Final = re.compile(r"\] Pod (?P<namespace>[^\s/]+)/(?P<name>\S+) is unschedulable$")
_GROUP: Final = re.compile(r"can't be scheduled on (?P<group>[^\s,]+?)(?P<why>,.*|\. Used cached .*)$")
_CACHED: Final = ". Used cached "
_GROUP_OUT: Final = re.compile(
    r"\] (?P<note>(?:Skipping node group|Node group) \S+ (?:is not ready for scaleup - |- ).*)$"
)


_SCALER_REFUSES: Final = (
    r"\] (?P<note>Pod (?:(?P<namespace>[^\s/]+)/)?(?P<name>\S+) can't be scheduled on \S+?"
    r"(?:, predicate (?:checking error|failed): .*?|\. Used cached predicate check results))(?:; predicateName=.*)?$"
)
_SCALER_REFUSED: Final = (
    r"\] Scale-up predicate failed: (?P<note>.*cannot put (?P<namespace>[^\s/]+)/(?P<name>\S+) on .*)$"
)
"""Line of versions up to 1.12."""
_SCALER_SPARES: Final = (
    r"\] (?P<note>Pod (?P<namespace>[^\s./]+)[./](?P<name>\S+) marked as unschedulable can be scheduled on .*)$"
)
_SCALER_LINES: Final = tuple(map(re.compile, (_SCALER_REFUSES, _SCALER_REFUSED, _SCALER_SPARES)))
"""Lines of the cluster autoscaler's log about a pod: a group of nodes refuses it, or a node would take it."""


def parse_scaler_line(line: str) -> PastedEvent | None:
    """Parse a line about one pod; None for another line."""
    match = next((match for pattern in _SCALER_LINES if (match := pattern.search(line))), None)
    if match is None:
        return None
    names = {"kind": "Pod", "namespace": match["namespace"] or "", "name": match["name"]}
    return PastedEvent("NotTriggerScaleUp", match["note"], REPORTER, is_warning=False, **names)


class ScalerLog:
    """Remembers what the lines of one log say of each other."""

    def __init__(self) -> None:
        self._namespaces: dict[str, str] = {}
        self._reasons: dict[str, str] = {}
        self._out: dict[str, None] = {}
        """Lines about node groups that can't grow now."""

    def note_line(self, line: str) -> None:
        if unplaced := _UNPLACED.search(line.rstrip()):
            self._namespaces[unplaced["name"]] = unplaced["namespace"]
        if out := _GROUP_OUT.search(line.rstrip()):
            self._out[out["note"]] = None

    def complete(self, event: PastedEvent) -> PastedEvent:
        """Write the reason of an earlier check into a line that refers to it."""
        match = _GROUP.search(event.note) if event.reporter == REPORTER else None
        if match is None:
            return event
        if not match["why"].startswith(_CACHED):
            self._reasons[match["group"]] = match["why"]
            return event
        earlier_reason = self._reasons.get(match["group"], match["why"])
        return replace(event, note=event.note.removesuffix(match["why"]) + earlier_reason)

    def name_pods(self, events: Sequence[PastedEvent]) -> Iterator[PastedEvent]:
        """Yield the events with the namespaces of their pods, and for each pod the groups that can't grow."""
        pods: dict[tuple[str, str], PastedEvent] = {}
        for event in events:
            if event.reporter == REPORTER and event.name in self._namespaces and not event.namespace:
                event = replace(event, namespace=self._namespaces[event.name])
            if event.reporter == REPORTER and event.name in self._namespaces:
                pods[event.namespace, event.name] = event
            yield event
        for event in pods.values():
            yield from (replace(event, note=note) for note in self._out)
