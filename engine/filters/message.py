"""Messages of kube-scheduler, composed as it composes them."""

from collections.abc import Mapping
from typing import Final

NO_NODES: Final = "no nodes available to schedule pods"
_EVENT_BYTES: Final = 1024
_CUT: Final = " ..."


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
