"""The JSON Patch (RFC 6902) from a pod to its changed copy, in the time that the changes take, not the pod."""

from collections.abc import Iterator, Mapping
from typing import Any

from schemas.json_types import Json


def operations(before: Any, after: Any, path: str = "") -> Iterator[Json]:
    """What makes `before` into `after`. Parts that both share are not compared; nothing is ever removed."""
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _of_object(before, after, path)
    elif isinstance(before, list) and isinstance(after, list) and len(before) <= len(after):
        for place, (old, new) in enumerate(zip(before, after, strict=False)):
            if old is not new:
                yield from operations(old, new, f"{path}/{place}")
        for place in range(len(before), len(after)):
            yield {"op": "add", "path": f"{path}/{place}", "value": after[place]}
    # In Python 1 equals True.
    elif type(before) is not type(after) or before != after:
        yield {"op": "replace", "path": path, "value": after}


def _of_object(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[Json]:
    for name, new in after.items():
        place = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
        if name not in before:
            yield {"op": "add", "path": place, "value": new}
        elif before[name] is not new:
            yield from operations(before[name], new, place)
