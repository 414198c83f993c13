"""Which pools a namespace may use, as ``SCHEDULERLOG_EXPECTED_POOLS`` says it. Pure."""

from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import lru_cache

from pipeline.node_pools import pools_of
from summaries.placement_audit import Pools


def expected(node_pools: str, expected_pools: str) -> Pools | None:
    """None where every namespace may use every node."""
    return Pools(pools_of(node_pools) or _none, _allowed(expected_pools)) if expected_pools else None


def _none(_node: str) -> str:
    return ""


def _allowed(said: str) -> Callable[[str], frozenset[str] | None]:
    """``team-a=a100|t4,batch-*=t4``; nothing behind ``=``: nodes of no pool only."""
    rules = [
        (pattern.strip(), _pools(pools)) for pattern, _, pools in (each.partition("=") for each in said.split(","))
    ]

    @lru_cache(maxsize=10_000)
    def allowed(namespace: str) -> frozenset[str] | None:
        return next((pools for pattern, pools in rules if fnmatchcase(namespace, pattern)), None)

    return allowed


def _pools(said: str) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, said.split("|"))))
