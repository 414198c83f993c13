"""Failures after a node was chosen: plugins of kube-scheduler that reserve, permit, prepare or make the bind.

kube-scheduler counts no nodes then. ``0/1 nodes are available`` of such a plugin does not mean a cluster of one node.
"""

import re
from collections.abc import Iterator
from typing import Final

from engine.diagnosis.bind_steps import build_lock_obstacle
from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.layers.statements import find_bind_failure
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word
from engine.diagnosis.wording import get_scheduler, quote
from engine.hami.node_lock import find_locked_node

QUESTION: Final = "ChoiceHeld"
PLUGIN_FAILED: Final = re.compile(
    r"running (?P<phase>Reserve/Permit|Reserve|Permit|PreBind|Bind) plugin \"?(?P<plugin>[^\":]+)\"?: (?P<words>.*)",
    re.DOTALL,
)
_TIMEOUT: Final = re.compile(r"rejected due to timeout after waiting (?P<waited>\S+) at plugin (?P<plugin>\w+)")
_REJECTED: Final = re.compile(r"binding rejected: (?P<words>.*)", re.DOTALL)
_CONFLICT: Final = re.compile(r"Operation cannot be fulfilled on (?P<object>.*?): the object has been modified")

_DRIVER_WAITS: Final = re.compile(
    r"waiting for resource driver to (?:allocate resource|provide information)\b.*", re.DOTALL
)
"""Words of the plugin DynamicResources up to 1.31, where the controller of a driver allocates claims."""


def check_choice(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    """Check whether the node that was chosen last was given up, and by which plugin."""
    statement = find_bind_failure(facts)
    if statement is None:
        return
    words: dict[str, Word] = {"scheduler": get_scheduler(facts), "words": quote(statement.text)}
    bind = facts.attempt.bind if facts.attempt else None
    locked = find_locked_node(statement.text)
    if locked:
        # The questions about a bind name its lock themselves.
        if bind is None:
            obstacle = build_lock_obstacle(facts, locked, [statement.evidence])
            yield TreeStep(QUESTION, "no", obstacle.evidence, (), [obstacle])
        return
    if match := _DRIVER_WAITS.search(statement.text):
        obstacle = FoundObstacle("ClaimDriverWaits", words | {"words": quote(match[0])})
    elif match := _CONFLICT.search(statement.text):
        obstacle = FoundObstacle("BindConflict", words | {"object": match["object"]})
    elif match := PLUGIN_FAILED.search(statement.text):
        words |= {"plugin": match["plugin"], "phase": match["phase"], "words": quote(match["words"])}
        obstacle = FoundObstacle("ChoiceFailed", words)
    elif match := _TIMEOUT.search(statement.text):
        obstacle = FoundObstacle("PermitTimedOut", words | match.groupdict())
    elif match := _REJECTED.search(statement.text):
        obstacle = FoundObstacle(
            "ChoiceFailed", words | {"plugin": "?", "phase": "Permit", "words": quote(match["words"])}
        )
    else:
        return
    nodes = [bind.node] if bind else []
    obstacle = obstacle._replace(nodes=nodes, evidence=[statement.evidence])
    yield TreeStep(QUESTION, "no", [statement.evidence], (), [obstacle])
