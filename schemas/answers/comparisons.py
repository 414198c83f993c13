"""The JSON that the API gives to people about nodes of an attempt: why one was chosen, and how they differ."""

from typing import Final

from pydantic import Field

from .attempts import ContainerLog
from .base import Answer


class ScoreTerm(Answer):
    name: str
    raw: float | None = Field(description="The used share that the term is made of; null where no source says it.")
    weighted: float = Field(description="Points that it adds to the score.")


class NodeJudged(Answer):
    """One node as an attempt judged it."""

    node: str
    verdict: str = Field(description="picked, fits, refused, unregistered or not reached.")
    score: float = Field(description="0 for a node that does not fit.")
    terms: list[ScoreTerm] = Field(description="They add up to the score, up to rounding; empty where not known.")
    containers: list[ContainerLog] = Field(description="Containers in the pod's order, up to the first that failed.")


class RunnerUp(Answer):
    """The best node that the pod did not get."""

    node: str
    score: float
    behind: float = Field(description="Distance of its score from the chosen node's; 0 where both are equal.")
    terms: dict[str, float] = Field(description="By name, what it has more than the chosen node; less where negative.")


class PodScores(Answer):
    attempt_id: str
    attempt: str = Field(description="The path of this attempt.")
    node_policy: str = Field(description="binpack: the highest score is the best. spread: the lowest.")
    chosen: str | None
    runner_up: RunnerUp | None = Field(description="Null where no node was chosen, or no other one fitted.")
    nodes: list[NodeJudged] = Field(description="Every node that fitted, the chosen one first, then the best.")


class NodeComparison(Answer):
    """Two nodes side by side, as one attempt judged them."""

    attempt_id: str
    attempt: str = Field(description="The path of this attempt.")
    chosen: str | None
    nodes: list[NodeJudged] = Field(description="Nodes in the order of the question.")
    difference: dict[str, float] = Field(
        description="Score and term differences: first node minus second. Empty unless both fit."
    )


class NodeChange(Answer):
    """A node that two attempts judged differently; null where an attempt did not judge it."""

    before: NodeJudged | None
    after: NodeJudged | None


class AttemptComparison(Answer):
    """Two attempts side by side, the earlier one first."""

    before: str = Field(description="The path of the earlier attempt.")
    after: str
    before_started_at: str
    after_started_at: str
    fields: dict[str, list[str]] = Field(
        description="Other differences, before and after: status, chosen node, requests, node_policy, settings_digest."
    )
    nodes: list[NodeChange] = Field(description="By name; nodes that both judged alike are left out.")
    unchanged_nodes: int


ANSWERS: Final = (PodScores, NodeComparison, AttemptComparison)
"""Each has a JSON Schema of its own."""


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
