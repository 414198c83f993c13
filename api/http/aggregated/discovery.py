"""Documents in which Kubernetes and kubectl read which resources the aggregated API has. Pure."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from api.http.cluster import AGGREGATED
from schemas.answers.attempts import SchedulerLog
from schemas.answers.simulation import Simulation
from schemas.answers.workloads import WorkloadDiagnosis

GROUP, VERSION = AGGREGATED.split("/")[2:]
_GROUP_VERSION: Final = {"groupVersion": f"{GROUP}/{VERSION}", "version": VERSION}
_GROUP: Final = {"name": GROUP, "versions": [_GROUP_VERSION], "preferredVersion": _GROUP_VERSION}

LISTS: Final = {
    "schedulerlogs": "SchedulerLogSearch",
    "findings": "Findings",
    "pending": "Pending",
    "refusals": "DeviceRefusals",
    "suggestions": "SuggestionsForMany",
    "trends": "Trends",
    "reports": "FailureReport",
}
"""Lists of one namespace or of all, to the kind of their answer."""


def _describe_resource(name: str, kind: str, verbs: list[str], *, is_namespaced: bool) -> dict[str, Any]:
    return {"name": name, "singularName": "", "namespaced": is_namespaced, "kind": kind, "verbs": verbs}


DOCUMENTS: Final[Mapping[str, bytes]] = {
    path: orjson.dumps(document)
    for path, document in {
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_GROUP]},
        f"/apis/{GROUP}": {"kind": "APIGroup", "apiVersion": "v1", **_GROUP},
        AGGREGATED: {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{GROUP}/{VERSION}",
            "resources": [
                _describe_resource("pods/schedulerlog", SchedulerLog.__name__, ["get"], is_namespaced=True),
                _describe_resource("nodes/schedulerlog", "NodeState", ["get"], is_namespaced=False),
                _describe_resource("workloads", WorkloadDiagnosis.__name__, ["get"], is_namespaced=True),
                _describe_resource("attempts", SchedulerLog.__name__, ["get"], is_namespaced=False),
                _describe_resource("simulations", Simulation.__name__, ["create"], is_namespaced=True),
                *(_describe_resource(name, kind, ["list"], is_namespaced=True) for name, kind in LISTS.items()),
            ],
        },
    }.items()
}
"""Path to document."""
