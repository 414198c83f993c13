"""What the handlers of all pages share: the context, rendering, and parts that may be missing."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from api.http.cluster import CLUSTER, Cluster
from api.http.errors import ApiError, BadRequestError, UnavailableError
from api.http.param_types import find_namespace_problem, parse_time
from api.ui.answers import Answered, Answers
from api.ui.cookies import EMBED, own_origin, token_in_cookie
from page.page_context import PageContext
from page.render import render, render_error
from page.texts import choose_language
from runtime.settings.object_names import subdomain_problem
from schemas.codec.records import format_rfc3339


def context_of(request: Request) -> PageContext:
    """What the page of this request knows. Without a rendered page it raises nothing: errors are shown with it."""
    scheme = request.url.scheme
    query = [(name[:100], value[:2000]) for name, value in request.query_params.multi_items()][:50]
    asked = request.query_params.get("lang")
    return PageContext(
        language=choose_language(asked, request.headers.get("accept-language", "")),
        path=request.url.path,
        query=query,
        now=datetime.now(UTC),
        cluster=request.query_params.get("cluster") or str(request.app.state.default_cluster),
        origin=own_origin(request.headers, scheme),
        can_log_out=token_in_cookie(request.headers, scheme) is not None,
        is_embedded=request.url.path.startswith(EMBED + "/"),
    )


MENDED: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN)
"""What other filters may mend: a wrong one, or a namespace of which the caller may list the pods."""


@dataclass(frozen=True, slots=True)
class PageShell:
    answers: Answers

    async def ask(self, request: Request, path: str, **parameters: str | None) -> Answered:
        """The answer about the page's cluster; ``path`` is what stands behind ``/api/v1``."""
        return await self.answers.get(request, cluster_of(request).base + path, parameters)

    def show(self, request: Request, template: str, view: Mapping[str, Any], status: int = 200) -> Response:
        return HTMLResponse(render(template, context_of(request), view), status)

    async def list_page(
        self, request: Request, template: str, path: str, parameters: Mapping[str, str | None]
    ) -> Response:
        """A page of one list. What is wrong with the filters, or not allowed without, stands beside them."""
        answered = await self.ask(request, path, **parameters)
        if not answered.is_right and answered.status not in MENDED:
            return self.show_problem(request, answered)
        body = answered.json()
        view = {
            "path": answered.path,
            "problem": None if answered.is_right else body,
            "items": body.get("items", []),
            "total": body.get("total", 0),
            "token": body.get("continue"),
            "moment": _moment(request) if answered.is_right else {},
        }
        return self.show(request, template, view, answered.status)

    def show_problem(self, request: Request, answered: Answered) -> Response:
        """The page for a route's refusal, with its status."""
        body = answered.json()
        page = render_error(context_of(request), answered.status, body["error"], body["next"], body.get("code", ""))
        return HTMLResponse(page, answered.status)


def _moment(request: Request) -> dict[str, str]:
    """What leads to the first page of the list as it is now: its range in times that stay what they are."""
    now, query = datetime.now(UTC), request.query_params
    asked = {"since": query.get("since"), "until": query.get("until") or format_rfc3339(now)}
    return {"continue": ""} | {name: format_rfc3339(parse_time(text, now)) for name, text in asked.items() if text}


def cluster_of(request: Request) -> Cluster:
    """The cluster that the page is about. Raises ``BadRequestError``."""
    name = request.query_params.get("cluster")
    if not name:
        return Cluster(str(request.app.state.default_cluster))
    if subdomain_problem(name) or len(name) > 63:
        raise BadRequestError(f"parameter cluster: {name[:80]!a} is not the name of a cluster", "About lists them.")
    return Cluster(name, CLUSTER.format(cluster=name))


def named_pod(request: Request) -> tuple[str, str]:
    """Namespace and name of the pod that a form names. Raises ``BadRequestError``."""
    namespace = request.query_params.get("namespace", "").strip() or "default"
    pod = request.query_params.get("pod", "").strip()
    for parameter, problem in (("namespace", find_namespace_problem(namespace)), ("pod", subdomain_problem(pod))):
        if problem:
            raise BadRequestError(f"{parameter} {problem}", "Write the names as kubectl get pods shows them.")
    return namespace, pod


def refusal_of(answered: Answered) -> ApiError:
    """The error that a route has answered, to be raised again."""
    body, kinds = answered.json(), {subclass.status: subclass for subclass in ApiError.__subclasses__()}
    return kinds.get(HTTPStatus(answered.status), UnavailableError)(body["error"], body["next"])


def part_of(answered: Answered) -> dict[str, Any]:
    """A part of a page: ``value`` is the answer, or ``problem`` says why there is none."""
    if answered.is_right:
        return {"value": answered.json(), "problem": None, "path": answered.path}
    return {"value": None, "problem": answered.json(), "path": answered.path}


def filters_of(request: Request, *names: str) -> dict[str, str | None]:
    """The parameters of the page that are given on to the API under the same name."""
    return {name: request.query_params.get(name) or None for name in names}
