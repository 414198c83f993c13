"""The page of the pods that wait now: by obstacle, by workload or one by one, and the same as a table."""

import asyncio
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from api.ui.answers import Answered
from api.ui.page_shell import MENDED, PageShell, filters_of, part_of

GROUPINGS: Final = ("obstacle", "workload", "pod")
SORTS: Final = {
    "obstacle": ("pods", "wait", "gpu_hours"),
    "workload": ("pods", "wait", "gpu_hours"),
    "pod": ("wait", "gpu_hours", "attempts", "name"),
}
FILTERS: Final = ("namespace", "workload", "queue", "reason", "obstacle", "pool", "model", "min_wait", "since")


@dataclass(frozen=True, slots=True)
class PendingPages:
    shell: PageShell

    async def pending(self, request: Request) -> Response:
        """The filters are in the address; the reasons with their counts are tabs."""
        by = _grouping(request)
        filters = filters_of(request, *FILTERS)
        # Every answer by workload counts the pods for each reason; the tabs count without the one that is chosen.
        counted, answered = await asyncio.gather(
            self.shell.ask(request, "/pending", **filters | {"limit": "1", "reason": None}),
            self.shell.ask(request, "/pending", group_by=by, **filters, **_paging(request, by)),
        )
        if not answered.is_right and answered.status not in MENDED:
            return self.shell.show_problem(request, answered)
        return self._show(request, by, answered, counted)

    async def table(self, request: Request) -> Response:
        """The rows of the page as CSV, to be kept."""
        by = _grouping(request)
        answered = await self.shell.ask(
            request, "/pending", group_by=by, format="csv", **filters_of(request, *FILTERS), **_paging(request, by)
        )
        if not answered.is_right:
            return self.shell.show_problem(request, answered)
        headers = {"Content-Disposition": 'attachment; filename="pending.csv"'}
        return Response(answered.body, headers=headers, media_type="text/csv; charset=utf-8")

    async def changes(self, request: Request) -> Response:
        """The one change that lets most of them in: a page of its own, because trying takes longer than the list."""
        answered = await self.shell.ask(request, "/suggestions", **filters_of(request, "namespace", "since"))
        return self.shell.show(request, "pending_changes", {"part": part_of(answered)}, answered.status)

    def _show(self, request: Request, by: str, answered: Answered, counted: Answered) -> Response:
        body, counts = answered.json(), counted.json() if counted.is_right else {}
        view = {
            "by": by,
            "groupings": GROUPINGS,
            "sorts": SORTS[by],
            "items": body.get("items", []),
            "token": body.get("continue"),
            "problem": None if answered.is_right else body,
            "pods": counts.get("pods", 0),
            "reasons": counts.get("reasons", {}),
            "blocked": counts.get("blocked", []),
            "path": answered.path,
        }
        return self.shell.show(request, "pending", view, answered.status)


def _grouping(request: Request) -> str:
    asked = request.query_params.get("by", "")
    return asked if asked in GROUPINGS else GROUPINGS[0]


def _paging(request: Request, by: str) -> dict[str, str | None]:
    sort = request.query_params.get("sort")
    # Another grouping may not know the order that was chosen before.
    return filters_of(request, "limit", "continue") | {"sort": sort if sort in SORTS[by] else None}
