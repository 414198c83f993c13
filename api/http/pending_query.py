"""Query parameters of the list of pending pods."""

from typing import Final, Literal, Self

from pydantic import Field, model_validator
from starlette.requests import Request

from api.http.param_types import ContinueToken, Keyword, TimeText, WholeNumber
from api.http.query_params import DEFAULT_ITEMS, MAX_ITEMS, OF_THE_NEXT_PAGE, WaitingFilters
from api.http.tables import CSV
from api.http.watch_query import WatchParameters
from schemas.answers.diagnosis import Layer

GroupBy = Literal["workload", "obstacle", "layer", "pod"]
Sort = Literal["pods", "wait", "gpu_hours", "devices", "attempts", "name"]
Format = Literal["json", "flat", "csv"]
_SORTS: Final[dict[GroupBy, tuple[Sort, ...]]] = {
    "workload": ("pods", "wait", "gpu_hours", "devices"),
    "obstacle": ("pods", "wait", "gpu_hours", "devices"),
    "layer": ("pods", "wait", "gpu_hours", "devices"),
    "pod": ("wait", "gpu_hours", "devices", "attempts", "name"),
}
"""Orders that each grouping offers; the first is the default."""


class PendingQuery(WatchParameters, WaitingFilters):
    pool: Keyword | None = Field(None, description="Node pool in which the pods' latest attempts judged nodes.")
    model: Keyword | None = Field(None, description="Exact model of a device that the pods' latest attempts judged.")
    obstacle: Keyword | None = Field(None, description="Exact code of the pods' main obstacle.")
    layer: Layer | None = Field(None, description="Layer that holds the pods.")
    min_wait: TimeText | None = Field(
        None, description="Minimum wait: a duration (15m, 2h, 7d), or the time before which the wait began (RFC 3339)."
    )
    since: TimeText = Field(
        "1h", description="Only pods that a scheduler tried at this time or later: RFC 3339, or 15m, 2h, 7d ago."
    )
    group_by: GroupBy = Field(
        "workload",
        description="Rows of the answer. `workload`: one per workload. `obstacle`: one for all pods with the same "
        "request and the same obstacle. `layer`: one per layer that holds pods. `pod`: one per pod.",
    )
    sort: Sort | None = Field(
        None,
        description="Order of the rows. `pods`: most pods first (only groups; their default). `wait`: longest wait "
        "first (the default of pods). `gpu_hours`, `devices`: most first. `attempts` (most first) and `name`: only "
        "pods.",
    )
    format: Format | None = Field(
        None,
        description="Format of the answer. `json`: nested. `flat`: an array of rows without nesting. `csv`: these rows "
        "as a table, also by `Accept: text/csv`.",
    )
    limit: WholeNumber = Field(DEFAULT_ITEMS, ge=1, le=MAX_ITEMS, description="Rows per page.")
    continue_: ContinueToken | None = Field(None, alias="continue", description=OF_THE_NEXT_PAGE)

    @model_validator(mode="after")
    def _can_be_sorted(self) -> Self:
        if self.sort and self.sort not in (orders := _SORTS[self.group_by]):
            raise ValueError(f"sort={self.sort} with group_by={self.group_by}: known are {', '.join(orders)}")
        return self

    @property
    def order(self) -> Sort:
        return self.sort or _SORTS[self.group_by][0]


def choose_format(request: Request, query: PendingQuery) -> Format:
    """Choose the format by the parameter, or else by the ``Accept`` header."""
    return query.format or ("csv" if CSV in request.headers.get("accept", "") else "json")
