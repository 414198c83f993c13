"""The path below ``/api/v1`` of each path of the aggregated API. Pure.

What is about a pod or a node lies below its ``schedulerlog``, so that the API server asks for the same right as we do:
``pods/schedulerlog`` in the pod's namespace, ``nodes/schedulerlog``.
"""

import re
from typing import Final, NamedTuple

from api.http.cluster import AGGREGATED, ROOT

_POD: Final = re.compile(r"(/namespaces/[^/]+/pods/[^/]+)/schedulerlog(?:/(.+))?", re.ASCII)
_NODE: Final = re.compile(r"(/nodes/[^/]+)/schedulerlog(/.+)?", re.ASCII)
_IN_NAMESPACE: Final = re.compile(r"/namespaces/([^/]+)/([^/]+)", re.ASCII)
_ATTEMPT: Final = re.compile(r"/attempts/[^/]+(/.+)?", re.ASCII)
_LIST: Final = re.compile(r"/[^/]+", re.ASCII)
_RESOURCES: Final = {"reports": "reports/failures", "simulations": "simulate"}
"""Resources of a namespace or of all, to which the API server can grant a right, with the paths of their answers."""
_OF_EVERY_CLUSTER: Final = "/clusters"
"""The API server decides about its own cluster alone."""


class OwnPath(NamedTuple):
    path: str
    namespace: str = ""
    """To be given as a parameter, where the path had it."""


def own_path(path: str) -> OwnPath | None:
    """The path of the same answer; None for one that the aggregated API does not have."""
    rest = path.removeprefix(AGGREGATED)
    if rest == path:
        return None
    if found := _POD.fullmatch(rest):
        pod, part = found.groups()
        # The history lies below the schedulerlog here, too.
        below = f"/{part}" if part and part != "history" else "/schedulerlog" + (f"/{part}" if part else "")
        return OwnPath(ROOT + pod + below)
    if found := _NODE.fullmatch(rest):
        return OwnPath(ROOT + found[1] + (found[2] or ""))
    if found := _IN_NAMESPACE.fullmatch(rest):
        return OwnPath(f"{ROOT}/{_RESOURCES.get(found[2], found[2])}", found[1])
    if rest != _OF_EVERY_CLUSTER and (_LIST.fullmatch(rest) or _ATTEMPT.fullmatch(rest)):
        return OwnPath(f"{ROOT}/{_RESOURCES.get(rest[1:], rest[1:])}")
    return None
