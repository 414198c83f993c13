"""Routes of the pages and their static files. They are Starlette's own, which the OpenAPI document omits."""

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
    """Style sheet, scripts and icon, read once: a request names one of them, and never a path."""

    def __init__(self) -> None:
        self._files = {
            path.name: (path.read_bytes(), _TYPES[path.suffix])
            for path in STATIC_FOLDER.iterdir()
            if path.suffix in _TYPES
        }
        self._etags = {name: f'"{sha256(content).hexdigest()[:20]}"' for name, (content, _) in self._files.items()}

    async def send_file(self, request: Request) -> Response:
        get_access(request).allow_every_caller()
        name = request.path_params["name"]
        if name not in self._files:
            raise HTTPException(404)
        content, media_type = self._files[name]
        # Browsers ask again each time and get the content only after a change, so that no address needs a version.
        headers = {"ETag": self._etags[name], "Cache-Control": "no-cache"}
        if self._etags[name] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=media_type)


POD = ROOT + "/pods/{namespace}/{name}"


def list_page_routes(
    answers: Answers, attempts: AttemptLookup, vendors: Vendors, audience: str, *, has_login: bool
) -> list[Route]:
    """List every page. ``audience``: audience of tokens. ``has_login``: true if the API requires a token."""
    shell = PageShell(answers)
    login = LoginPages(shell, audience, has_login)
    pending, pods, parts = PendingPages(shell), PodPages(shell, attempts), PodParts(shell)
    home, nodes, lists = HomePages(shell), NodePages(shell), ListPages(shell)
    reports, simulation = ReportPages(shell), SimulationPage(shell, attempts, vendors)
    return [
        Route(STATIC + "{name}", StaticFiles().send_file),
        Route(LOGIN, login.show_login),
        Route(LOGIN, login.log_in, methods=["POST"]),
        Route(LOGOUT, login.log_out, methods=["POST"]),
        Route(ROOT, home.show_home),
        Route(ROOT + "/", home.show_home),
        Route(ROOT + "/go", home.go_to_pod),
        Route(ROOT + "/attempts/{attempt_id}", pods.go_to_attempt),
        Route(POD, pods.show_pod),
        Route(POD + "/group", pods.show_group),
        Route(POD + "/node", pods.show_node),
        Route(POD + "/changes", parts.show_changes),
        Route(POD + "/scores", parts.show_scores),
        Route(POD + "/history", parts.show_history),
        Route(POD + "/records", parts.show_records),
        Route(POD + "/comparison", parts.show_comparison),
        Route(EMBED + "/pod/{namespace}/{name}", pods.show_pod),
        Route(ROOT + "/nodes", nodes.show_nodes),
        Route(ROOT + "/nodes/{node}", nodes.show_node),
        Route(ROOT + "/pending", pending.show_pending),
        Route(ROOT + "/pending/changes", pending.show_changes),
        Route(ROOT + "/pending.csv", pending.write_table),
        Route(ROOT + "/trends", reports.show_trends),
        Route(ROOT + "/trends.csv", reports.write_trends_table),
        Route(ROOT + "/report", reports.show_report),
        Route(ROOT + "/report/file", reports.write_report_file),
        Route(ROOT + "/simulate", simulation.show_form),
        Route(ROOT + "/simulate", simulation.simulate, methods=["POST"]),
        Route(ROOT + "/search", lists.show_search),
        Route(ROOT + "/findings", lists.show_findings),
        Route(ROOT + "/alerts", lists.show_alerts),
        Route(ROOT + "/about", lists.show_about),
    ]
