"""Which node pools a namespace may use, as ``SCHEDULERLOG_EXPECTED_POOLS`` defines them. Pure."""

from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import lru_cache

from engine.summaries.placement_audit import Pools
from pipeline.node_pools import pools_of


def expected_pools(node_pools: str, pools_of_namespaces: str) -> Pools | None:
    """The pools of nodes and namespaces from the two settings; None if every namespace may use every node."""
    return Pools(pools_of(node_pools) or _no_pool, _allowed(pools_of_namespaces)) if pools_of_namespaces else None


def _no_pool(_node: str) -> str:
    return ""


def _allowed(setting: str) -> Callable[[str], frozenset[str] | None]:
    """From ``team-a=a100|t4,batch-*=t4``. Nothing behind ``=``: only nodes that are in no pool."""
    pairs = [pair.partition("=") for pair in setting.split(",")]
    # In the order of the setting: the first pattern that matches a namespace counts.
    rules = [(pattern.strip(), _pools(pools)) for pattern, _, pools in pairs]

    # A bound, because the names come from records: a producer may make up any number of them.
    @lru_cache(maxsize=10_000)
    def allowed(namespace: str) -> frozenset[str] | None:
        return next((pools for pattern, pools in rules if fnmatchcase(namespace, pattern)), None)

    return allowed


def _pools(names: str) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, names.split("|"))))
