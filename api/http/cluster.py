"""The cluster that a request is about, and the paths of the API's other answers about it."""

import re
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request

from api.http.errors import BadRequestError
from schemas.events import ClusterName

ROOT: Final = "/api/v1"
CLUSTER: Final = ROOT + "/clusters/{cluster}"
"""Prefix of every path that names its cluster."""
AGGREGATED: Final = "/apis/schedulerlog.io/v1alpha1"
"""Prefix of the paths of the aggregated API, which are about the cluster that it is a part of."""
BASE_STATE: Final = "base"
"""Entry of a request's state with the prefix of its paths, if that is not ``ROOT``."""

_NAME: Final[TypeAdapter[str]] = TypeAdapter(ClusterName)
_IN_PATH: Final = re.compile(re.escape(ROOT) + r"/clusters/[^/]+/", re.ASCII)

CLUSTER_PARAMETER: Final[dict[str, Any]] = {
    "name": "cluster",
    "in": "path",
    "required": True,
    "description": "The cluster's name.",
    "schema": {"type": "string", "examples": ["default"]},
}
"""Parameter in the OpenAPI document."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster that a request is about."""

    name: str
    base: str = ROOT
    """Prefix of its paths: that of the request, so that links lead to the same cluster."""

    def link_schedulerlog(self, namespace: str, name: str) -> str:
        """Return the path of a pod's schedulerlog."""
        return f"{self.base}/namespaces/{namespace}/pods/{name}/schedulerlog"

    def link_attempt(self, attempt_id: str) -> str:
        """Return the path of one attempt; empty without an id."""
        return f"{self.base}/attempts/{attempt_id}" if attempt_id else ""

    def link_node(self, node: str) -> str:
        return f"{self.base}/nodes/{node}" + ("/schedulerlog" if self.base == AGGREGATED else "")


def without_cluster(path: str) -> str:
    """Return ``path`` without the name of its cluster, as a path of the default cluster."""
    return _IN_PATH.sub(ROOT + "/", path, count=1)


def parse_cluster(request: Request) -> Cluster:
    """Parse the cluster in the path; without one, the default. Raises ``BadRequestError`` for an invalid name."""
    name = request.path_params.get("cluster")
    if name is None:
        return Cluster(request.app.state.default_cluster, request.scope["state"].get(BASE_STATE, ROOT))
    try:
        return Cluster(_NAME.validate_python(name), CLUSTER.format(cluster=name))
    except ValidationError:
        raise BadRequestError(
            f"parameter cluster: {name[:80]!a} is not the name of a cluster",
            "A name has at most 63 lower-case letters, digits, '-' and '.'; GET /api/v1/clusters lists all.",
        ) from None
