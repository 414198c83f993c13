"""KAI's refusals of a pod or group before nodes are tried: larger than every node of its pool, or no domain has room.

The texts are those of KAI's plugins for predicates (``MaxNodePoolResources``) and topology.
"""

import re
from collections.abc import Iterator
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.layers.statements import Statement, find_refusal
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word

_QUESTION: Final = "NodesOpen"
_LARGEST: Final = re.compile(
    r"The pod \S+ requires (?P<requests>[^.]*(?:\.\d[^.]*)*)\. "
    r"Max (?P<resource>.+?) resources available in a single node in the (?P<pool>\S+) node-pool is topped at "
    r"(?P<largest>[\d.]*\d)"
)
_NONE: Final = re.compile(r"No node in the (?P<pool>\S+) node-pool has (?P<resource>.+?) resources")
_DOMAIN: Final = re.compile(r"node-group (?P<domain>\S+) can allocate only (?P<fit>\d+) of (?P<pods>\d+) required pods")
_NO_TOPOLOGY: Final = re.compile(r"Requested topology (?P<topology>\S+) does not exist")
_TOPOLOGY: Final = re.compile(r"topology (?P<topology>[^\s,]+), requirement (?P<level>[^\s,]+) couldn't be satisfied")


def check_pool(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    """Check whether KAI says that no node, or no domain of its topology, can hold the pod."""
    refusal = find_refusal(facts)
    obstacle = _explain(refusal) if refusal else None
    if obstacle:
        yield TreeStep(_QUESTION, "no", obstacle.evidence, (), [obstacle])


def _explain(refusal: Statement) -> FoundObstacle | None:
    text, evidence = refusal.text, [refusal.evidence]
    if match := _LARGEST.search(text):
        words: dict[str, Word] = {**match.groupdict(), "asked": _find_request(match["requests"], match["resource"])}
        return FoundObstacle("PoolNodesTooSmall", words, evidence=evidence, clauses=["asked"] if words["asked"] else [])
    if match := _NONE.search(text):
        return FoundObstacle("PoolWithoutResource", match.groupdict(), evidence=evidence)
    if match := _NO_TOPOLOGY.search(text):
        return FoundObstacle("TopologyMissing", match.groupdict(), evidence=evidence)
    named, domain = _TOPOLOGY.search(text), _DOMAIN.search(text)
    if named is None and domain is None:
        return None
    words = {**(named.groupdict() if named else {}), **(domain.groupdict() if domain else {})}
    clauses = [*(["topology"] if named else []), *(["domain"] if domain else [])]
    return FoundObstacle("NoDomainHasRoom", words, evidence=evidence, clauses=clauses)


def _find_request(requests: str, resource: str) -> str:
    """Find the amount of a resource in a list such as ``GPU: 4, CPU: 1 (cores)``; empty if it is not named."""
    match = re.search(rf"(?:^|, ){re.escape(resource)}: (?P<amount>[^,]+)", requests)
    return match["amount"].strip() if match else ""
