"""Pages of lists: pods that wait, attempts that a search finds, findings; and what is behind or incomplete."""

import asyncio
from dataclasses import dataclass

import orjson
from fastapi import Request
from starlette.responses import Response

from api.http.cluster import ROOT
from api.pages.answers import Answered
from api.pages.page_shell import MENDED, PageShell, filters_of, part_of

SEARCHED = ("q", "namespace", "pod", "node", "reason", "status", "workload", "queue", "device", "scheduler")
GROUPINGS = ("workload", "pod")
RANGE = ("since", "until", "limit", "continue")


@dataclass(frozen=True, slots=True)
class ListPages:
    shell: PageShell

    async def search(self, request: Request) -> Response:
        return await self.shell.list_page(request, "search", "/schedulerlogs", filters_of(request, *SEARCHED, *RANGE))

    async def pending(self, request: Request) -> Response:
        """The pods that wait now, by workload or one by one; the reasons with their counts are tabs."""
        asked = request.query_params.get("by", "")
        by = asked if asked in GROUPINGS else GROUPINGS[0]
        filters = filters_of(request, "namespace", "workload", "queue", "reason", "since", "limit", "continue")
        if by == "workload":
            answered = await self.shell.ask(request, "/pending", **filters)
            return self._pending(request, by, answered, answered)
        groups, answered = await asyncio.gather(
            self.shell.ask(request, "/pending", **filters | {"limit": "1", "continue": None}),
            self.shell.ask(request, "/pods", state="waiting", **filters),
        )
        return self._pending(request, by, answered, groups)

    def _pending(self, request: Request, by: str, answered: Answered, groups: Answered) -> Response:
        if not answered.is_right and answered.status not in MENDED:
            return self.shell.show_problem(request, answered)
        body, counted = answered.json(), groups.json() if groups.is_right else {}
        view = {
            "by": by,
            "groupings": GROUPINGS,
            "items": body.get("items", []),
            "token": body.get("continue"),
            "problem": None if answered.is_right else body,
            "pods": counted.get("pods", 0),
            "reasons": counted.get("reasons", {}),
            "blocked": counted.get("blocked", []),
            "path": answered.path,
        }
        return self.shell.show(request, "pending", view, answered.status)

    async def findings(self, request: Request) -> Response:
        names = ("finding", "namespace", "pod", "node", "device", "scheduler")
        return await self.shell.list_page(request, "findings", "/findings", filters_of(request, *names, *RANGE))

    async def about(self, request: Request) -> Response:
        """Readiness with its parts where the caller may see them, clusters, schedulers."""
        readiness = await self.shell.answers.get(request, "/readyz")
        clusters = await self.shell.answers.get(request, f"{ROOT}/clusters")
        schedulers = await self.shell.ask(request, "/schedulers")
        view = {
            # 503 has the same body: it says what is not ready.
            "readiness": orjson.loads(readiness.body),
            "clusters": part_of(clusters),
            "schedulers": part_of(schedulers),
        }
        return self.shell.show(request, "about", view)
