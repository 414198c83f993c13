"""The marks of the Kubernetes events that this project writes: ``pipeline events`` sets them, ``ingest kube-events``
leaves such events out, because a decision that was read is no other decision."""

from collections.abc import Mapping
from typing import Any, Final

from runtime.kubernetes.object_fields import text

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
"""A label."""
MANAGER: Final = "schedulerlog"
"""Its value, and the ``reportingInstance``."""


def is_own(event: Mapping[str, Any]) -> bool:
    """Tell whether this project has written the event."""
    return MANAGER in (text(event, "metadata", "labels", MANAGED_BY), text(event, "reportingInstance"))
