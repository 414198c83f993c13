"""The nodes that an attempt's scheduling events name, with their verdicts, and those that they only count."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ingest.readers.kube.failure_messages import CUT_MARK, FailureMessage, parse_failure
from ingest.readers.kube.open_attempts import EventGroup
from ingest.readers.kube.scheduling_events import SchedulingEvent
from schemas.events import FITS, PICKED, REFUSED, PodDescription, PodRef, Request


@dataclass(frozen=True, slots=True)
class PodFacts:
    """The state of the pod itself, as far as it was observed."""

    ref: PodRef | None = None
    requests: tuple[Request, ...] = ()
    nominated: str = ""
    node: str = ""
    message: str = ""
    """The message of the condition PodScheduled, which Kubernetes does not truncate as it truncates events."""
    phase: str = ""
    description: PodDescription | None = None
    """Until the pod starts: events about its scheduling come before, and it takes the most memory of all this."""


@dataclass(slots=True)
class NodeVerdicts:
    verdicts: dict[str, str] = field(default_factory=dict)
    """By name."""
    scores: dict[str, float] = field(default_factory=dict)
    reasons: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By name, the reason and what more is known about it."""
    counts: dict[str, int] = field(default_factory=dict)
    """By reason, the nodes that are counted and not named."""
    total: int = 0
    error: str = ""
    nominated: str = ""
    message: str = ""
    is_cut: bool = False
    """The end of the message is missing."""

    @property
    def picked(self) -> str | None:
        return next((name for name, verdict in self.verdicts.items() if verdict == PICKED), None)

    @property
    def known_total(self) -> int:
        return max(self.total, len(self.verdicts))


def node_verdicts(group: EventGroup, facts: PodFacts) -> NodeVerdicts:
    found = NodeVerdicts()
    for event in group.events:
        if add := _BY_KIND.get(event.kind):
            add(found, event, facts)
    return found


def _failed_by_code(found: NodeVerdicts, event: SchedulingEvent, _facts: PodFacts) -> None:
    for name in event.nodes:
        found.verdicts[name] = REFUSED
        if (known := found.reasons.get(name)) is None:
            found.reasons[name] = (event.code, "")
        else:
            # HAMi names a node once per code that one of its devices was refused for.
            found.reasons[name] = (known[0], f"{known[1]}, {event.code}" if known[1] else f"also {event.code}")
            _count(found, event.code, 1)
    _count(found, event.code, event.count - len(event.nodes))


def _count(found: NodeVerdicts, reason: str, nodes: int) -> None:
    if nodes > 0:
        found.counts[reason] = found.counts.get(reason, 0) + nodes


def _failed(found: NodeVerdicts, event: SchedulingEvent, _facts: PodFacts) -> None:
    found.total = max(found.total, event.count)
    found.message = found.message or event.text
    if not event.count:
        found.error = event.text


def _fits(found: NodeVerdicts, event: SchedulingEvent, _facts: PodFacts) -> None:
    for name, score in event.scores.items():
        found.verdicts[name], found.scores[name] = FITS, score
    found.verdicts[event.node] = PICKED
    found.total = max(found.total, event.refused_count + max(event.count, len(found.verdicts)))
    found.message = event.text


def _chosen(found: NodeVerdicts, event: SchedulingEvent, _facts: PodFacts) -> None:
    found.verdicts[event.node] = PICKED
    found.total = max(found.total, len(found.verdicts))
    found.nominated = event.nominated
    found.message = found.message or event.text


def _bound(found: NodeVerdicts, event: SchedulingEvent, facts: PodFacts) -> None:
    """kube-scheduler has no event for its choice: the bind is the only one that names the node."""
    if event.node and found.picked is None:
        _chosen(found, event, facts)


def _refused(found: NodeVerdicts, event: SchedulingEvent, facts: PodFacts) -> None:
    message = _uncut(parse_failure(event.text), facts)
    found.message, found.is_cut = message.text, message.is_cut
    found.total = max(found.total, message.total)
    found.nominated = message.nominated or facts.nominated
    # Where HAMi named nodes, kube-scheduler's counts are of the same nodes and must not be added.
    if found.reasons or found.counts:
        return
    found.error = message.error or found.error
    found.counts.update(message.counts)
    for name, reason in message.nodes.items():
        found.verdicts[name], found.reasons[name] = REFUSED, reason


def _uncut(message: FailureMessage, facts: PodFacts) -> FailureMessage:
    """The pod's condition instead of a text that was cut, where both begin with the same text."""
    start = message.text.removesuffix(CUT_MARK)
    is_same = message.text.endswith(CUT_MARK) and facts.message.startswith(start)
    return parse_failure(facts.message) if is_same else message


# Events of other kinds, such as a failed bind, are about no further node.
_BY_KIND: Final[dict[str, Callable[[NodeVerdicts, SchedulingEvent, PodFacts], None]]] = {
    "failed by code": _failed_by_code,
    "failed": _failed,
    "fits": _fits,
    "chosen": _chosen,
    "refused": _refused,
    "bound": _bound,
}
