"""The query parameters of comparisons."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from api.http.param_types import ATTEMPT_ID, ObjectName
from api.http.query_params import AttemptQuery, Query, split_at_commas


def _two(names: list[str]) -> list[str]:
    if len(set(names)) != 2 or len(names) != 2:
        raise ValueError(f"{len(names)} names are given; two different ones are compared, as in nodes=a,b")
    return names


class NodeComparisonQuery(AttemptQuery):
    nodes: Annotated[list[ObjectName], BeforeValidator(split_at_commas), AfterValidator(_two)] = Field(
        description="Two nodes: separate their names by a comma, or repeat the parameter.", examples=["node1,node2"]
    )


class AttemptComparisonQuery(Query):
    with_: str = Field(alias="with", pattern=ATTEMPT_ID, description="The id of the other attempt.")
