"""Node pools: ``SCHEDULERLOG_NODE_POOLS`` defines them by the names of nodes, labels of nodes by their provider, and
``SCHEDULERLOG_EXPECTED_POOLS`` the pools that a namespace may use. Pure.

The setting comes first everywhere. Events have no labels of nodes, so labels count only where the objects themselves
are read.
"""

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from types import MappingProxyType
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


NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})


def find_pool(node: str, pool_of: PoolOf | None, labels: Mapping[str, str] = NO_LABELS) -> tuple[str, str]:
    """Find the pool of a node, and its source: the setting, or else a label; both empty for a node of none.

    pool_of: pools by the names of nodes, as the setting defines them.
    """
    if pool_of and (pool := pool_of(node)):
        return pool, SETTING
    return next(((labels[label], label) for label in LABELS if labels.get(label)), ("", ""))


def list_pools(patterns: str) -> list[str]:
    """List the names of the pools that the setting defines."""
    return sorted({pair.partition("=")[0].strip() for pair in patterns.split(",") if pair})


def explain_unknown_pool(pool: str, pools: Sequence[str]) -> tuple[str, str]:
    """Explain that no pool has this name: the cause, and the next step. pools: names of the pools that there are."""
    hint = f"Pools: {', '.join(pools)}." if pools else f"No node is in a pool: set {SETTING}."
    return f"no pool has the name {pool[:40]!a}", hint


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
    def match_pool(node: str) -> str:
        return next((pool for pool, pattern in rules if fnmatchcase(node, pattern)), "")

    return match_pool


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
