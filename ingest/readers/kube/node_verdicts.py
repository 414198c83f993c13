"""The nodes that an attempt's scheduling events name, with their verdicts, and those that they only count."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from engine.hami.reason_codes import EXTENDER_REASON_CODES, ReasonCode
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
    observed_at: datetime | None = None
    """Time of its latest observation."""


@dataclass(slots=True)
class NodeVerdicts:
    verdicts: dict[str, str] = field(default_factory=dict)
    """By name."""
    scores: dict[str, float] = field(default_factory=dict)
    reasons: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By name, the reason and its details."""
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


def collect_verdicts(group: EventGroup, facts: PodFacts) -> NodeVerdicts:
    outcome = NodeVerdicts()
    for event in group.events:
        if add := _BY_KIND.get(event.kind):
            add(outcome, event, facts)
    return outcome


def _add_refusals_by_code(outcome: NodeVerdicts, event: SchedulingEvent, _facts: PodFacts) -> None:
    for name in event.nodes:
        outcome.verdicts[name] = REFUSED
        if (previous := outcome.reasons.get(name)) is None:
            outcome.reasons[name] = (event.code, "")
        elif event.code not in (previous[0], *previous[1].removeprefix("also ").split(", ")):
            # HAMi names a node once per code that one of its devices was refused for; a copy may repeat the event.
            outcome.reasons[name] = (
                previous[0],
                f"{previous[1]}, {event.code}" if previous[1] else f"also {event.code}",
            )
            _count(outcome, event.code, 1)
    _count(outcome, event.code, event.count - len(event.nodes))


def _count(outcome: NodeVerdicts, reason: str, nodes: int) -> None:
    if nodes > 0:
        outcome.counts[reason] = outcome.counts.get(reason, 0) + nodes


def _add_failure(outcome: NodeVerdicts, event: SchedulingEvent, _facts: PodFacts) -> None:
    outcome.total = max(outcome.total, event.count)
    outcome.message = outcome.message or event.text
    if not event.count:
        outcome.error = event.text


def _add_fitting(outcome: NodeVerdicts, event: SchedulingEvent, _facts: PodFacts) -> None:
    for name, score in event.scores.items():
        outcome.verdicts[name], outcome.scores[name] = FITS, score
    outcome.verdicts[event.node] = PICKED
    outcome.total = max(outcome.total, event.refused_count + max(event.count, len(outcome.verdicts)))
    outcome.message = event.text


def _add_chosen(outcome: NodeVerdicts, event: SchedulingEvent, _facts: PodFacts) -> None:
    outcome.verdicts[event.node] = PICKED
    outcome.total = max(outcome.total, len(outcome.verdicts))
    outcome.nominated = event.nominated
    outcome.message = outcome.message or event.text


def _add_bound(outcome: NodeVerdicts, event: SchedulingEvent, facts: PodFacts) -> None:
    """Add the bind's node as the choice: kube-scheduler has no event for its choice."""
    if event.node and outcome.picked is None:
        _add_chosen(outcome, event, facts)


def _add_refusal(outcome: NodeVerdicts, event: SchedulingEvent, facts: PodFacts) -> None:
    message = _restore_cut(parse_failure(event.text), facts)
    outcome.message, outcome.is_cut = message.text, message.is_cut
    outcome.total = max(outcome.total, message.total)
    outcome.nominated = message.nominated or facts.nominated
    if outcome.reasons or outcome.counts:
        _add_unnamed(outcome, message.counts)
        return
    # Counts explain HAMi's event about all nodes, which up to v2.5 has no count and would pass for an error.
    outcome.error = message.error or ("" if message.counts or message.nodes else outcome.error)
    outcome.counts.update(message.counts)
    for name, reason in message.nodes.items():
        outcome.verdicts[name], outcome.reasons[name] = REFUSED, reason


def _add_unnamed(outcome: NodeVerdicts, counts: Mapping[str, int]) -> None:
    """Add the nodes that HAMi's events do not name: those that kube-scheduler's filters refused before HAMi was asked,
    and those without devices. kube-scheduler counts the others too, under HAMi's codes."""
    for reason, count in counts.items():
        code = reason.partition(":")[0]
        if code == ReasonCode.NODE_UNREGISTERED or code not in EXTENDER_REASON_CODES:
            outcome.counts[reason] = max(outcome.counts.get(reason, 0), count)


def _restore_cut(message: FailureMessage, facts: PodFacts) -> FailureMessage:
    """Restore a text that was cut from the pod's condition, if both begin with the same text."""
    start = message.text.removesuffix(CUT_MARK)
    is_same = message.text.endswith(CUT_MARK) and facts.message.startswith(start)
    return parse_failure(facts.message) if is_same else message


# Events of other kinds, such as a failed bind, are about no further node.
_BY_KIND: Final[dict[str, Callable[[NodeVerdicts, SchedulingEvent, PodFacts], None]]] = {
    "failed by code": _add_refusals_by_code,
    "failed": _add_failure,
    "fits": _add_fitting,
    "chosen": _add_chosen,
    "refused": _add_refusal,
    "bound": _add_bound,
}
