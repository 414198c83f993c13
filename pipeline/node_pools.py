"""Node pools, as ``SCHEDULERLOG_NODE_POOLS`` defines them by the names of nodes. Pure."""

from fnmatch import fnmatchcase
from functools import lru_cache

from engine.summaries.trends import PoolOf


def pools_of(patterns: str) -> PoolOf | None:
    """A function from a node's name to its pool, empty for a node of none, from ``a100=gpu-a100-*,t4=t4-*``.

    None if no pools are defined: the caller then need not look up each of thousands of nodes.
    """
    if not patterns:
        return None
    pairs = [pair.partition("=") for pair in patterns.split(",")]
    rules = [(pool.strip(), pattern.strip()) for pool, _, pattern in pairs]

    # Matching patterns costs microseconds, and every attempt names thousands of nodes.
    @lru_cache(maxsize=50_000)
    def pool_of(node: str) -> str:
        return next((pool for pool, pattern in rules if fnmatchcase(node, pattern)), "")

    return pool_of
