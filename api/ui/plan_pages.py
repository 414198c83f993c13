"""Plans as pages of their own, because each takes longer than the page that leads to it: nothing is carried out."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from api.answers.attempt_lookup import AttemptLookup
from api.handlers.attempt_rights import find_readable_attempt_or_latest
from api.index.attempts.attempt_queries import PodName
from api.ui.answers import Answered
from api.ui.page_shell import PageShell, parse_page_cluster, to_part
from engine.hami.vendors import Vendors
from page.pod_manifest import write_pod_manifest


@dataclass(frozen=True, slots=True)
class PlanPages:
    shell: PageShell
    attempts: AttemptLookup
    vendors: Vendors
    """Vendors whose resources a manifest names."""

    async def show_drain(self, request: Request) -> Response:
        """Show which pods a node would lose, and where each would go."""
        node = request.path_params["node"]
        return self._show(request, "drain", await self.shell.ask(request, f"/nodes/{node}/drain"), node)

    async def show_purchase(self, request: Request) -> Response:
        """Show the nodes with which waiting pods would start."""
        return self._show(request, "purchase", await self.shell.ask(request, "/purchase"), "")

    async def show_moves(self, request: Request) -> Response:
        """Show the fewest pods to move so that a waiting pod starts. Raises the errors of the pod's page."""
        cluster, (namespace, name) = parse_page_cluster(request), _get_pod(request)
        pod = PodName(cluster.name, namespace, name)
        stored = await find_readable_attempt_or_latest(self.attempts, request, cluster, pod, None)
        manifest = write_pod_manifest(namespace, name, stored.read_summary(), self.vendors)
        path = f"{cluster.base}/defragmentation"
        answered = await self.shell.answers.post(request, path, manifest.encode(), "application/yaml")
        return self._show(request, "moves", answered, f"{namespace}/{name}")

    def _show(self, request: Request, plan: str, answered: Answered, subject: str) -> Response:
        view = {"plan": plan, "subject": subject, "part": to_part(answered)}
        return self.shell.show(request, "plan", view, answered.status)


def _get_pod(request: Request) -> tuple[str, str]:
    return request.path_params["namespace"], request.path_params["name"]
