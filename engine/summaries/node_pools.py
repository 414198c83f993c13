"""Node pools: ``SCHEDULERLOG_NODE_POOLS`` defines them by the names of nodes, labels of nodes by their provider, and
``SCHEDULERLOG_EXPECTED_POOLS`` the pools that a namespace may use. Pure."""

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

from engine.summaries.placement_audit import Pools
from engine.summaries.trends import PoolOf

SETTING: Final = "SCHEDULERLOG_NODE_POOLS"
LABELS: Final = (
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
)
"""Labels by which Karpenter, GKE, EKS and AKS name the pool that they made a node for; the nearest to a node first."""


def find_labelled_pool(labels: Mapping[str, str]) -> tuple[str, str]:
    """Find the pool that a node's labels name, and the label that names it; both empty for a node of none."""
    return next(((pool, label) for label in LABELS if (pool := labels.get(label))), ("", ""))


def parse_pools(patterns: str) -> PoolOf | None:
    """Parse ``a100=gpu-a100-*,t4=t4-*`` into a function from a node's name to its pool, empty for a node of none.

    None if no pools are defined: the caller then need not look up each of thousands of nodes.
    """
    if not patterns:
        return None
    pairs = [pair.partition("=") for pair in patterns.split(",")]
    rules = [(pool.strip(), pattern.strip()) for pool, _, pattern in pairs]

    # Matching patterns costs microseconds, and every attempt names thousands of nodes.
    @lru_cache(maxsize=50_000)
    def find_pool(node: str) -> str:
        return next((pool for pool, pattern in rules if fnmatchcase(node, pattern)), "")

    return find_pool


def parse_expected_pools(node_pools: str, pools_of_namespaces: str) -> Pools | None:
    """Parse the pools of nodes and namespaces from the two settings; None if every namespace may use every node."""
    return (
        Pools(parse_pools(node_pools) or _return_no_pool, _parse_allowed(pools_of_namespaces))
        if pools_of_namespaces
        else None
    )


def _return_no_pool(_node: str) -> str:
    return ""


def _parse_allowed(setting: str) -> Callable[[str], frozenset[str] | None]:
    """Parse ``team-a=a100|t4,batch-*=t4``. Nothing behind ``=`` means: only nodes that are in no pool."""
    pairs = [pair.partition("=") for pair in setting.split(",")]
    # In the order of the setting: the first pattern that matches a namespace counts.
    rules = [(pattern.strip(), _split_pools(pools)) for pattern, _, pools in pairs]

    # A bound, because the names come from records: a producer may make up any number of them.
    @lru_cache(maxsize=10_000)
    def find_allowed(namespace: str) -> frozenset[str] | None:
        return next((pools for pattern, pools in rules if fnmatchcase(namespace, pattern)), None)

    return find_allowed


def _split_pools(names: str) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, names.split("|"))))
