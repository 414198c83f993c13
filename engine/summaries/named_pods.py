"""Pods that the text of a scheduler or an API server names, as NAMESPACE/NAME or by a path. Pure.

Only a reference hides a name, never the bare name: ``train`` may be a part of ``train-secret``, or a word. Text that
only looks like a reference is hidden too, unless it is certain to be none.
"""

import re
from typing import Final

from schemas.events import AttemptSummarized

HIDDEN_POD: Final = "a pod of another namespace"
"""Replacement for a name that the caller may not read."""

_NAMESPACE: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME: Final = r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
# Excludes parts of longer paths, of images with their host, and of resources with their group.
_REFERENCE: Final = re.compile(
    rf"namespaces/(?P<below>{_NAMESPACE})/[a-z]+/{_NAME}|(?<![\w./@%-])(?P<of>{_NAMESPACE})/(?P<name>{_NAME})(?![\w/])",
    re.ASCII,
)
_IDIOMS: Final = frozenset(
    ("i/o", "n/a", "and/or", "read/write", "tcp/ip", "pods/binding", "pods/status", "pods/eviction", "nodes/status")
)


def hide_other_pods(text: str, namespace: str) -> str:
    """Replace each pod of another namespace in a text about a pod of ``namespace`` by ``HIDDEN_POD``."""

    def replace(match: re.Match[str]) -> str:
        reference = match[0]
        # A count of devices: 3/8.
        is_count = match["of"] and match["of"].isdigit() and match["name"].isdigit()
        is_shown = namespace in (match["below"], match["of"]) or is_count or reference in _IDIOMS
        return reference if is_shown else HIDDEN_POD

    return _REFERENCE.sub(replace, text) if "/" in text else text


def hide_pods_in_attempt(attempt: AttemptSummarized) -> AttemptSummarized:
    """Replace pods of other namespaces in the texts of the attempt; the same object if they name none."""
    namespace, bind = attempt.pod.namespace, attempt.bind
    texts = {name: hide_other_pods(getattr(attempt, name), namespace) for name in ("error", "scheduler_message")}
    changed: dict[str, object] = {name: text for name, text in texts.items() if text != getattr(attempt, name)}
    if bind and (error := hide_other_pods(bind.error, namespace)) != bind.error:
        changed["bind"] = bind.model_copy(update={"error": error})
    return attempt.model_copy(update=changed) if changed else attempt
