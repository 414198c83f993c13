"""The parts of a pod's page that take longer, each a page of its own: changes, scores, history, records, comparison."""

import asyncio
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from api.ui.page_shell import PageShell, filters_of, part_of


@dataclass(frozen=True, slots=True)
class PodParts:
    shell: PageShell

    async def changes(self, request: Request) -> Response:
        """What would have to change."""
        return await self._part(request, "pod_changes", "suggestions", "attempt", "as_of")

    async def scores(self, request: Request) -> Response:
        """Why here, not there."""
        return await self._part(request, "pod_scores", "scores")

    async def history(self, request: Request) -> Response:
        """Its episodes, latest first."""
        return await self._part(request, "pod_history", "schedulerlog/history", "limit", "continue")

    async def records(self, request: Request) -> Response:
        """Findings, what the cluster reported, where it ran."""
        path = _path(request)
        names = ("findings", "observations", "occupancy")
        answers = await asyncio.gather(*(self.shell.ask(request, f"{path}/{name}", limit="20") for name in names))
        if not any(answer.is_right for answer in answers):
            return self.shell.show_problem(request, answers[0])
        view = {name: part_of(answered) for name, answered in zip(names, answers, strict=True)}
        return self.shell.show(request, "pod_records", _names(request) | view | {"path": answers[0].path})

    async def comparison(self, request: Request) -> Response:
        """Two of its attempts side by side."""
        first = request.query_params.get("attempt", "")
        answered = await self.shell.ask(
            request, f"/attempts/{first or '-'}/comparison", **{"with": request.query_params.get("with")}
        )
        if not answered.is_right:
            return self.shell.show_problem(request, answered)
        view = _names(request) | {"comparison": answered.json(), "path": answered.path}
        return self.shell.show(request, "pod_comparison", view)

    async def _part(self, request: Request, template: str, name: str, *parameters: str) -> Response:
        answered = await self.shell.ask(request, f"{_path(request)}/{name}", **filters_of(request, *parameters))
        # Shown inside of the pod's page too: with the words of the refusal and not as another page.
        view = _names(request) | {"part": part_of(answered), "path": answered.path}
        return self.shell.show(request, template, view, answered.status)


def _path(request: Request) -> str:
    return "/namespaces/{namespace}/pods/{name}".format(**request.path_params)


def _names(request: Request) -> dict[str, str]:
    return {"namespace": request.path_params["namespace"], "name": request.path_params["name"]}
