"""Context, rendering and missing parts, for the handlers of all pages."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from api.http.cluster import CLUSTER, Cluster
from api.http.errors import ApiError, BadRequestError, UnavailableError
from api.http.param_types import find_namespace_problem, parse_time
from api.ui.answers import Answered, Answers
from api.ui.cookies import EMBED, derive_own_origin, parse_token_cookie
from page.page_context import PageContext
from page.render import render, render_error
from page.texts import choose_language
from runtime.settings.names import find_subdomain_problem
from schemas.codec.records import format_rfc3339


def build_context(request: Request) -> PageContext:
    """Build the context of the request's page. It raises no error, because errors are rendered with it."""
    scheme = request.url.scheme
    query = [(name[:100], value[:2000]) for name, value in request.query_params.multi_items()][:50]
    language = request.query_params.get("lang")
    default_cluster = str(request.app.state.default_cluster)
    cluster = request.query_params.get("cluster") or default_cluster
    return PageContext(
        language=choose_language(language, request.headers.get("accept-language", "")),
        path=request.url.path,
        query=query,
        now=datetime.now(UTC),
        cluster=cluster,
        origin=derive_own_origin(request.headers, scheme),
        can_log_out=parse_token_cookie(request.headers, scheme) is not None,
        is_embedded=request.url.path.startswith(EMBED + "/"),
        reads_objects=cluster == default_cluster and request.app.state.objects.is_connected,
    )


MENDED: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN)
"""Statuses that other filters may mend: a wrong filter, or one without a namespace that the caller may list."""


@dataclass(frozen=True, slots=True)
class PageShell:
    answers: Answers

    async def ask(self, request: Request, path: str, **parameters: str | None) -> Answered:
        """Ask for the answer about the page's cluster; ``path`` is the part after ``/api/v1``."""
        return await self.answers.get(request, parse_page_cluster(request).base + path, parameters)

    def show(self, request: Request, template: str, view: Mapping[str, Any], status: int = 200) -> Response:
        return HTMLResponse(render(template, build_context(request), view), status)

    async def show_list(
        self,
        request: Request,
        template: str,
        path: str,
        parameters: Mapping[str, str | None],
        choices: Mapping[str, str] = MappingProxyType({}),
    ) -> Response:
        """Show one page of a list, and a problem with its filters next to them.

        choices: parameters of the page that the API does not take.
        """
        answered = await self.ask(request, path, **parameters)
        if not answered.is_right and answered.status not in MENDED:
            return self.show_problem(request, answered)
        body = answered.parse_json()
        view = {
            "path": answered.path,
            "problem": None if answered.is_right else body,
            "items": body.get("items", []),
            "total": body.get("total", 0),
            "token": body.get("continue"),
            "moment": _fix_range(request) if answered.is_right else {},
            **choices,
        }
        return self.show(request, template, view, answered.status)

    def show_problem(self, request: Request, answered: Answered) -> Response:
        """Show the page for a route's refusal, with its status."""
        body = answered.parse_json()
        page = render_error(build_context(request), answered.status, body["error"], body["next"], body.get("code", ""))
        return HTMLResponse(page, answered.status)


def _fix_range(request: Request) -> dict[str, str]:
    """Fix the range of the list to absolute times, for a link to its present first page."""
    now, query = datetime.now(UTC), request.query_params
    times = {"since": query.get("since"), "until": query.get("until") or format_rfc3339(now)}
    return {"continue": ""} | {name: format_rfc3339(parse_time(text, now)) for name, text in times.items() if text}


def parse_page_cluster(request: Request) -> Cluster:
    """Parse the cluster that the page is about. Raises ``BadRequestError``."""
    name = request.query_params.get("cluster")
    if not name:
        return Cluster(str(request.app.state.default_cluster))
    if find_subdomain_problem(name) or len(name) > 63:
        raise BadRequestError(f"parameter cluster: {name[:80]!a} is not the name of a cluster", "About lists them.")
    return Cluster(name, CLUSTER.format(cluster=name))


def parse_named_pod(request: Request) -> tuple[str, str]:
    """Parse namespace and name of the pod that a form names. Raises ``BadRequestError``."""
    namespace = request.query_params.get("namespace", "").strip() or "default"
    pod = request.query_params.get("pod", "").strip()
    for parameter, problem in (("namespace", find_namespace_problem(namespace)), ("pod", find_subdomain_problem(pod))):
        if problem:
            raise BadRequestError(f"{parameter} {problem}", "Write the names as kubectl get pods shows them.")
    return namespace, pod


def to_refusal(answered: Answered) -> ApiError:
    """Convert the error of a route's answer, to raise it again."""
    body, kinds = answered.parse_json(), {subclass.status: subclass for subclass in ApiError.__subclasses__()}
    return kinds.get(HTTPStatus(answered.status), UnavailableError)(body["error"], body["next"])


def to_part(answered: Answered) -> dict[str, Any]:
    """Convert an answer into a part of a page: ``value`` is the answer, or ``problem`` says why there is none."""
    if answered.is_right:
        return {"value": answered.parse_json(), "problem": None, "path": answered.path}
    return {"value": None, "problem": answered.parse_json(), "path": answered.path}


def select_parameters(request: Request, *names: str) -> dict[str, str | None]:
    """Select the parameters of the page that it passes to the API under the same name."""
    return {name: request.query_params.get(name) or None for name in names}
