"""Fields of Kubernetes objects, whatever their JSON holds: a field of a wrong type counts as absent. Pure."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from schemas.events import Condition

Fields = Mapping[str, Any]
_MAPPING: Final = (dict, Mapping)
"""Most objects are dictionaries, which an abstract class recognises at four times the cost."""

CONTAINER_STATUSES: Final = ("initContainerStatuses", "containerStatuses")
STARTING: Final = ("", "ContainerCreating", "PodInitializing")
"""Reasons of a waiting container that every pod has at its start."""
NEVER_RAN: Final = frozenset(("ContainerCannotRun", "StartError", "CreateContainerError"))
"""Reasons of a container that ended without having run: its runtime or its devices refused it."""


def get_text(node: Any, *path: str) -> str:
    """Get the text at a path of keys; empty without one."""
    for key in path:
        node = node.get(key) if isinstance(node, _MAPPING) else None
    return node if isinstance(node, str) else ""


def get_object(node: Any, *path: str) -> Fields:
    """Get the object at a path of keys; empty without one."""
    for key in path:
        node = node.get(key) if isinstance(node, _MAPPING) else None
    return node if isinstance(node, _MAPPING) else {}


def iterate_objects(node: Any, *path: str) -> Iterator[Fields]:
    """Iterate over the objects of a list at a path of keys."""
    items = get_object(node, *path[:-1]).get(path[-1])
    return (item for item in items if isinstance(item, _MAPPING)) if isinstance(items, list) else iter(())


def iterate_texts(node: Any, *path: str) -> Iterator[str]:
    """Iterate over the texts of a list at a path of keys."""
    items = get_object(node, *path[:-1]).get(path[-1])
    return (item for item in items if isinstance(item, str)) if isinstance(items, list) else iter(())


def parse_moment(stamp: str) -> datetime | None:
    """Parse a time as Kubernetes writes it (RFC 3339); None for anything else."""
    try:
        time = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    # A year at the edge can't be converted to UTC.
    if time.tzinfo is None or time.year < 1971 or time.year > 9998:
        return None
    return time.astimezone(UTC)


def list_conditions(node: Fields) -> list[Condition]:
    """List the conditions in the object's status."""
    return [
        Condition(
            type=get_text(entry, "type"), status=get_text(entry, "status"), reason=get_text(entry, "reason"),
            message=get_text(entry, "message"), last_transition_at=parse_moment(get_text(entry, "lastTransitionTime")),
        )
        for entry in iterate_objects(node, "status", "conditions")
        if get_text(entry, "type")
    ]  # fmt: skip


MANAGED_BY: Final = "app.kubernetes.io/managed-by"
"""Name of the label."""
MANAGER: Final = "schedulerlog"
"""Value of the label, and of ``reportingInstance``."""


def is_own(event: Mapping[str, Any]) -> bool:
    """Tell whether this project has written the event."""
    return MANAGER in (get_text(event, "metadata", "labels", MANAGED_BY), get_text(event, "reportingInstance"))
