"""The first page, and the way from a pod's name to its page."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from api.authority.access import get_access
from api.ui.page_shell import PageShell, context_of, named_pod


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
