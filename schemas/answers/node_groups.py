"""The JSON of the view of an attempt's nodes: grouped by identical refusal, as page and terminal show them."""

from pydantic import Field

from .base import Answer


class ReasonRange(Answer):
    code: str = Field(description="Reason code in HAMi's spelling (docs/reasons.md).")
    min_count: int = Field(description="The least number of devices of a node that it refused.")
    max_count: int = Field(description="The greatest; the same where all nodes of the group have as many.")


class NodesAlike(Answer):
    """Nodes that were judged alike. Where more than 24 groups differ in counts alone, those with the same reasons are
    one."""

    verdict: str = Field(description="picked, fits, refused, unregistered or not reached.")
    is_refused: bool
    container: str = Field(description="The one that was refused; empty where none was.")
    reason: str = Field(
        description="Reasons in HAMi's form (1/8 CardCordoned, 2/8 NumaNotFit), with a range where the nodes differ."
    )
    counts: list[ReasonRange] = Field(description="The reasons that count devices, the most frequent first.")
    devices: int = Field(description="Number of devices of each of the nodes; 0 where nothing counts them.")
    nodes: list[str] = Field(description="By name.")
    scores: list[float] = Field(description="The score of each node that fits; empty for others.")


class PodNodeGroups(Answer):
    attempt_id: str
    attempt: str = Field(description="The path of this attempt.")
    chosen: str | None
    groups: list[NodesAlike] = Field(
        description="The chosen node, those that fit, then refusals by number of nodes, then what was not looked at."
    )
