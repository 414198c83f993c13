"""Pages of lists: attempts that a search finds, findings; and what is behind or incomplete."""

from dataclasses import dataclass

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from api.authority.access import get_access
from api.http.cluster import ROOT
from api.ui.page_shell import PageShell, context_of, filters_of, named_pod, part_of

SEARCHED = ("q", "namespace", "pod", "node", "reason", "status", "workload", "queue", "device", "scheduler")
RANGE = ("since", "until", "limit", "continue")


@dataclass(frozen=True, slots=True)
class ListPages:
    shell: PageShell

    async def search(self, request: Request) -> Response:
        return await self.shell.list_page(request, "search", "/schedulerlogs", filters_of(request, *SEARCHED, *RANGE))

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


@dataclass(frozen=True, slots=True)
class HomePages:
    shell: PageShell

    async def home(self, request: Request) -> Response:
        get_access(request).allow_every_caller()
        return self.shell.show(request, "home", {})

    async def go(self, request: Request) -> Response:
        """To the page of the pod that the form names. Raises ``BadRequestError``."""
        get_access(request).allow_every_caller()
        return RedirectResponse(context_of(request).link_pod(*named_pod(request)), 303)
