"""Logging in and out: a pasted token is checked as every token is, and kept in a cookie that no script reads."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from api.authority.access import get_access
from api.ui.cookies import LOGIN, is_token, set_cookie, target
from api.ui.forms import form_of
from api.ui.page_shell import PageShell
from page.page_context import ROOT


@dataclass(frozen=True, slots=True)
class LoginPages:
    shell: PageShell
    audience: str
    has_login: bool
    """Does the API ask who the caller is?"""

    async def login(self, request: Request) -> Response:
        """The form; the first page where nobody has to log in."""
        get_access(request).allow_every_caller()
        if not self.has_login:
            return RedirectResponse(ROOT, 303)
        return self._form(request, target(request.query_params.get("next", "")), "")

    async def log_in(self, request: Request) -> Response:
        """Sets the cookie if the token is one that the gate knows."""
        access = get_access(request)
        access.allow_every_caller()
        form = await form_of(request)
        page, token = target(form.get("next", "")), form.get("token", "").strip()
        if not is_token(token):
            return self._form(request, page, "unusable" if token else "missing")
        # `page_session` has given the gate the pasted token: it was checked as every token is.
        if not access.caller_name:
            return self._form(request, page, "refused")
        response = RedirectResponse(page, 303)
        response.headers["Set-Cookie"] = set_cookie(token, request.url.scheme)
        return response

    async def log_out(self, request: Request) -> Response:
        get_access(request).allow_every_caller()
        response = RedirectResponse(LOGIN, 303)
        response.headers["Set-Cookie"] = set_cookie("", request.url.scheme)
        return response

    def _form(self, request: Request, page: str, problem: str) -> Response:
        view = {"target": page, "problem": problem, "audience": self.audience}
        return self.shell.show(request, "login", view, 400 if problem else 200)
