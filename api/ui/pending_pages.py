"""The page of pods that wait now: by obstacle, by workload or one by one, also as a table."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from starlette.requests import Request
from starlette.responses import Response

from api.ui.answers import Answered
from api.ui.page_shell import MENDED, PageShell, select_parameters, to_part
from schemas.answers.diagnosis import Layer

GROUPINGS: Final = ("obstacle", "layer", "workload", "pod")
SORTS: Final = {
    "obstacle": ("pods", "wait", "gpu_hours"),
    "layer": ("pods", "wait", "gpu_hours"),
    "workload": ("pods", "wait", "gpu_hours"),
    "pod": ("wait", "gpu_hours", "attempts", "name"),
}
FILTERS: Final = ("namespace", "workload", "queue", "reason", "obstacle", "layer", "pool", "model", "min_wait", "since")
WAITING_PARAMETERS: Final = ("by", "sort", "limit", "continue", *FILTERS)
"""Parameters of the pages of pods that wait."""


@dataclass(frozen=True, slots=True)
class PendingPages:
    shell: PageShell

    async def show_pending(self, request: Request) -> Response:
        """Show waiting pods with the filters of the address; the obstacles with their counts are tabs."""
        group_by = _choose_grouping(request)
        filters = select_parameters(request, *FILTERS)
        # Every answer by workload counts the pods of each obstacle; the tabs count without the selected one.
        counted, answered = await asyncio.gather(
            self.shell.ask(request, "/pending", **filters | {"limit": "1", "obstacle": None}),
            self.shell.ask(request, "/pending", group_by=group_by, **filters, **_select_paging(request, group_by)),
        )
        if not answered.is_right and answered.status not in MENDED:
            return self.shell.show_problem(request, answered)
        return self._show(request, group_by, answered, counted)

    async def write_table(self, request: Request) -> Response:
        """Write the rows of the page as a CSV file."""
        group_by = _choose_grouping(request)
        answered = await self.shell.ask(
            request,
            "/pending",
            group_by=group_by,
            format="csv",
            **select_parameters(request, *FILTERS),
            **_select_paging(request, group_by),
        )
        if not answered.is_right:
            return self.shell.show_problem(request, answered)
        headers = {"Content-Disposition": 'attachment; filename="pending.csv"'}
        return Response(answered.body, headers=headers, media_type="text/csv; charset=utf-8")

    async def show_changes(self, request: Request) -> Response:
        """Show the changes that admit most pods, on a separate page, because a trial takes longer than the list."""
        answered = await self.shell.ask(request, "/suggestions", **select_parameters(request, "namespace", "since"))
        return self.shell.show(request, "pending_changes", {"part": to_part(answered)}, answered.status)

    def _show(self, request: Request, group_by: str, answered: Answered, counted: Answered) -> Response:
        body, counts = answered.parse_json(), counted.parse_json() if counted.is_right else {}
        view = {
            "by": group_by,
            "groupings": GROUPINGS,
            "sorts": SORTS[group_by],
            "items": body.get("items", []),
            "token": body.get("continue"),
            "problem": None if answered.is_right else body,
            "pods": counts.get("pods", 0),
            "layers": sort_layers(counts.get("layers") or {}),
            "obstacles": counts.get("obstacles", {}),
            "blocked": counts.get("blocked", []),
            "path": answered.path,
        }
        return self.shell.show(request, "pending", view, answered.status)


def sort_layers(counted: Mapping[str, Any]) -> dict[str, Any]:
    """Sort what is counted by layer in the order of a pod's way."""
    return {layer: counted[layer] for layer in get_args(Layer) if layer in counted}


def _choose_grouping(request: Request) -> str:
    grouping = request.query_params.get("by", "")
    return grouping if grouping in GROUPINGS else GROUPINGS[0]


def _select_paging(request: Request, group_by: str) -> dict[str, str | None]:
    sort = request.query_params.get("sort")
    # Another grouping may not have the selected order.
    return select_parameters(request, "limit", "continue") | {"sort": sort if sort in SORTS[group_by] else None}
