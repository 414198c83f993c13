"""Pods that the text of a scheduler or an API server names, as NAMESPACE/NAME or by a path. Pure.

Only a reference hides a name, never the bare name: ``train`` may be a part of ``train-secret``, or a word. Text that
only looks like a reference is hidden too, unless it is certain to be none. ``foreign_namespaces`` searches complete
answers, where the namespaces are known.
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache, partial
from types import MappingProxyType
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from schemas.events import AttemptSummarized

T = TypeVar("T")
Hide = Callable[[str], str]
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
        # Ids, names that Kubernetes checks, and the pod's own words.
        "pod", "cluster", "scheduler", "attempt_id", "episode", "may_duplicate", "nodes", "node", "device", "picked",
        "picked_devices", "settings_digest", "description", "constraints", "requests", "spec", "labels", "annotations",
        # Amounts by resource, and tables without words.
        "hard", "used", "vendors",
        # Redacted by those who make them: the holder of a lock has a right of its own, objects have their namespace.
        "lock_holder", "attempt", "objects",
    )
)  # fmt: skip
"""Fields without words of a scheduler or a controller."""
IDIOMS: Final = frozenset(
    ("i/o", "n/a", "and/or", "read/write", "tcp/ip", "pods/binding", "pods/status", "pods/eviction", "nodes/status")
)
"""Words that look like references."""


def hide_other_pods(text: str, namespace: str) -> str:
    """Replace each pod of another namespace in a text about a pod of ``namespace`` by ``HIDDEN_POD``."""

    def hide(match: re.Match[str]) -> str:
        reference = match[0]
        # A count of devices: 3/8.
        is_count = match["of"] and match["of"].isdigit() and match["name"].isdigit()
        # A key of etcd without a namespace: registry/minions/node1.
        is_none = is_count or match["of"] == "registry" or reference in IDIOMS
        is_shown = is_none or namespace in (match["below"], match["stored"], match["of"])
        return reference if is_shown else HIDDEN_POD

    return _REFERENCE.sub(hide, text) if "/" in text else text


def hide_pods_in_attempt(attempt: AttemptSummarized) -> AttemptSummarized:
    """Replace pods of other namespaces in the texts of the attempt; the same object if they name none."""
    return hide_pods(attempt, attempt.pod.namespace)


def hide_pods(value: T, namespace: str) -> T:
    """Replace pods of other namespaces in all texts of the value; the same object if they name none."""
    return hide_texts(value, partial(hide_other_pods, namespace=namespace))


def hide_texts(value: T, hide: Hide) -> T:
    """Change each text of a value by ``hide``, also in keys of mappings; return the same object if none changes.

    Walks through models, dataclasses, tuples, lists and mappings, and changes all their fields but those without words,
    so that a field which is added later is redacted by default.
    """
    changed: Any = value
    kind: type = type(value)
    if isinstance(value, str):
        hidden = hide(value)
        changed = value if hidden == value else hidden
    elif (names := _list_fields(kind)) is not None:
        changed = _hide_in_fields(value, names, hide)
    elif isinstance(value, list | tuple):
        items = [hide_texts(item, hide) for item in value]
        changed = value if all(map(operator.is_, items, value)) else kind(items)
    elif isinstance(value, dict | MappingProxyType):
        changed = _hide_in_mapping(value, hide)
    result: T = changed
    return result


@cache
def _list_fields(kind: type) -> tuple[str, ...] | None:
    """List the fields with words; None for a type without fields."""
    if issubclass(kind, BaseModel):
        names: Iterable[str] = kind.model_fields
    elif issubclass(kind, tuple) and hasattr(kind, "_fields"):
        names = kind._fields
    elif is_dataclass(kind):
        names = (field.name for field in fields(kind))
    else:
        return None
    return tuple(name for name in names if name not in _WORDLESS)


def _hide_in_fields(value: Any, names: Iterable[str], hide: Hide) -> Any:
    pairs = [(name, before, hide_texts(before, hide)) for name in names for before in (getattr(value, name),)]
    changed = {name: after for name, before, after in pairs if after is not before}
    if not changed:
        return value
    if isinstance(value, BaseModel):
        return value.model_copy(update=changed)
    replace_fields = getattr(value, "_replace", None)
    return replace_fields(**changed) if replace_fields else replace(value, **changed)


def _hide_in_mapping(mapping: Mapping[Any, Any], hide: Hide) -> Mapping[Any, Any]:
    hidden: dict[Any, Any] = {}
    for key, value in mapping.items():
        text, item = hide_texts(key, hide), hide_texts(value, hide)
        # Two keys that became one: their counts add up.
        hidden[text] = hidden[text] + item if text in hidden and isinstance(item, int) else item
    is_same = hidden.keys() == mapping.keys() and all(hidden[key] is value for key, value in mapping.items())
    return mapping if is_same else hidden
