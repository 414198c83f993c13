"""Verdicts of kube-scheduler's plugins, in its own words."""

from dataclasses import dataclass
from enum import StrEnum


class StatusCode(StrEnum):
    """Codes of a refusal."""

    UNSCHEDULABLE = "Unschedulable"
    """Refused as things are; the end of other pods may help."""
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    """Refused whatever other pods do."""
    ERROR = "Error"
    """Not decided; the whole attempt fails with the reason as its message."""


@dataclass(frozen=True, slots=True)
class PluginRefusal:
    """A refusal by one plugin, of a node or of the pod as such."""

    plugin: str
    code: StatusCode
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A verdict that one plugin cannot give."""

    plugin: str
    kinds: frozenset[str]
    """Kinds (`engine.snapshot.kinds`) that would have to be read."""
    cause: str = ""
    """Reason with the next step where reading more kinds would not help, such as a malformed object."""


Verdict = PluginRefusal | Unjudged | None
"""Verdict of one plugin on one node; None lets the node pass."""
