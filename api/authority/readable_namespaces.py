"""Of which namespaces a caller may list the pods."""

from collections.abc import Collection
from typing import Final

from api.authority.access import Access
from api.authority.rights import list_pods
from api.http.cluster import Cluster

MAX_NAMESPACES: Final = 20
"""So many are asked about one by one; pods of further ones count as those of others."""


async def readable_namespaces(access: Access, cluster: Cluster, namespaces: Collection[str]) -> frozenset[str]:
    """Those of ``namespaces`` of which the caller may list the pods."""
    if await access.allows(cluster, list_pods()):
        return frozenset(namespaces)
    asked = sorted(namespaces)[:MAX_NAMESPACES]
    return frozenset([name for name in asked if name and await access.allows(cluster, list_pods(name))])
