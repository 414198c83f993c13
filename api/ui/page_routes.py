"""Routes of the pages and their static files. They are Starlette's own, which the OpenAPI document omits."""

import difflib
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api.answers.attempt_lookup import AttemptLookup
from api.authority.access import get_access
from api.http.errors import BadRequestError
from api.ui.answers import Answers
from api.ui.cookies import EMBED, LOGIN, LOGOUT, STATIC
from api.ui.home_pages import HomePages, WorkloadPages
from api.ui.list_pages import FINDING_FILTERS, RANGE, SEARCHED, ListPages
from api.ui.login_pages import LoginPages
from api.ui.node_pages import NodePages
from api.ui.page_shell import PageShell
from api.ui.pending_pages import WAITING_PARAMETERS, PendingPages
from api.ui.plan_pages import PlanPages
from api.ui.pod_pages import PodPages, PodParts
from api.ui.report_pages import PARAMETERS as TREND_PARAMETERS
from api.ui.report_pages import ReportPages
from api.ui.simulation_page import SimulationPage
from engine.hami.vendors import Vendors
from page.page_context import REPEATED, ROOT
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
Show = Callable[[Request], Awaitable[Response]]


def list_page_routes(
    answers: Answers, attempts: AttemptLookup, vendors: Vendors, audience: str, *, has_login: bool
) -> list[Route]:
    """List every page. ``audience``: audience of tokens. ``has_login``: true if the API requires a token."""
    shell = PageShell(answers)
    login = LoginPages(shell, audience, has_login)
    pending, pods, parts = PendingPages(shell), PodPages(shell, attempts), PodParts(shell, attempts)
    home, nodes, lists = HomePages(shell), NodePages(shell), ListPages(shell)
    plans = PlanPages(shell, attempts, vendors)
    reports, simulation = ReportPages(shell), SimulationPage(shell, attempts, vendors)
    return [
        Route(STATIC + "{name}", StaticFiles().send_file),
        Route(LOGIN, login.show_login),
        Route(LOGIN, login.log_in, methods=["POST"]),
        Route(LOGOUT, login.log_out, methods=["POST"]),
        _build_route(ROOT, home.show_home, "namespace"),
        _build_route(ROOT + "/", home.show_home, "namespace"),
        _build_route(ROOT + "/go", home.go, "q", "namespace", "pod"),
        _build_route(ROOT + "/find", home.find, "q", "limit"),
        _build_route(ROOT + "/free", home.show_free),
        _build_route(ROOT + "/workloads/{namespace}/{word}/{name}", WorkloadPages(shell).show_workload),
        _build_route(ROOT + "/attempts/{attempt_id}", pods.go_to_attempt),
        _build_route(POD, pods.show_pod, "attempt", "at"),
        _build_route(POD + "/group", pods.show_group, "attempt", "at", "group", "from"),
        _build_route(POD + "/node", pods.show_node, "attempt", "at", "node"),
        _build_route(POD + "/changes", parts.show_changes, "attempt", "as_of"),
        _build_route(POD + "/scores", parts.show_scores),
        _build_route(POD + "/history", parts.show_history, "limit", "continue"),
        _build_route(POD + "/records", parts.show_records),
        _build_route(POD + "/comparison", parts.show_comparison, "attempt", "with"),
        _build_route(EMBED + "/pod/{namespace}/{name}", pods.show_pod, "attempt", "at"),
        _build_route(ROOT + "/nodes", nodes.show_nodes, "pool", "limit", "continue", "by"),
        _build_route(ROOT + "/fleet", nodes.show_fleet, "pool"),
        _build_route(ROOT + "/fleet.csv", nodes.write_fleet_table, "pool", "by"),
        _build_route(ROOT + "/nodes/{node}", nodes.show_node, "at", "range"),
        _build_route(ROOT + "/nodes/{node}/drain", plans.show_drain),
        _build_route(POD + "/moves", plans.show_moves),
        _build_route(ROOT + "/purchase", plans.show_purchase),
        _build_route(ROOT + "/pending", pending.show_pending, *WAITING_PARAMETERS),
        _build_route(ROOT + "/pending/changes", pending.show_changes, "namespace", "since"),
        _build_route(ROOT + "/pending.csv", pending.write_table, *WAITING_PARAMETERS),
        _build_route(ROOT + "/trends", reports.show_trends, *TREND_PARAMETERS),
        _build_route(ROOT + "/trends.csv", reports.write_trends_table, *TREND_PARAMETERS),
        _build_route(ROOT + "/report", reports.show_report, "namespace", "since", "until"),
        _build_route(ROOT + "/report/file", reports.write_report_file, "namespace", "since", "until", "format"),
        _build_route(ROOT + "/simulate", simulation.show_form, "namespace", "pod", "attempt"),
        Route(ROOT + "/simulate", simulation.simulate, methods=["POST"]),
        _build_route(ROOT + "/search", lists.show_search, *SEARCHED, *RANGE),
        _build_route(ROOT + "/findings", lists.show_findings, *FINDING_FILTERS, *RANGE),
        _build_route(ROOT + "/alerts", lists.show_alerts, "namespace", "state", "rule"),
        _build_route(ROOT + "/about", lists.show_about),
    ]


def _build_route(path: str, show: Show, *names: str) -> Route:
    """Build the route of a page that takes parameters of these names, and refuses others as the API does."""
    parameters = {*names, *REPEATED}

    async def show_strictly(request: Request) -> Response:
        for name in request.query_params:
            if name not in parameters:
                near = difflib.get_close_matches(name, parameters, 1)
                next_step = f"Did you mean {near[0]}?" if near else f"It takes {', '.join(sorted(parameters))}."
                raise BadRequestError(f"parameter {name[:60]!a}: this page does not have it", next_step)
        return await show(request)

    return Route(path, show_strictly)
