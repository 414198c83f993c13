"""Nodes that an autoscaler has added: the scheduler counts more of them than before, and still refuses the pod.

Waiting for the node is then no remedy. The reasons that a later refusal counts on more nodes than an earlier one are
those of the nodes that came.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.layers.node_reasons import iterate_reasons
from engine.diagnosis.layers.statements import Statement, iterate_events
from engine.diagnosis.outcome import FoundObstacle
from engine.diagnosis.texts import find_taint_obstacle, write_sentence
from schemas.answers.diagnosis import InBothLanguages

_COUNTED: Final = re.compile(r"\d+/(?P<total>\d{1,9}) nodes are available: ")
_STARTING: Final = re.compile(r"not-?ready|uninitialized|unreachable", re.IGNORECASE)
"""Part of a taint that a node bears until it is up."""
_COMING: Final = frozenset(("NodeNotReady", "NodeConditionTaint"))


class ScaleUp(NamedTuple):
    """Nodes that came after an autoscaler had begun to add them."""

    before: int
    after: int
    reasons: Sequence[InBothLanguages]
    """Reasons of the later refusal that more nodes have than before, as sentences."""
    refusal: Statement


def find_scale_up(facts: DiagnosisFacts, trigger: Statement) -> ScaleUp | None:
    """Find the nodes that came after the trigger and do not take the pod; None where they may still be starting."""
    started_at = trigger.evidence.time
    refusals = [(int(match["total"]), event) for event, match in _iterate_counted(facts)]
    timed = [(total, event, event.evidence.time) for total, event in refusals if event.evidence.time]
    earlier = next(((total, event) for total, event, time in timed if started_at and time <= started_at), None)
    later = next(((total, event) for total, event, time in timed if started_at and time > started_at), None)
    if earlier is None or later is None or later[0] <= earlier[0]:
        return None
    counts = {_identify(reason): reason.node_count for reason in iterate_reasons(facts, earlier[1].text)}
    new = [
        reason
        for reason in iterate_reasons(facts, later[1].text)
        if reason.node_count > counts.get(_identify(reason), 0)
    ]
    if any(_is_starting(reason) for reason in new):
        return None
    return ScaleUp(earlier[0], later[0], [_describe(reason) for reason in new], later[1])


def _iterate_counted(facts: DiagnosisFacts) -> Iterator[tuple[Statement, re.Match[str]]]:
    for event in iterate_events(facts, "FailedScheduling"):
        if match := _COUNTED.match(event.text):
            yield event, match


def _identify(reason: FoundObstacle) -> tuple[str, str]:
    return reason.code, str(reason.words.get("words") or "")


def _describe(reason: FoundObstacle) -> InBothLanguages:
    taints = _identify(reason)[1] if reason.code == "TaintNotTolerated" else ""
    words = {**reason.words, "taints": taints}
    return write_sentence(reason._replace(words=words, clauses=["taints"] if taints else []))


def _is_starting(reason: FoundObstacle) -> bool:
    details = _identify(reason)[1]
    return find_taint_obstacle(reason.code, details) in _COMING or bool(_STARTING.search(details))
