"""Fields of Kubernetes objects, whatever their JSON holds: a field of a wrong type counts as absent. Pure."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from schemas.events import Condition

Fields = Mapping[str, Any]


def text(found: Any, *path: str) -> str:
    """Get the text at a path of keys; empty where there is none."""
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) else ""


def part(found: Any, *path: str) -> Fields:
    """Get the object at a path of keys; empty where there is none."""
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def entries(found: Any, *path: str) -> Iterator[Fields]:
    """Iterate over the objects of a list at a path of keys."""
    items = part(found, *path[:-1]).get(path[-1])
    return (item for item in items if isinstance(item, Mapping)) if isinstance(items, list) else iter(())


def moment(stamp: str) -> datetime | None:
    """Parse a time as Kubernetes writes it (RFC 3339); None for anything else."""
    try:
        time = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    # A year at the edge can't be converted to UTC.
    if time.tzinfo is None or time.year < 1971 or time.year > 9998:
        return None
    return time.astimezone(UTC)


def conditions(found: Fields) -> list[Condition]:
    """Read the conditions in the object's status."""
    return [
        Condition(
            type=text(entry, "type"), status=text(entry, "status"), reason=text(entry, "reason"),
            message=text(entry, "message"), last_transition_at=moment(text(entry, "lastTransitionTime")),
        )
        for entry in entries(found, "status", "conditions")
        if text(entry, "type")
    ]  # fmt: skip
