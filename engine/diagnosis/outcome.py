"""Outcome of the tree's steps: answers with their evidence, and obstacles."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

from engine.diagnosis.evidence import Evidence, Unknown
from schemas.answers.diagnosis import InBothLanguages

AnswerToQuestion = Literal["yes", "no", "not known"]
Word = str | int | InBothLanguages
"""Value that fills a placeholder of a text."""


class DeviceExample(NamedTuple):
    """A device that a request of a claim cannot have, for all with the same words."""

    device: str
    node: str
    text: InBothLanguages
    devices: int
    holder_namespace: str = ""
    """Namespace of the claim that holds it; empty if none does."""


class DevicesOfReason(NamedTuple):
    """Devices that one reason keeps from a request of a claim."""

    reason: str
    devices: int
    examples: Sequence[DeviceExample]


class FoundObstacle(NamedTuple):
    """Something that keeps the pod from a node; ``code`` has its texts, whose placeholders ``words`` fill."""

    code: str
    words: Mapping[str, Word] = MappingProxyType({})
    numbers: Mapping[str, int] = MappingProxyType({})
    nodes: Sequence[str] = ()
    node_count: int = 0
    """Number of nodes that it excludes; ``nodes`` may name fewer."""
    evidence: Sequence[Evidence] = ()
    clauses: Sequence[str] = ()
    """Names of further clauses of its sentence: those whose numbers are reported."""
    is_aside: bool = False
    """True if it closes only nodes that the pod was not meant for, while others refuse it for other reasons."""
    devices: Sequence[DevicesOfReason] = ()
    """Devices by reason, for a request of a claim; the nearest to a fit first."""


class JudgedPod(NamedTuple):
    """Verdicts on a waiting pod, worked out on the cluster's objects by kube-scheduler's filters and HAMi's fit."""

    obstacles: Sequence[FoundObstacle]
    fitting: Sequence[str]
    """Nodes that would take the pod."""
    total: int
    """Nodes of the cluster."""
    counts: Mapping[str, int]
    """Nodes by reason, as kube-scheduler counts them."""
    is_certain: bool
    """True if everything that decides was read."""
    unread: frozenset[str] = frozenset()
    """Kinds of objects that were not read, without which some verdict is open."""
    causes: Sequence[str] = ()
    """Causes of open verdicts that no further object removes, such as a malformed one."""


class TreeStep(NamedTuple):
    """One question with its answer."""

    question: str
    answer: AnswerToQuestion
    evidence: Sequence[Evidence] = ()
    not_known: Sequence[Unknown] = ()
    obstacles: Sequence[FoundObstacle] = ()
    is_end: bool = False
    """True if the questions below this one do not matter any more."""


def to_answer(is_so: bool | None) -> AnswerToQuestion:
    return "not known" if is_so is None else "yes" if is_so else "no"
