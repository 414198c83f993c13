"""Values of Kubernetes objects, whatever their JSON holds."""

from collections.abc import Mapping
from typing import Any


def mapping(value: Any) -> Mapping[str, Any]:
    """The object; an empty one where the value is none."""
    return value if isinstance(value, Mapping) else {}
