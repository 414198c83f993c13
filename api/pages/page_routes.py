"""The list of the pages' routes. They are Starlette's, so that none of them stands in the OpenAPI document."""

from starlette.routing import Route

from api.pages.answers import Answers
from api.pages.cookies import LOGIN, LOGOUT, STATIC
from api.pages.home_pages import HomePages
from api.pages.list_pages import ListPages
from api.pages.login_pages import LoginPages
from api.pages.node_pages import NodePages
from api.pages.page_shell import PageShell
from api.pages.static_files import StaticFiles
from page.page_context import ROOT


def page_routes(answers: Answers, audience: str, *, has_login: bool) -> list[Route]:
    """Every page. ``audience`` is what a token has to be issued for, ``has_login`` whether the API asks for one."""
    shell = PageShell(answers)
    login = LoginPages(shell, audience, has_login)
    home, nodes, lists = HomePages(shell), NodePages(shell), ListPages(shell)
    return [
        Route(STATIC + "{name}", StaticFiles().file),
        Route(LOGIN, login.login),
        Route(LOGIN, login.log_in, methods=["POST"]),
        Route(LOGOUT, login.log_out, methods=["POST"]),
        Route(ROOT, home.home),
        Route(ROOT + "/", home.home),
        Route(ROOT + "/go", home.go),
        Route(ROOT + "/nodes", nodes.nodes),
        Route(ROOT + "/nodes/{node}", nodes.node),
        Route(ROOT + "/search", lists.search),
        Route(ROOT + "/findings", lists.findings),
        Route(ROOT + "/about", lists.about),
    ]
