"""Marks of the Kubernetes events that this project writes: ``pipeline events`` sets them, and ``ingest kube-events``
skips such events, because they repeat decisions of our records.
"""

from collections.abc import Mapping
from typing import Any, Final

from runtime.kubernetes.object_fields import get_text

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
"""Name of the label."""
MANAGER: Final = "schedulerlog"
"""Value of the label, and of ``reportingInstance``."""


def is_own(event: Mapping[str, Any]) -> bool:
    """Tell whether this project has written the event."""
    return MANAGER in (get_text(event, "metadata", "labels", MANAGED_BY), get_text(event, "reportingInstance"))
