"""The first page with its numbers, and the search field that leads to a pod, workload, node or namespace."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from api.authority.access import get_access
from api.ui.node_pages import fetch_fleet
from api.ui.page_shell import PageShell, build_context, parse_named_pod, select_parameters, to_part
from page.page_context import ROOT, PageContext
from page.views.fleet import add_nodes
from schemas.json_types import Json


@dataclass(frozen=True, slots=True)
class HomePages:
    shell: PageShell

    async def show_home(self, request: Request) -> Response:
        """Show the search field, and what waits and fires now, as far as the caller may read it."""
        get_access(request).allow_every_caller()
        namespace = select_parameters(request, "namespace")
        waiting, alerts = await asyncio.gather(
            self.shell.ask(request, "/pending", group_by="layer", **namespace),
            self.shell.ask(request, "/alerts", limit="1", **namespace),
        )
        return self.shell.show(request, "home", {"waiting": to_part(waiting), "alerts": to_part(alerts)})

    async def show_free(self, request: Request) -> Response:
        """Show the free devices by model, which takes a request for each two hundred nodes."""
        answered, nodes = await fetch_fleet(self.shell, request)
        total = answered.parse_json().get("total", 0)
        view = {"part": to_part(answered), "models": add_nodes(nodes, "model"), "nodes": len(nodes), "total": total}
        return self.shell.show(request, "free", view, answered.status)

    async def find(self, request: Request) -> Response:
        """List the names that contain a text, or else are similar to it."""
        answered = await self.shell.ask(request, "/names", **select_parameters(request, "q", "limit"))
        if not answered.is_right:
            return self.shell.show_problem(request, answered)
        return self._show_names(request, answered.parse_json())

    async def go(self, request: Request) -> Response:
        """Go to the page of the one name that the text is, or list the names that it may be.

        Raises ``BadRequestError`` for a namespace and a pod in fields of their own, as older links have them.
        """
        get_access(request).allow_every_caller()
        context, text = build_context(request), request.query_params.get("q", "").strip()
        if not text and "pod" not in request.query_params:
            return RedirectResponse(context.build_url(ROOT), 303)
        if not text:
            return RedirectResponse(context.link_pod(*parse_named_pod(request)), 303)
        answered = await self.shell.ask(request, "/names", q=text, limit="50")
        if not answered.is_right:
            return self.shell.show_problem(request, answered)
        names = answered.parse_json()
        equal = _select_equal(names["items"], text)
        if len(equal) == 1:
            return RedirectResponse(link_name(context, equal[0]), 303)
        return self._show_names(request, names)

    def _show_names(self, request: Request, names: Json) -> Response:
        context = build_context(request)
        text = context.get_value("q").strip()
        namespace, _, pod = text.rpartition("/")
        view = {
            "text": text,
            "items": [item | {"address": link_name(context, item)} for item in names["items"]],
            "are_similar": names["are_similar"],
            # A pod that no scheduler has tried yet has a page too, where the API reads the cluster's objects.
            "pod": (namespace or "default", pod) if pod and "/" not in namespace else None,
            "path": f"{context.api}/names",
        }
        return self.shell.show(request, "find", view)


def _select_equal(items: Sequence[Json], text: str) -> list[Json]:
    """Select the names that the text is: with its namespace, or alone."""
    wanted = text.lower()
    named = [item for item in items if wanted == item["text"].lower()]
    return named or [item for item in items if wanted == item["name"].lower()]


def link_name(context: PageContext, item: Mapping[str, Any]) -> str:
    """Link the page of a name."""
    namespace, name = item["namespace"], item["name"]
    match item["kind"]:
        case "node":
            return context.link_node(name)
        case "namespace":
            return context.build_url(f"{ROOT}/search", namespace=name)
        case "workload":
            return context.build_url(f"{ROOT}/workloads/{namespace}/{name}")
    return context.link_pod(namespace, name)


@dataclass(frozen=True, slots=True)
class WorkloadPages:
    shell: PageShell

    async def show_workload(self, request: Request) -> Response:
        """Show why the pods of a workload wait, by what keeps them, or why it has none."""
        path = "/namespaces/{namespace}/workloads/{word}/{name}".format(**request.path_params)
        answered = await self.shell.ask(request, path)
        if not answered.is_right:
            return self.shell.show_problem(request, answered)
        view = dict(request.path_params) | {"answer": answered.parse_json(), "path": answered.path}
        return self.shell.show(request, "workload", view)
