"""The query parameters of each endpoint, one model for each. The API refuses parameters that the model lacks.

Both the checks and the OpenAPI document come from these models.
"""

from collections import Counter
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from starlette.requests import Request

from api.http.errors import BadRequestError
from api.http.param_types import (
    ATTEMPT_ID,
    OUTCOME_WORDS,
    ContinueToken,
    Keyword,
    NamespaceName,
    ObjectName,
    Outcome,
    PastTimeText,
    TimeText,
    WholeNumber,
)
from api.http.param_types import Query as Query
from api.http.watch_query import WatchParameters

MAX_NODES: Final = 100
MAX_ITEMS: Final = 200
DEFAULT_ITEMS: Final = 50
MAX_EPISODES: Final = 100
DEFAULT_EPISODES: Final = 20

OF_THE_NEXT_PAGE: Final = (
    "Token of the next page, from the page before. All other parameters except limit must stay the same."
)


def split_at_commas(values: Any) -> Any:
    """Split values at commas: ``node=a,b&node=c`` is three names."""
    if not isinstance(values, list):
        return values
    return [part for value in values for part in str(value).split(",")]


def _without_duplicates(names: list[str]) -> list[str]:
    # Before duplicates are dropped: the bound is on what has to be read.
    if len(names) > MAX_NODES:
        raise ValueError(f"{len(names)} names are too many; ask for at most {MAX_NODES} at once")
    return list(dict.fromkeys(names))


def refuse_repeated(request: Request, *repeatable: str) -> None:
    """Raise ``BadRequestError`` for a parameter given twice: a model would silently drop one of the values."""
    parameters = request.query_params.multi_items()
    # Most requests have no parameters: they need no counting.
    if len(parameters) < 2:
        return
    counts = Counter(key for key, _ in parameters if key not in repeatable)
    if repeated := next((key for key, count in counts.items() if count > 1), None):
        raise BadRequestError(f"parameter {repeated[:60]!a} is given {counts[repeated]} times", "Give it once.")


class AttemptQuery(Query):
    attempt: Annotated[str, Field(pattern=ATTEMPT_ID)] | None = Field(
        None, description="Id of one of the pod's attempts; without it, the latest attempt."
    )


class NoQuery(Query):
    """Query of an endpoint without parameters."""


class PageOfNodes(Query):
    node: Annotated[list[ObjectName], BeforeValidator(split_at_commas), AfterValidator(_without_duplicates)] = Field(
        default=[],
        description=f"Only these nodes: repeat the parameter, or separate names by commas; at most {MAX_NODES}.",
    )
    status: Literal["passed", "failed"] | None = Field(
        None, description="Only nodes that passed, or only nodes that failed."
    )
    # No default, because the proposal's answer holds all nodes.
    limit: WholeNumber | None = Field(
        None,
        ge=1,
        le=100_000,
        description="Nodes per page; without it, all nodes on one page. Headers lead to the next page.",
    )
    continue_: ContinueToken | None = Field(None, alias="continue", description=OF_THE_NEXT_PAGE)
    detail: Literal["full"] | None = Field(
        None,
        description="`full` adds the attempt's request, counts and ids, and with `node` the devices of these nodes.",
    )


# pydantic lists the fields of the last base first, in the OpenAPI document too: those of a watch come last.
class SchedulerlogQuery(WatchParameters, PageOfNodes):
    """A pod's latest attempt, or with ``watch`` every new one."""


class HistoryQuery(Query):
    limit: WholeNumber = Field(DEFAULT_EPISODES, ge=1, le=MAX_EPISODES, description="Episodes per page.")
    continue_: ContinueToken | None = Field(None, alias="continue", description=OF_THE_NEXT_PAGE)


class PageOfAttempts(Query):
    namespace: NamespaceName | None = Field(None, description="The pod's namespace.")
    pod: ObjectName | None = Field(None, description="The pod's name.")
    node: ObjectName | None = Field(None, description="A node that the attempt judged.")
    obstacle: Keyword | None = Field(None, description="Exact code of the obstacle that decided the attempt.")
    reason: Keyword | None = Field(
        None,
        description="Exact reason code for which at least one node was refused; with `node`, that node.",
    )
    status: Outcome | None = Field(None, description=f"Outcome of the attempt. {OUTCOME_WORDS}")
    device: Keyword | None = Field(None, description="The UUID of a device that the attempt picked.")
    scheduler: Keyword | None = Field(None, description="The scheduler that decided.", examples=["hami-scheduler"])
    workload: Keyword | None = Field(None, description="The pod's owner, as kind and name.", examples=["Job/train"])
    queue: Keyword | None = Field(None, description="The queue that the pod waits in.")
    since: TimeText | None = Field(
        None, description="Attempts that started at this time or later: RFC 3339, or 15m, 2h, 7d ago.", examples=["2h"]
    )
    until: TimeText | None = Field(
        None, description="Attempts that started before this time: RFC 3339, or 15m, 2h, 7d ago."
    )
    q: str | None = Field(
        None,
        min_length=1,
        max_length=500,
        description="Words that must all occur in the attempt's messages and reasons.",
    )
    group_by: Literal["workload", "node"] | None = Field(
        None, description="Adds to the first page counts of attempts by workload, or of refusals by node and reason."
    )
    limit: WholeNumber = Field(DEFAULT_ITEMS, ge=1, le=MAX_ITEMS, description="Attempts per page.")
    continue_: ContinueToken | None = Field(None, alias="continue", description=OF_THE_NEXT_PAGE)


class SearchQuery(WatchParameters, PageOfAttempts):
    """Past attempts, or with ``watch`` every new one."""


class RangeQuery(Query):
    """A list over a range of time, in pages."""

    since: TimeText | None = Field(
        None, description="Start of the range: RFC 3339, or 15m, 2h, 7d ago.", examples=["2h"]
    )
    until: TimeText | None = Field(None, description="End of the range (exclusive): RFC 3339, or 15m, 2h, 7d ago.")
    limit: WholeNumber = Field(DEFAULT_ITEMS, ge=1, le=MAX_ITEMS, description="Items per page.")
    continue_: ContinueToken | None = Field(None, alias="continue", description=OF_THE_NEXT_PAGE)


class FindingTypeFilter(Query):
    finding: Keyword | None = Field(None, description="Exact type of the finding.", examples=["Overcommitted"])


class FindingFilters(FindingTypeFilter):
    namespace: NamespaceName | None = Field(None, description="The pod's namespace.")
    pod: ObjectName | None = Field(None, description="The pod's name.")
    node: ObjectName | None = Field(None, description="The node that the finding is about.")
    device: Keyword | None = Field(
        None, description="The device that the finding is about, as its scheduler identifies it."
    )
    scheduler: Keyword | None = Field(None, description="The scheduler whose decision the finding is about.")


# The filters, then the range.
class PodFindingsQuery(RangeQuery, FindingTypeFilter):
    """Findings of one pod."""


class FindingsQuery(RangeQuery, FindingFilters):
    """Findings of all pods."""


class NodesQuery(Query):
    pool: Keyword | None = Field(None, description="Only nodes of this pool of `SCHEDULERLOG_NODE_POOLS`.")
    limit: WholeNumber = Field(DEFAULT_ITEMS, ge=1, le=MAX_ITEMS, description="Nodes per page.")
    continue_: ContinueToken | None = Field(None, alias="continue", description=OF_THE_NEXT_PAGE)


class NodeQuery(Query):
    at: PastTimeText | None = Field(
        None, description="Time of the state: RFC 3339, or 15m, 2h, 7d ago; without it, now.", examples=["2h"]
    )


class ClusterFileQuery(Query):
    at: PastTimeText | None = Field(
        None, description="Time of the states: RFC 3339, or 15m, 2h, 7d ago; without it, now.", examples=["2h"]
    )
    scheduler: Keyword | None = Field(None, description="Only states counted by this scheduler.")


class RecordingQuery(Query):
    since: TimeText = Field("7d", description="Start of the range: RFC 3339, or 15m, 2h, 7d ago.")
    until: TimeText | None = Field(None, description="End of the range (exclusive): RFC 3339, or 15m, 2h, 7d ago.")


class NodeDeviceQuery(NodeQuery):
    device: Keyword | None = Field(None, description="Only this device, by its UUID.")


class NodeOccupancyQuery(RangeQuery, NodeDeviceQuery):
    """One moment (``at``, by default now) or a range in pages."""

    @property
    def has_range(self) -> bool:
        """True if the query has a parameter of a range."""
        return bool(self.model_fields_set & RangeQuery.model_fields.keys())

    @model_validator(mode="after")
    def _is_moment_or_range(self) -> Self:
        if self.at is not None and self.has_range:
            raise ValueError(
                "at asks for one moment; since, until, limit and continue ask for a range: give one or the other"
            )
        return self


class WaitingFilters(Query):
    """Filters of lists of waiting pods."""

    namespace: NamespaceName | None = Field(None, description="The pods' namespace.")
    workload: Keyword | None = Field(None, description="The pods' owner, as kind and name.", examples=["Job/train"])
    queue: Keyword | None = Field(None, description="The queue that the pods wait in.")
    reason: Keyword | None = Field(None, description="Exact reason code of the pods' latest attempts.")


class PodsQuery(RangeQuery, WaitingFilters):
    state: Literal["placed", "ended", "waiting"] = Field(
        "placed", description="`placed`: on a node now. `ended`: no longer on its node. `waiting`: not placed yet."
    )
    node: ObjectName | None = Field(None, description="The pods' node.")
    device: Keyword | None = Field(None, description="UUID of a device that the pods hold or held.")

    @model_validator(mode="after")
    def _fits_its_state(self) -> Self:
        if self.state == "waiting" and (self.node or self.device or self.until):
            raise ValueError("node, device and until are about placements: leave them out with state=waiting")
        if self.state != "waiting" and self.reason:
            raise ValueError("reason is about pods that wait: give it with state=waiting")
        return self


class RefusalsQuery(RangeQuery):
    device: Keyword = Field(description="The UUID of the device.", examples=["GPU-1"])
    namespace: NamespaceName | None = Field(None, description="The pod's namespace.")
    pod: ObjectName | None = Field(None, description="The pod's name.")
    reason: Keyword | None = Field(None, description="Exact reason code of the device's refusal.")


def _require_two(names: list[str]) -> list[str]:
    if len(set(names)) != 2 or len(names) != 2:
        raise ValueError(f"{len(names)} names are given; two different ones are compared, as in nodes=a,b")
    return names


class NodeComparisonQuery(AttemptQuery):
    nodes: Annotated[list[ObjectName], BeforeValidator(split_at_commas), AfterValidator(_require_two)] = Field(
        description="Two nodes: separate their names by a comma, or repeat the parameter.", examples=["node1,node2"]
    )


class AttemptComparisonQuery(Query):
    with_: str = Field(alias="with", pattern=ATTEMPT_ID, description="The id of the other attempt.")
