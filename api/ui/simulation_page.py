"""Simulation of a pasted pod: the form, and below it the answer of ``POST /api/v1/simulate``."""

from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from api.answers.attempt_lookup import AttemptLookup
from api.authority.access import get_access
from api.handlers.attempt_rights import find_readable_attempt_or_latest
from api.index.attempts.attempt_queries import PodName
from api.ui.answers import Answered
from api.ui.page_session import read_form
from api.ui.page_shell import PageShell, parse_named_pod, parse_page_cluster
from engine.hami.vendors import Vendors
from page.heat_maps import draw_node_map
from page.pod_manifest import write_pod_manifest
from page.views.answered_nodes import group_answered_nodes

NAMES_PER_GROUP: Final = 60
"""Number of listed names of a group, whose nodes have no page because nobody made the attempt; the API lists all."""


@dataclass(frozen=True, slots=True)
class SimulationPage:
    shell: PageShell
    attempts: AttemptLookup
    vendors: Vendors
    """Vendors whose resources a manifest names."""

    async def show_form(self, request: Request) -> Response:
        """Show the form; if it names a pod, also that pod's manifest and the answer."""
        get_access(request).allow_every_caller()
        if not request.query_params.get("pod"):
            return self._show(request, "", None)
        return await self._answer(request, await self._write_manifest(request))

    async def simulate(self, request: Request) -> Response:
        """Simulate the pasted pod and show the answer or its problem below it. Raises ``BadRequestError``."""
        # Before the form is read, because the route checks the right to read such a pod.
        get_access(request).allow_every_caller()
        # Browsers send the lines of a text with CRLF.
        pod = (await read_form(request)).get("pod", "").replace("\r\n", "\n")
        return await self._answer(request, pod)

    async def _answer(self, request: Request, pod: str) -> Response:
        answered = await self.shell.answers.post(request, _build_path(request), pod.encode(), "application/yaml")
        return self._show(request, pod, answered)

    async def _write_manifest(self, request: Request) -> str:
        """Write the manifest of the pod in its latest attempt, or in ``attempt``. Raises errors of its page."""
        cluster, (namespace, name) = parse_page_cluster(request), parse_named_pod(request)
        pod, attempt = PodName(cluster.name, namespace, name), request.query_params.get("attempt") or None
        stored = await find_readable_attempt_or_latest(self.attempts, request, cluster, pod, attempt)
        return write_pod_manifest(namespace, name, stored.read_summary(), self.vendors)

    def _show(self, request: Request, pod: str, answered: Answered | None) -> Response:
        view: dict[str, Any] = {"path": _build_path(request), "pod": pod, "names_per_group": NAMES_PER_GROUP}
        view |= {"problem": None, "found": None, "groups": [], "map": None}
        if answered and answered.is_right:
            view |= _to_view(answered.parse_json())
        elif answered:
            view["problem"] = answered.parse_json()
        return self.shell.show(request, "simulate", view, answered.status if answered else 200)


def _to_view(answer: dict[str, Any]) -> dict[str, Any]:
    log = answer["schedulerlog"]
    groups = group_answered_nodes(log["filter"]["nodes"], answer["node"]) if log else []
    return {"found": answer, "groups": groups, "map": draw_node_map(groups)}


def _build_path(request: Request) -> str:
    return f"{parse_page_cluster(request).base}/simulate"
