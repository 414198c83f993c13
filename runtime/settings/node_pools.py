"""The setting that worker, placements and API share, so that a node has the same pool in trends, audits and lists."""

from typing import Annotated

from pydantic import Field

from runtime.settings.settings import EnvironmentSettings, Flag


class PoolSettings(EnvironmentSettings):
    node_pools: Annotated[
        str, Field(pattern=r"^([^=,]+=[^=,]+(,[^=,]+=[^=,]+)*)?$"), Flag(metavar="POOL=PATTERN,…")
    ] = ""
    """The pools of nodes, by patterns of their names, for lists, trends and audits: ``a100=gpu-a100-*,t4=t4-*``."""
