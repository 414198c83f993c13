"""Objects of any kind as kubectl describes them: the fields of YAML with their names in words, and no dashes.

`minAvailable` is printed as `Min Available`. The items of a list follow each other without a mark; the fields of each
are sorted, so that a field that comes again begins the next item.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

_FIELD: Final = re.compile(r"^(?P<indent> *)(?P<name>[^\s:][^:]*):(?: +(?P<text>.*))?$")
_LISTS: Final = frozenset(
    ("conditions", "podSets", "ownerReferences", "admissionChecks", "tasks", "containers", "initContainers",
     "tolerations", "podSetAssignments", "resourceGroups", "flavors", "schedulingGates", "schedulingConditions",
     "matchExpressions", "nodeSelectorTerms", "env", "policies")
)  # fmt: skip
"""Fields whose value is a list, also where it has one item."""
_NUMBER: Final = re.compile(r"-?\d{1,15}")
_NOTHING: Final = ("<none>", "<nil>", "")


def parse_fields(lines: Sequence[str]) -> dict[str, Any]:
    """Parse the lines of a description as the fields of an object."""
    parsed = _parse_level([line for line in lines if line.strip()])
    return parsed[0] if parsed else {}


def _parse_level(lines: Sequence[str]) -> list[dict[str, Any]]:
    """Parse lines of one depth and below: one item, or several where fields come again."""
    items: list[dict[str, Any]] = [{}]
    for name, text, below in _divide(lines):
        if name in items[-1]:
            items.append({})
        items[-1][name] = _parse_value(name, text, below)
    return [item for item in items if item]


def _divide(lines: Sequence[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Divide the lines into fields: each with its text and the lines below it."""
    depth = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    current: tuple[str, str, list[str]] | None = None
    for line in lines:
        match = _FIELD.match(line) if len(line) - len(line.lstrip()) == depth else None
        if match:
            if current:
                yield current
            current = _to_field_name(match["name"]), (match["text"] or "").strip(), []
        elif current:
            current[2].append(line)
    if current:
        yield current


def _to_field_name(words: str) -> str:
    """Convert ``Min Available`` to ``minAvailable``; names with a domain are printed as they are."""
    if "/" in words or "." in words:
        return words
    first, *others = words.split(" ")
    lowered = first.lower() if first.isupper() else first[:1].lower() + first[1:]
    return "".join([lowered, *others])


def _parse_value(name: str, text: str, below: Sequence[str]) -> Any:
    if not below:
        return _parse_scalar(text)
    if text and not any(_FIELD.match(line) for line in below):
        # A long text that was wrapped.
        return " ".join([text, *(line.strip() for line in below)])
    if not any(_FIELD.match(line) for line in below):
        return [_parse_scalar(line.strip()) for line in below]
    items = _parse_level(below)
    return items if name in _LISTS or len(items) > 1 else items[0] if items else {}


def _parse_scalar(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if text in _NOTHING:
        return None
    return int(text) if _NUMBER.fullmatch(text) else text
