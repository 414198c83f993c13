"""The list of the pages' routes. They are Starlette's, so that none of them stands in the OpenAPI document."""

from hashlib import sha256
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api.answers.attempt_lookup import AttemptLookup
from api.authority.access import get_access
from api.ui.answers import Answers
from api.ui.cookies import EMBED, LOGIN, LOGOUT, STATIC
from api.ui.list_pages import HomePages, ListPages
from api.ui.login_pages import LoginPages
from api.ui.node_pages import NodePages
from api.ui.page_shell import PageShell
from api.ui.pending_pages import PendingPages
from api.ui.pod_pages import PodPages, PodParts
from api.ui.report_pages import ReportPages
from api.ui.simulation_page import SimulationPage
from engine.hami.vendors import Vendors
from page.page_context import ROOT
from page.render import STATIC as STATIC_FOLDER

_TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


class StaticFiles:
    """They are read once: a request names one of them, and never a path."""

    def __init__(self) -> None:
        self._files = {
            path.name: (path.read_bytes(), _TYPES[path.suffix])
            for path in STATIC_FOLDER.iterdir()
            if path.suffix in _TYPES
        }
        self._etags = {name: f'"{sha256(content).hexdigest()[:20]}"' for name, (content, _) in self._files.items()}

    async def file(self, request: Request) -> Response:
        get_access(request).allow_every_caller()
        name = request.path_params["name"]
        if name not in self._files:
            raise HTTPException(404)
        content, media_type = self._files[name]
        # Asked for again each time, and answered without the content unless it has changed: no address needs a version.
        headers = {"ETag": self._etags[name], "Cache-Control": "no-cache"}
        if self._etags[name] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=media_type)


POD = ROOT + "/pods/{namespace}/{name}"


def page_routes(
    answers: Answers, attempts: AttemptLookup, vendors: Vendors, audience: str, *, has_login: bool
) -> list[Route]:
    """Every page. ``audience`` is what a token has to be issued for, ``has_login`` whether the API asks for one."""
    shell = PageShell(answers)
    login = LoginPages(shell, audience, has_login)
    pending, pods, parts = PendingPages(shell), PodPages(shell, attempts), PodParts(shell)
    home, nodes, lists = HomePages(shell), NodePages(shell), ListPages(shell)
    reports, simulation = ReportPages(shell), SimulationPage(shell, attempts, vendors)
    return [
        Route(STATIC + "{name}", StaticFiles().file),
        Route(LOGIN, login.login),
        Route(LOGIN, login.log_in, methods=["POST"]),
        Route(LOGOUT, login.log_out, methods=["POST"]),
        Route(ROOT, home.home),
        Route(ROOT + "/", home.home),
        Route(ROOT + "/go", home.go),
        Route(POD, pods.pod),
        Route(POD + "/group", pods.group),
        Route(POD + "/node", pods.node),
        Route(POD + "/changes", parts.changes),
        Route(POD + "/scores", parts.scores),
        Route(POD + "/history", parts.history),
        Route(POD + "/records", parts.records),
        Route(POD + "/comparison", parts.comparison),
        Route(EMBED + "/pod/{namespace}/{name}", pods.pod),
        Route(ROOT + "/nodes", nodes.nodes),
        Route(ROOT + "/nodes/{node}", nodes.node),
        Route(ROOT + "/pending", pending.pending),
        Route(ROOT + "/pending/changes", pending.changes),
        Route(ROOT + "/pending.csv", pending.table),
        Route(ROOT + "/trends", reports.trends),
        Route(ROOT + "/trends.csv", reports.trends_table),
        Route(ROOT + "/report", reports.report),
        Route(ROOT + "/report/file", reports.report_file),
        Route(ROOT + "/simulate", simulation.form),
        Route(ROOT + "/simulate", simulation.simulate, methods=["POST"]),
        Route(ROOT + "/search", lists.search),
        Route(ROOT + "/findings", lists.findings),
        Route(ROOT + "/about", lists.about),
    ]
