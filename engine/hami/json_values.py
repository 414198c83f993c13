"""Values of Kubernetes objects, whatever their JSON holds; many modules read untrusted objects by it."""

from collections.abc import Mapping
from typing import Any


def to_mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}
