"""The first page, and the way from a pod's name to its page."""

from dataclasses import dataclass

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from api.authority.access import access_of
from api.http.errors import BadRequestError
from api.http.param_types import namespace_problem, subdomain_problem
from api.pages.page_shell import PageShell, context_of


@dataclass(frozen=True, slots=True)
class HomePages:
    shell: PageShell

    async def home(self, request: Request) -> Response:
        access_of(request).allow_every_caller()
        return self.shell.show(request, "home", {})

    async def go(self, request: Request) -> Response:
        """To the page of the pod that the form names. Raises ``BadRequestError``."""
        access_of(request).allow_every_caller()
        namespace = request.query_params.get("namespace", "").strip() or "default"
        pod = request.query_params.get("pod", "").strip()
        for parameter, problem in (("namespace", namespace_problem(namespace)), ("pod", subdomain_problem(pod))):
            if problem:
                raise BadRequestError(f"{parameter} {problem}", "Write the names as kubectl get pods shows them.")
        return RedirectResponse(context_of(request).pod(namespace, pod), 303)
