"""Pages of lists: a search for attempts, findings, and the state of the system."""

from dataclasses import dataclass

import orjson
from starlette.requests import Request
from starlette.responses import Response

from api.http.cluster import ROOT
from api.ui.page_shell import MENDED, PageShell, select_parameters, to_part

SEARCHED = ("q", "namespace", "pod", "node", "obstacle", "reason", "status", "workload", "queue", "device", "scheduler")
FINDING_FILTERS = ("finding", "namespace", "pod", "node", "device", "scheduler")
RANGE = ("since", "until", "limit", "continue")


@dataclass(frozen=True, slots=True)
class ListPages:
    shell: PageShell

    async def show_search(self, request: Request) -> Response:
        return await self.shell.show_list(
            request, "search", "/schedulerlogs", select_parameters(request, *SEARCHED, *RANGE)
        )

    async def show_findings(self, request: Request) -> Response:
        return await self.shell.show_list(
            request, "findings", "/findings", select_parameters(request, *FINDING_FILTERS, *RANGE)
        )

    async def show_alerts(self, request: Request) -> Response:
        """Show the alerts that fire, most severe first."""
        answered = await self.shell.ask(request, "/alerts", **select_parameters(request, "namespace", "state", "rule"))
        if not answered.is_right and answered.status not in MENDED:
            return self.shell.show_problem(request, answered)
        return self.shell.show(request, "alerts", {"alerts": to_part(answered)}, answered.status)

    async def show_about(self, request: Request) -> Response:
        """Show clusters, schedulers, and readiness with the parts that the caller may see."""
        readiness = await self.shell.answers.get(request, "/readyz")
        clusters = await self.shell.answers.get(request, f"{ROOT}/clusters")
        schedulers = await self.shell.ask(request, "/schedulers")
        view = {
            # 503 has the same body, which names the parts that are not ready.
            "readiness": orjson.loads(readiness.body),
            "clusters": to_part(clusters),
            "schedulers": to_part(schedulers),
        }
        return self.shell.show(request, "about", view)
