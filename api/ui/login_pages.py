"""Login and logout: the gate checks a pasted token like every other, and a cookie hides it from scripts."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from api.authority.access import get_access
from api.ui.cookies import LOGIN, choose_target, is_token, set_cookie
from api.ui.page_session import read_form
from api.ui.page_shell import PageShell
from page.page_context import ROOT


@dataclass(frozen=True, slots=True)
class LoginPages:
    shell: PageShell
    audience: str
    has_login: bool
    """True if the API identifies callers."""

    async def show_login(self, request: Request) -> Response:
        """Show the form; go to the first page if nobody has to log in."""
        get_access(request).allow_every_caller()
        if not self.has_login:
            return RedirectResponse(ROOT, 303)
        return self._show_form(request, choose_target(request.query_params.get("next", "")), "")

    async def log_in(self, request: Request) -> Response:
        """Set the cookie if the gate accepted the token."""
        access = get_access(request)
        access.allow_every_caller()
        form = await read_form(request)
        page, token = choose_target(form.get("next", "")), form.get("token", "").strip()
        if not is_token(token):
            return self._show_form(request, page, "unusable" if token else "missing")
        # `page_session` has passed the pasted token to the gate, which checked it like every other.
        if not access.caller_name:
            return self._show_form(request, page, "refused")
        response = RedirectResponse(page, 303)
        response.headers["Set-Cookie"] = set_cookie(token, request.url.scheme)
        return response

    async def log_out(self, request: Request) -> Response:
        get_access(request).allow_every_caller()
        response = RedirectResponse(LOGIN, 303)
        response.headers["Set-Cookie"] = set_cookie("", request.url.scheme)
        return response

    def _show_form(self, request: Request, page: str, problem: str) -> Response:
        view = {"target": page, "problem": problem, "audience": self.audience}
        return self.shell.show(request, "login", view, 400 if problem else 200)
