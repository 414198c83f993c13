"""The parameters of the list of pending pods."""

from typing import Final, Literal, Self

from pydantic import Field, model_validator
from starlette.requests import Request

from api.http.param_types import ContinueToken, Keyword, TimeText, WholeNumber
from api.http.query_params import DEFAULT_ITEMS, MAX_ITEMS, OF_THE_NEXT_PAGE, WaitingFilters
from api.http.tables import CSV
from api.http.watch_query import WatchParameters

GroupBy = Literal["workload", "obstacle", "pod"]
Sort = Literal["pods", "wait", "gpu_hours", "devices", "attempts", "name"]
Format = Literal["json", "flat", "csv"]
_SORTS: Final[dict[GroupBy, tuple[Sort, ...]]] = {
    "workload": ("pods", "wait", "gpu_hours", "devices"),
    "obstacle": ("pods", "wait", "gpu_hours", "devices"),
    "pod": ("wait", "gpu_hours", "devices", "attempts", "name"),
}
"""The orders that each group offers; the first is the default."""


class PendingQuery(WatchParameters, WaitingFilters):
    pool: Keyword | None = Field(None, description="A node pool that the pods' latest attempts judged nodes of.")
    model: Keyword | None = Field(
        None, description="A model of the devices that the pods' latest attempts judged, spelled exactly."
    )
    obstacle: Keyword | None = Field(None, description="The code of the pods' main obstacle, spelled exactly.")
    min_wait: TimeText | None = Field(
        None, description="Only pods that wait for so long (15m, 2h, 7d), or since before this time (RFC 3339)."
    )
    since: TimeText = Field(
        "1h", description="Only pods that were tried at this time or later: RFC 3339, or 15m, 2h, 7d ago."
    )
    group_by: GroupBy = Field(
        "workload",
        description="workload: a row each. obstacle: pods that ask for the same and are kept out by the same are one "
        "row. pod: every pod.",
    )
    sort: Sort | None = Field(
        None,
        description="pods: most pods first, of groups alone, and their default. wait: longest wait first, the default "
        "of pods. gpu_hours, devices: most first. attempts (most first) and name: of pods alone.",
    )
    format: Format | None = Field(
        None,
        description="json: the answer. flat: an array of rows without nesting. csv: the same rows as a table, also by "
        "`Accept: text/csv`.",
    )
    limit: WholeNumber = Field(DEFAULT_ITEMS, ge=1, le=MAX_ITEMS, description="The page size in rows.")
    continue_: ContinueToken | None = Field(None, alias="continue", description=OF_THE_NEXT_PAGE)

    @model_validator(mode="after")
    def _can_be_sorted(self) -> Self:
        if self.sort and self.sort not in (known := _SORTS[self.group_by]):
            raise ValueError(f"sort={self.sort} with group_by={self.group_by}: known are {', '.join(known)}")
        return self

    @property
    def order(self) -> Sort:
        return self.sort or _SORTS[self.group_by][0]


def requested_format(request: Request, query: PendingQuery) -> Format:
    """As the parameter says, else as the ``Accept`` header does."""
    return query.format or ("csv" if CSV in request.headers.get("accept", "") else "json")
