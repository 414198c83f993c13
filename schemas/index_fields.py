"""Types of fields in the mappings of the indices, groups of fields that several families share, and other names of
fields."""

from collections.abc import Mapping
from typing import Any, Final

# Lucene refuses a term above 32,766 bytes and with it the whole document. Longer values are stored, not searchable.
KEYWORD: Final = {"type": "keyword", "ignore_above": 1024}
TEXT: Final = {"type": "text"}
DATE: Final = {"type": "date"}
COUNT: Final = {"type": "long"}
SECONDS: Final = {"type": "double"}
BOOLEAN: Final = {"type": "boolean"}
# Not parsed, not indexed, returned as it came: 5,000 nodes as fields or nested objects would exceed OpenSearch's limit
# of 10,000 nested objects and cost 2.3 times the indexing (decision 0006).
STORED: Final = {"type": "object", "enabled": False}

DESCRIPTION: Final[dict[str, Any]] = {
    "workload": KEYWORD,
    "pod_group": KEYWORD,
    "queue": KEYWORD,
    "priority_class": KEYWORD,
    "service_account": KEYWORD,
    # ``name=value`` of each: their names are the operator's, and no field may appear that the mapping does not have.
    "labels": KEYWORD,
}
ATTEMPT: Final[dict[str, Any]] = {
    "@timestamp": DATE,
    "cluster": KEYWORD,
    "attempt_id": KEYWORD,
    "namespace": KEYWORD,
    "pod": KEYWORD,
    "pod_uid": KEYWORD,
    "scheduler": KEYWORD,
}

_OTEL: Final = {
    "cluster": ("cluster", "name"),
    "namespace": ("namespace", "name"),
    "pod": ("pod", "name"),
    "pod_uid": ("pod", "uid"),
    "container": ("container", "name"),
    # Of an attempt: the node that was chosen, on which the pod's own logs come from.
    "chosen": ("node", "name"),
    "node": ("node", "name"),
}


def build_otel_aliases(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Build aliases of fields by OpenTelemetry's names (``k8s.pod.name``, …): one filter then selects logs, metrics and
    attempts of a pod. A document holds none of them."""
    objects: dict[str, dict[str, Any]] = {}
    for name, (subject, attribute) in _OTEL.items():
        if name in properties:
            objects.setdefault(subject, {})[attribute] = {"type": "alias", "path": name}
    return {"k8s": {"properties": {subject: {"properties": fields} for subject, fields in objects.items()}}}
