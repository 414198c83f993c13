"""Targets that the annotations of a pod, its workload and its namespace name."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from pipeline.notify.targets import Target
from pipeline.notify.waiting_workloads import SubscribedWorkload
from runtime.kubernetes.errors import KubeApiError
from runtime.kubernetes.object_fields import get_text, iterate_objects
from schemas.json_types import Json

ANNOTATION: Final = "schedulerlog.io/notify"
"""Names of targets, between commas."""
_MAX_OWNERS: Final = 5
_RESOURCES: Final = re.compile(r"[A-Za-z0-9.]+")


class ReadMetadata(Protocol):
    async def get_metadata(self, path: str) -> Json:
        """Get an object without spec and status. Raises ``KubeApiError``."""
        ...


async def find_targets(
    objects: ReadMetadata, key: SubscribedWorkload, pod: str, targets: Mapping[str, Target]
) -> dict[str, Target]:
    """Find the targets of a workload by its first pod; those that its namespace may not use are left out.

    An object that is gone, or that the process may not read, names none. Raises ``KubeApiError`` while the API server
    does not answer.
    """
    root = f"/api/v1/namespaces/{key.namespace}"
    read = [await _read(objects, root)]
    path: str | None = f"{root}/pods/{pod}"
    for _ in range(_MAX_OWNERS):
        if path is None:
            break
        read.append(entry := await _read(objects, path))
        path = _build_owner_path(entry, key.namespace)
    names = dict.fromkeys(name for entry in read for name in _list_names(entry))
    return {
        name: target
        for name in names
        if (target := targets.get(name)) and (not target.namespaces or key.namespace in target.namespaces)
    }


async def _read(objects: ReadMetadata, path: str) -> Json:
    try:
        return await objects.get_metadata(path)
    except KubeApiError as error:
        if error.status in (403, 404):
            return {}
        raise


def _list_names(entry: Mapping[str, Any]) -> Iterable[str]:
    text = get_text(entry, "metadata", "annotations", ANNOTATION)
    return filter(None, (name.strip() for name in text.split(",")))


def _build_owner_path(entry: Mapping[str, Any], namespace: str) -> str | None:
    owners = [owner for owner in iterate_objects(entry, "metadata", "ownerReferences") if owner.get("controller")]
    if not owners:
        return None
    version, kind, name = (get_text(owners[0], field) for field in ("apiVersion", "kind", "name"))
    if not (name and _RESOURCES.fullmatch(kind)):
        return None
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{root}/namespaces/{namespace}/{to_plural(kind)}/{name}"


def to_plural(kind: str) -> str:
    """Convert a kind to its resource, as the names of all common kinds are made."""
    word = kind.lower()
    if word.endswith(("s", "x", "ch", "sh")):
        return f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") and word[-2:-1] not in "aeiou" else f"{word}s"
