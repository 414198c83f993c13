"""Pods that the text of a scheduler or an API server names, as NAMESPACE/NAME or by a path. Pure.

A reference hides a name, never the name by itself: ``train`` may be a part of ``train-secret``, or a word. What only
looks like a reference is hidden too, where it is not known to be none.
"""

import re
from typing import Final

from schemas.events import AttemptSummarized

OTHERS: Final = "a pod of another namespace"
"""In place of a name that the caller may not read."""

_NAMESPACE: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME: Final = r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
# No part of a longer path, of an image with its host, or of a resource with its group.
_REFERENCE: Final = re.compile(
    rf"namespaces/(?P<below>{_NAMESPACE})/[a-z]+/{_NAME}|(?<![\w./@%-])(?P<of>{_NAMESPACE})/(?P<name>{_NAME})(?![\w/])",
    re.ASCII,
)
_IDIOMS: Final = frozenset(
    ("i/o", "n/a", "and/or", "read/write", "tcp/ip", "pods/binding", "pods/status", "pods/eviction", "nodes/status")
)


def without_others(text: str, namespace: str) -> str:
    """The text about a pod of ``namespace``, with ``OTHERS`` in place of each pod of another one."""

    def shown(found: re.Match[str]) -> str:
        whole = found[0]
        # Devices of devices: 3/8.
        is_count = found["of"] and found["of"].isdigit() and found["name"].isdigit()
        is_shown = namespace in (found["below"], found["of"]) or is_count or whole in _IDIOMS
        return whole if is_shown else OTHERS

    return _REFERENCE.sub(shown, text) if "/" in text else text


def attempt_without_others(attempt: AttemptSummarized) -> AttemptSummarized:
    """The attempt whose texts name no pod of another namespace; the same one where they name none."""
    namespace, bind = attempt.pod.namespace, attempt.bind
    texts = {name: without_others(getattr(attempt, name), namespace) for name in ("error", "scheduler_message")}
    changed: dict[str, object] = {name: text for name, text in texts.items() if text != getattr(attempt, name)}
    if bind and (error := without_others(bind.error, namespace)) != bind.error:
        changed["bind"] = bind.model_copy(update={"error": error})
    return attempt.model_copy(update=changed) if changed else attempt
