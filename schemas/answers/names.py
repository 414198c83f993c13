"""The JSON that the API gives to a search field: names that it knows."""

from typing import Final, Literal

from pydantic import Field

from .base import Answer


class NameMatched(Answer):
    """A pod, workload, node or namespace of which the API has a record in memory."""

    kind: Literal["namespace", "node", "workload", "pod"]
    namespace: str = Field(description="Namespace of the pod or workload; empty for the other kinds.")
    name: str = Field(description="Name; of a workload with its kind, as `job/train`.")
    text: str = Field(description="The name as one text: `llm/train-0`, `llm/job/train`, `node3`, `llm/`.")


class Names(Answer):
    """Names of the cluster, for callers who may read them."""

    items: list[NameMatched] = Field(description="Equal names first, then those that begin with the text.")
    are_similar: bool = Field(description="True if no name contains the text: the names are similar to it.")


ANSWERS: Final = (Names,)
"""Each has a JSON Schema of its own."""
