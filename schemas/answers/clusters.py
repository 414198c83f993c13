"""The JSON that the API gives to people about whole clusters."""

from typing import Final

from pydantic import Field

from .base import Answer


class ClusterFound(Answer):
    """A cluster that the index has records of."""

    name: str
    is_default: bool = Field(description="True for the cluster that paths without a cluster are about.")
    first_record_at: str | None = Field(description="Null where there is no record.")
    last_record_at: str | None
    path: str = Field(description="Prefix of every path about this cluster.")


class Clusters(Answer):
    items: list[ClusterFound] = Field(description="By name.")


ANSWERS: Final = (Clusters,)
"""Each has a JSON Schema of its own."""
