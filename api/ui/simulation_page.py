"""Where a pod would go that somebody pastes: the form, and below it the answer of ``POST /api/v1/simulate``."""

from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from api.answers.attempt_lookup import AttemptLookup
from api.authority.access import get_access
from api.handlers.attempt_rights import find_readable_attempt_or_latest
from api.index.attempts.attempt_queries import PodName
from api.ui.answers import Answered
from api.ui.forms import form_of
from api.ui.page_shell import PageShell, cluster_of, named_pod
from engine.hami.vendors import Vendors
from page.heat_maps import draw_node_map
from page.pod_manifest import write_pod_manifest
from page.views.answered_nodes import group_answered_nodes

NAMES_PER_GROUP: Final = 60
"""The attempt was not made, so a group of its nodes has no address: the page has these names, and the API all."""


@dataclass(frozen=True, slots=True)
class SimulationPage:
    shell: PageShell
    attempts: AttemptLookup
    vendors: Vendors
    """Whose resources a manifest names."""

    async def form(self, request: Request) -> Response:
        """The form, and where it names a pod, the manifest and the answer of that one."""
        get_access(request).allow_every_caller()
        if not request.query_params.get("pod"):
            return self._show(request, "", None)
        return await self._answer(request, await self._manifest(request))

    async def simulate(self, request: Request) -> Response:
        """The answer, or what is wrong, below the pod as it was pasted. Raises ``BadRequestError``."""
        # Before the form is read: the route asks for the right to read such a pod.
        get_access(request).allow_every_caller()
        # Browsers send the lines of a text with CRLF.
        pod = (await form_of(request)).get("pod", "").replace("\r\n", "\n")
        return await self._answer(request, pod)

    async def _answer(self, request: Request, pod: str) -> Response:
        answered = await self.shell.answers.post(request, _path(request), pod.encode(), "application/yaml")
        return self._show(request, pod, answered)

    async def _manifest(self, request: Request) -> str:
        """What the pod asked for in its latest attempt, or in ``attempt``. Raises errors of its page."""
        cluster, (namespace, name) = cluster_of(request), named_pod(request)
        pod, attempt = PodName(cluster.name, namespace, name), request.query_params.get("attempt") or None
        stored = await find_readable_attempt_or_latest(self.attempts, request, cluster, pod, attempt)
        return write_pod_manifest(namespace, name, stored.read_summary(), self.vendors)

    def _show(self, request: Request, pod: str, answered: Answered | None) -> Response:
        view: dict[str, Any] = {"path": _path(request), "pod": pod, "names_per_group": NAMES_PER_GROUP}
        view |= {"problem": None, "found": None, "groups": [], "map": None}
        if answered and answered.is_right:
            view |= _found(answered.json())
        elif answered:
            view["problem"] = answered.json()
        return self.shell.show(request, "simulate", view, answered.status if answered else 200)


def _found(answer: dict[str, Any]) -> dict[str, Any]:
    log = answer["schedulerlog"]
    groups = group_answered_nodes(log["filter"]["nodes"], answer["node"]) if log else []
    return {"found": answer, "groups": groups, "map": draw_node_map(groups)}


def _path(request: Request) -> str:
    return f"{cluster_of(request).base}/simulate"
