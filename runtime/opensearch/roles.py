"""Roles of OpenSearch's security plugin, one per process, with only the rights that the process uses.

tests/integration/pipeline/test_secured_opensearch.py runs the processes with these roles; in ``make stress`` it takes
each permission away in turn, and something fails. Permissions are actions of OpenSearch, as its refusals name them.
"""

from collections.abc import Sequence
from typing import Any, Final

WRITER: Final = "schedulerlog-writer"
READER: Final = "schedulerlog-reader"
PROVISIONER: Final = "schedulerlog-provisioner"


def _build_role(description: str, cluster: list[str], indices: list[str], trends: Sequence[str] = ()) -> dict[str, Any]:
    # A role of an older version covers the indices that a newer one adds.
    allowed = {"schedulerlog-*": indices, "schedulerlog-trends*": list(trends)}
    permissions = [
        {"index_patterns": [pattern], "allowed_actions": actions} for pattern, actions in allowed.items() if actions
    ]
    return {"description": description, "cluster_permissions": cluster, "index_permissions": permissions}


ROLES: Final[dict[str, dict[str, Any]]] = {
    WRITER: _build_role(
        "schedulerlog pipeline index and placements: write documents, and read them back",
        [
            "indices:admin/index_template/get",
            "indices:data/write/bulk",
            "indices:data/read/mget",
            "indices:data/read/msearch",
        ],
        [
            "indices:admin/create",
            "indices:admin/mappings/get",
            "indices:monitor/settings/get",
            "indices:admin/refresh",
            "indices:admin/refresh[s]",
            "indices:data/write/bulk[s]",
            "indices:data/write/index",
            "indices:data/write/delete",
            "indices:data/read/mget[shard]",
            "indices:data/read/search",
        ],
    ),
    READER: _build_role(
        "schedulerlog api: read documents",
        ["cluster:monitor/main", "indices:data/read/mget"],
        ["indices:data/read/search", "indices:data/read/mget[shard]"],
    ),
    PROVISIONER: _build_role(
        "schedulerlog pipeline provision and retention, schedulerlog doctor: templates, indices made and deleted",
        [
            "cluster:monitor/main",
            "cluster:monitor/health",
            "cluster:monitor/state",
            "cluster:monitor/stats",
            "cluster:admin/component_template/get",
            "cluster:admin/component_template/put",
            "indices:admin/index_template/get",
            "indices:admin/index_template/put",
            "indices:data/write/bulk",
            "indices:data/read/scroll",
            # Without it the scrolls of deletions would be left open until they expire.
            "indices:data/read/scroll/clear",
        ],
        [
            "indices:admin/mappings/get",
            "indices:admin/mapping/put",
            "indices:admin/create",
            "indices:admin/delete",
            "indices:monitor/settings/get",
            "indices:monitor/stats",
            "indices:data/read/search",
            "indices:data/write/delete/byquery",
            "indices:data/write/bulk[s]",
            "indices:data/write/delete",
        ],
        # Retention writes counts of hours, and shows these in place of minutes.
        ["indices:data/write/index", "indices:admin/aliases", "indices:admin/refresh", "indices:admin/refresh[s]"],
    ),
}
