"""Pods that the text of a scheduler or an API server names, as NAMESPACE/NAME or by a path. Pure.

Only a reference hides a name, never the bare name: ``train`` may be a part of ``train-secret``, or a word. Text that
only looks like a reference is hidden too, unless it is certain to be none.
"""

import operator
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from schemas.events import AttemptSummarized

M = TypeVar("M", bound=BaseModel)
HIDDEN_POD: Final = "a pod of another namespace"
"""Replacement for a name that the caller may not read."""

_NAMESPACE: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME: Final = r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
# A path of the API, a key of etcd (in errors of the API server), or NAMESPACE/NAME, perhaps with a container behind it.
# The last excludes parts of longer paths, of images with their host, and of resources with their group.
_REFERENCE: Final = re.compile(
    rf"namespaces/(?P<below>{_NAMESPACE})/[a-z]+/{_NAME}"
    rf"|registry/(?:[a-z0-9-]+\.[a-z0-9.-]+/)?[a-z]+/(?P<stored>{_NAMESPACE})/{_NAME}"
    rf"|(?<![\w./@%-])(?P<of>{_NAMESPACE})/(?P<name>{_NAME})(?:/{_NAME})?(?![\w/-])",
    re.ASCII,
)
_WORDLESS: Final = frozenset(
    (
        "pod", "cluster", "scheduler", "attempt_id", "episode", "may_duplicate", "lock_holder", "nodes", "picked",
        "picked_devices", "settings_digest", "description", "constraints", "requests",
    )
)  # fmt: skip
"""Fields of ids, of names that Kubernetes checks, and of the pod's own words. The holder of a lock has a right of its
own (``api.handlers.redaction``)."""
_IDIOMS: Final = frozenset(
    ("i/o", "n/a", "and/or", "read/write", "tcp/ip", "pods/binding", "pods/status", "pods/eviction", "nodes/status")
)


def hide_other_pods(text: str, namespace: str) -> str:
    """Replace each pod of another namespace in a text about a pod of ``namespace`` by ``HIDDEN_POD``."""

    def replace(match: re.Match[str]) -> str:
        reference = match[0]
        # A count of devices: 3/8.
        is_count = match["of"] and match["of"].isdigit() and match["name"].isdigit()
        # A key of etcd without a namespace: registry/minions/node1.
        is_none = is_count or match["of"] == "registry" or reference in _IDIOMS
        is_shown = is_none or namespace in (match["below"], match["stored"], match["of"])
        return reference if is_shown else HIDDEN_POD

    return _REFERENCE.sub(replace, text) if "/" in text else text


def hide_pods_in_attempt(attempt: AttemptSummarized) -> AttemptSummarized:
    """Replace pods of other namespaces in the texts of the attempt; the same object if they name none."""
    hide = partial(_hide_in_value, hide=partial(hide_other_pods, namespace=attempt.pod.namespace))
    # Every field but those that hold no words: one that is added later is redacted by default.
    values = {name: value for name, value in attempt if name not in _WORDLESS}
    changed = {name: hidden for name, value in values.items() if (hidden := hide(value)) is not value}
    return attempt.model_copy(update=changed) if changed else attempt


def hide_pods_in_items(items: list[M], namespace: str) -> list[M]:
    """Replace pods of other namespaces in all texts of the items; the same list if they name none."""
    hidden: list[M] = _hide_in_value(items, partial(hide_other_pods, namespace=namespace))
    return hidden


def _hide_in_value(value: Any, hide: Callable[[str], str]) -> Any:
    """Replace pods in each text of a value, also in the keys of mappings; return the same object if it names none."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, BaseModel):
        fields = [(name, field, _hide_in_value(field, hide)) for name, field in value if name not in _WORDLESS]
        changed = {name: hidden for name, field, hidden in fields if hidden is not field}
        return value.model_copy(update=changed) if changed else value
    if isinstance(value, list):
        items = [_hide_in_value(item, hide) for item in value]
        return value if all(map(operator.is_, items, value)) else items
    return _hide_in_mapping(value, hide) if isinstance(value, dict) else value


def _hide_in_mapping(mapping: dict[Any, Any], hide: Callable[[str], str]) -> dict[Any, Any]:
    hidden: dict[Any, Any] = {}
    for key, value in mapping.items():
        text, item = _hide_in_value(key, hide), _hide_in_value(value, hide)
        # Two keys that became one: their counts add up.
        hidden[text] = hidden[text] + item if text in hidden and isinstance(item, int) else item
    is_same = hidden.keys() == mapping.keys() and all(hidden[key] is value for key, value in mapping.items())
    return mapping if is_same else hidden
