"""The shared device that KAI wrote on a pod: a label with the device's group, annotations with the share."""

from collections.abc import Mapping
from typing import Any, Final

from runtime.kubernetes.object_fields import entries, part, text
from schemas.events import DeviceAllocation

_GROUP: Final = "runai-gpu-group"
"""The label; of a pod with several shared devices, the labels that begin so, followed by ``/`` and a name."""
_MEMORY: Final = "gpu-memory"
"""The annotation with MiB. A pod with ``gpu-fraction`` names no amount: the device's total is not on the pod."""
_CONTAINER: Final = "gpu-fraction-container-name"


def read_kai_allocations(pod: Mapping[str, Any]) -> list[DeviceAllocation]:
    """Read an allocation for each group of the pod; none if it shares no device. Pods do not name whole devices."""
    labels, annotations = part(pod, "metadata", "labels"), part(pod, "metadata", "annotations")
    groups = {value for key, value in labels.items() if isinstance(value, str) and _is_group(key)}
    memory = text(annotations, _MEMORY)
    first = next(entries(pod, "spec", "containers"), {})
    container = text(annotations, _CONTAINER) or text(first, "name")
    amount = int(memory) if memory.isascii() and memory.isdecimal() and len(memory) < 16 else None
    return [DeviceAllocation(uuid=group, container=container, memory_mib=amount) for group in sorted(groups) if group]


def _is_group(label: str) -> bool:
    return label == _GROUP or label.startswith(f"{_GROUP}/")
