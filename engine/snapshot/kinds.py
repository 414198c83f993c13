"""Names of kinds as ``Kind.group``, and lists of objects flattened to the objects in them.

The group is part of the name because several projects have a kind called Node, PodGroup or Queue.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from engine.snapshot.fields import Object

NODE: Final = "Node"
POD: Final = "Pod"
NAMESPACE: Final = "Namespace"
VOLUME_CLAIM: Final = "PersistentVolumeClaim"
VOLUME: Final = "PersistentVolume"
STORAGE_CLASS: Final = "StorageClass.storage.k8s.io"
CSI_NODE: Final = "CSINode.storage.k8s.io"
CSI_DRIVER: Final = "CSIDriver.storage.k8s.io"
STORAGE_CAPACITY: Final = "CSIStorageCapacity.storage.k8s.io"
VOLUME_ATTACHMENT: Final = "VolumeAttachment.storage.k8s.io"
RESOURCE_CLAIM: Final = "ResourceClaim.resource.k8s.io"
CLAIM_TEMPLATE: Final = "ResourceClaimTemplate.resource.k8s.io"
RESOURCE_SLICE: Final = "ResourceSlice.resource.k8s.io"
DEVICE_CLASS: Final = "DeviceClass.resource.k8s.io"
DEVICE_TAINT_RULE: Final = "DeviceTaintRule.resource.k8s.io"
RESOURCE_QUOTA: Final = "ResourceQuota"
LIMIT_RANGE: Final = "LimitRange"
RUNTIME_CLASS: Final = "RuntimeClass.node.k8s.io"
PRIORITY_CLASS: Final = "PriorityClass.scheduling.k8s.io"
MUTATING_WEBHOOKS: Final = "MutatingWebhookConfiguration.admissionregistration.k8s.io"
DISRUPTION_BUDGET: Final = "PodDisruptionBudget.policy"
POD_GROUP: Final = "PodGroup.scheduling.k8s.io"
WORKLOAD: Final = "Workload.scheduling.k8s.io"

NAMESPACED: Final = frozenset(
    (
        POD,
        VOLUME_CLAIM,
        STORAGE_CAPACITY,
        RESOURCE_CLAIM,
        CLAIM_TEMPLATE,
        RESOURCE_QUOTA,
        LIMIT_RANGE,
        DISRUPTION_BUDGET,
        POD_GROUP,
        WORKLOAD,
    )
)
"""Kinds whose objects are in the namespace ``default`` when they name none, as ``kubectl apply`` puts them there."""

MAX_OBJECTS: Final = 1_000_000
_LATER_GROUPS: Final = {"scheduling.incubator.k8s.io": "scheduling.volcano.sh"}
"""Group of the API by its former name."""
_MAX_DEPTH: Final = 8


class SnapshotError(ValueError):
    """Input of which no snapshot can be built; the text has the cause and the next step."""


def identify(version: str, kind: str) -> str:
    """Name the kind of an apiVersion: ``("storage.k8s.io/v1", "CSINode")`` is ``CSINode.storage.k8s.io``."""
    group, slash, _ = version.partition("/")
    return f"{kind}.{_LATER_GROUPS.get(group, group)}" if slash else kind


def flatten(objects: Iterable[Any], limit: int = MAX_OBJECTS) -> Iterator[Any]:
    """Yield objects, and in place of a list (``List``, ``PodList``) its items, with the kind that a typed list implies.

    Raises SnapshotError beyond the limit of objects and for lists that are nested deeper than eight levels.
    """
    for count, value in enumerate(_flatten(objects, 0)):
        if count >= limit:
            raise SnapshotError(
                f"The input holds more than {limit:,} objects. Read fewer namespaces or kinds, or raise the limit."
            )
        yield value


def _flatten(objects: Iterable[Any], depth: int) -> Iterator[Any]:
    if depth > _MAX_DEPTH:
        raise SnapshotError("Lists are nested more than eight levels deep. Write the objects into one list.")
    for value in objects:
        if _is_list(value):
            yield from _flatten(_iterate_typed_items(value), depth + 1)
        else:
            yield value


def _is_list(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    kind = value.get("kind")
    return isinstance(kind, str) and kind.endswith("List") and isinstance(value.get("items"), list)


def _iterate_typed_items(value: Object) -> Iterator[Any]:
    """Yield the items of a list; API servers leave apiVersion and kind out of the items of a typed list."""
    kind, version = value["kind"].removesuffix("List"), value.get("apiVersion")
    for item in value["items"]:
        if isinstance(item, dict) and kind and "kind" not in item:
            yield {"apiVersion": version, "kind": kind, **item}
        else:
            yield item
