"""Verdicts of kube-scheduler's plugins, in its own words."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

NO_NODES: Final = "no nodes available to schedule pods"
_EVENT_BYTES: Final = 1024
_CUT: Final = " ..."


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


def compose_message(total: int, counts: Mapping[str, int], *, prefilter: str = "", post_filter: str = "") -> str:
    """Compose ``0/N nodes are available: …``; counts: nodes by reason, passed over where PreFilter has a text.

    Counts are sorted as texts, so that "10 x" comes before "2 y".
    """
    parts = [f"0/{total} nodes are available:"]
    histogram = prefilter or ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    if histogram:
        parts.append(f"{histogram}.")
    if post_filter:
        parts.append(post_filter)
    return " ".join(parts)


def cut_event_note(message: str) -> str:
    """Cut a message as kube-scheduler cuts the note of an event; the pod's condition has all of it."""
    data = message.encode()
    if len(data) <= _EVENT_BYTES:
        return message
    return data[: _EVENT_BYTES - len(_CUT)].decode(errors="ignore") + _CUT
