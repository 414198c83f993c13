"""The page of a pod: why it waits or runs where it does, and pages of its slower parts.

The first answer is quick, whatever the number of nodes; the page fetches parts that take longer.
"""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from api.answers.attempt_lookup import AttemptLookup, StoredAttempt
from api.authority.access import get_access
from api.handlers.attempt_rights import find_readable_attempt, find_readable_attempt_or_latest
from api.handlers.redaction import redact_attempt
from api.http.errors import BadRequestError, NotFoundError
from api.http.param_types import parse_time
from api.index.attempts.attempt_queries import PodName
from api.index.reading.client import IndexDownError
from api.ui.page_shell import PageShell, build_context, parse_page_cluster, select_parameters, to_part, to_refusal
from engine.summaries.answer import build_detail, describe_bind, describe_filter
from page.heat_maps import draw_device_map, draw_node_map
from page.patches import write_patch
from page.views.node_groups import NodeGroup, list_codes
from page.views.summarized_nodes import group_summarized_nodes
from runtime.settings.names import find_subdomain_problem
from schemas.codec.records import format_rfc3339
from schemas.events import AttemptSummarized

MAX_NODES_IN_COLUMN: Final = 1_000
"""Number of nodes up to which their map is next to the answer; a map of more needs the width of the page."""
DRAWN_NODES: Final = 40
"""Number of nodes up to which all are drawn device by device; of more, one group at a time."""
NAMES_PER_PAGE: Final = 400


@dataclass(frozen=True, slots=True)
class PodPages:
    shell: PageShell
    attempts: AttemptLookup

    async def go_to_attempt(self, request: Request) -> Response:
        """Go to the page of the attempt's pod, as of that attempt. Raises ``ForbiddenError``, ``NotFoundError``."""
        attempt_id = request.path_params["attempt_id"]
        attempt = await find_readable_attempt(self.attempts, request, parse_page_cluster(request), attempt_id)
        pod = attempt.read_summary().pod
        return RedirectResponse(build_context(request).link_pod(pod.namespace, pod.name, attempt=attempt_id), 303)

    async def show_pod(self, request: Request) -> Response:
        """Show the pod now, or its attempt that the parameter ``attempt`` names, or its latest until ``at``."""
        stored = await self._find_attempt(request)
        requested = request.query_params.get("attempt") or request.query_params.get("at")
        attempt = await self._redact(request, stored) if stored else None
        # The constraints that exclude the pod are shown with the suggestions, which the page fetches later.
        diagnosis = await self.shell.ask(
            request,
            f"{_build_path(request)}/diagnosis",
            attempt=attempt.attempt_id if attempt and requested else None,
            exclusion="false",
        )
        if diagnosis.status == HTTPStatus.BAD_REQUEST or (not diagnosis.is_right and attempt is None):
            return self.shell.show_problem(request, diagnosis)
        view: dict[str, Any] = {
            **_name_pod(request),
            "diagnosis": to_part(diagnosis),
            "attempt": None,
            "has_columns": attempt is not None and attempt.offered_nodes <= MAX_NODES_IN_COLUMN,
            "is_past": bool(requested),
            "version": f"{attempt.attempt_id}-{attempt.version}" if attempt else "",
            "path": diagnosis.path,
        }
        if attempt:
            view |= await self._describe_nodes(request, attempt)
        return self.shell.show(request, "pod", view)

    async def show_group(self, request: Request) -> Response:
        """Show the nodes of one group, by name, with the devices of the first ones."""
        attempt = await self._redact(request, await self._require_attempt(request))
        groups = group_summarized_nodes(attempt)
        group = next((candidate for candidate in groups if candidate.key == request.query_params.get("group")), None)
        if group is None:
            raise NotFoundError("the attempt has no such group of nodes", "Open it from the page of the pod.")
        begin = _parse_start(request, len(group.nodes))
        names = group.nodes[begin : begin + NAMES_PER_PAGE]
        view = {
            **_name_pod(request),
            "attempt": build_detail(attempt),
            "group": group,
            "names": names,
            "begin": begin,
            "next": begin + NAMES_PER_PAGE if begin + NAMES_PER_PAGE < len(group.nodes) else None,
            **await self._read_devices(request, attempt, groups, names[:DRAWN_NODES]),
        }
        return self.shell.show(request, "pod_group", view)

    async def show_node(self, request: Request) -> Response:
        """Show the devices of one node, as the attempt judged them."""
        attempt = await self._redact(request, await self._require_attempt(request))
        node = request.query_params.get("node", "")
        groups = group_summarized_nodes(attempt)
        group = next((candidate for candidate in groups if node in candidate.nodes), None)
        if group is None:
            raise NotFoundError(f"attempt {attempt.attempt_id} did not judge node {node[:80]}", "Open the pod's page.")
        view = {
            **_name_pod(request),
            "attempt": build_detail(attempt),
            "group": group,
            "names": [node],
            "begin": 0,
            "next": None,
        }
        return self.shell.show(request, "pod_group", view | await self._read_devices(request, attempt, groups, [node]))

    async def _describe_nodes(self, request: Request, attempt: AttemptSummarized) -> dict[str, Any]:
        groups = group_summarized_nodes(attempt)
        view = {
            "attempt": build_detail(attempt),
            "filter": describe_filter(attempt),
            "bind": describe_bind(attempt),
            "groups": groups,
            "map": None,
            "codes": list_codes(groups),
            "devices": None,
            "devices_note": "",
            "devices_problem": None,
        }
        if attempt.nodes and len(attempt.nodes) <= DRAWN_NODES:
            view |= await self._read_devices(request, attempt, groups, attempt.nodes)
        if not view["devices"]:
            view["map"] = draw_node_map(groups)
        return view

    async def _read_devices(
        self, request: Request, attempt: AttemptSummarized, groups: list[NodeGroup], nodes: list[str]
    ) -> dict[str, Any]:
        # A record may have invalid names, which the API refuses.
        names = ",".join(node for node in nodes if not find_subdomain_problem(node))
        if not names:
            return {"devices": None, "devices_note": "", "devices_problem": None}
        answered = await self.shell.ask(
            request, f"/attempts/{attempt.attempt_id}", detail="full", node=names, limit="1"
        )
        if not answered.is_right:
            return {"devices": None, "devices_note": "", "devices_problem": answered.parse_json()}
        body = answered.parse_json()
        return {
            "devices": draw_device_map(body["devices"] or [], list_codes(groups), attempt.chosen),
            "devices_note": body["devices_note"],
            "devices_problem": None,
        }

    async def _require_attempt(self, request: Request) -> StoredAttempt:
        if stored := await self._find_attempt(request):
            return stored
        raise NotFoundError("no attempt of this pod is recorded", "Open the pod's page.")

    async def _find_attempt(self, request: Request) -> StoredAttempt | None:
        """Find the requested attempt; None without one, or if none can be read. Raises ``ForbiddenError``,
        ``NotFoundError``.
        """
        cluster, query = parse_page_cluster(request), request.query_params
        pod = PodName(cluster.name, request.path_params["namespace"], request.path_params["name"])
        attempt_id = query.get("attempt") or None
        if query.get("at") and not attempt_id:
            attempt_id = await self._find_latest_until(request, pod, query["at"])
        try:
            return await find_readable_attempt_or_latest(self.attempts, request, cluster, pod, attempt_id)
        except NotFoundError:
            if attempt_id:
                raise
            return None
        except IndexDownError:
            # The diagnosis names the facts that it could not read.
            return None

    async def _find_latest_until(self, request: Request, pod: PodName, text: str) -> str:
        try:
            moment = parse_time(text, datetime.now(UTC))
        except (ValueError, OverflowError) as error:
            raise BadRequestError(f"parameter at: {error}", "Give a time (RFC 3339), or 15m, 2h, 7d ago.") from None
        until = format_rfc3339(moment + timedelta(microseconds=1))
        answered = await self.shell.ask(
            request, "/schedulerlogs", namespace=pod.namespace, pod=pod.name, until=until, limit="1"
        )
        if not answered.is_right:
            raise to_refusal(answered)
        if not (items := answered.parse_json()["items"]):
            raise NotFoundError(f"no attempt of this pod had begun at {until}", "Choose a later time.")
        return str(items[0]["attempt_id"])

    async def _redact(self, request: Request, stored: StoredAttempt) -> AttemptSummarized:
        return await redact_attempt(get_access(request), parse_page_cluster(request), stored.read_summary())


def _build_path(request: Request) -> str:
    return "/namespaces/{namespace}/pods/{name}".format(**request.path_params)


def _name_pod(request: Request) -> dict[str, str]:
    return {"namespace": request.path_params["namespace"], "name": request.path_params["name"]}


def _parse_start(request: Request, count: int) -> int:
    text = request.query_params.get("from", "0")
    if not text.isascii() or not text.isdigit() or int(text[:9]) >= max(count, 1):
        raise BadRequestError(f"parameter from: {text[:40]!a} is not a place in the group", "Leave it out.")
    return int(text[:9])


@dataclass(frozen=True, slots=True)
class PodParts:
    shell: PageShell
    attempts: AttemptLookup

    async def show_changes(self, request: Request) -> Response:
        """Show the suggestions, each with the command or the manifest that carries it out."""
        answered = await self.shell.ask(
            request, f"{_build_path(request)}/suggestions", **select_parameters(request, "attempt", "as_of")
        )
        items = answered.parse_json()["items"] if answered.is_right else []
        owner = await self._find_workload(request) if items else ""
        named = _name_pod(request)
        patches = [write_patch(item["edits"], named["namespace"], named["name"], owner) for item in items]
        view = named | {"part": to_part(answered), "path": answered.path, "patches": patches}
        return self.shell.show(request, "pod_changes", view, answered.status)

    async def _find_workload(self, request: Request) -> str:
        """Find the workload of the pod, such as ``Job/train``; empty if its latest attempt names none."""
        cluster = parse_page_cluster(request)
        pod = PodName(cluster.name, request.path_params["namespace"], request.path_params["name"])
        try:
            attempt = await find_readable_attempt_or_latest(self.attempts, request, cluster, pod, None)
        except (NotFoundError, IndexDownError):
            return ""
        description = attempt.read_summary().description
        return description.workload if description else ""

    async def show_scores(self, request: Request) -> Response:
        """Show the scores."""
        return await self._show_part(request, "pod_scores", "scores")

    async def show_history(self, request: Request) -> Response:
        """Show the pod's episodes, latest first."""
        return await self._show_part(request, "pod_history", "schedulerlog/history", "limit", "continue")

    async def show_records(self, request: Request) -> Response:
        """Show findings, observations and placements of the pod."""
        path = _build_path(request)
        names = ("findings", "observations", "occupancy")
        answers = await asyncio.gather(*(self.shell.ask(request, f"{path}/{name}", limit="20") for name in names))
        if not any(answer.is_right for answer in answers):
            return self.shell.show_problem(request, answers[0])
        view = {name: to_part(answered) for name, answered in zip(names, answers, strict=True)}
        return self.shell.show(request, "pod_records", _name_pod(request) | view | {"path": answers[0].path})

    async def show_comparison(self, request: Request) -> Response:
        """Show two of its attempts side by side."""
        first = request.query_params.get("attempt", "")
        answered = await self.shell.ask(
            request, f"/attempts/{first or '-'}/comparison", **{"with": request.query_params.get("with")}
        )
        if not answered.is_right:
            return self.shell.show_problem(request, answered)
        view = _name_pod(request) | {"comparison": answered.parse_json(), "path": answered.path}
        return self.shell.show(request, "pod_comparison", view)

    async def _show_part(self, request: Request, template: str, name: str, *parameters: str) -> Response:
        answered = await self.shell.ask(
            request, f"{_build_path(request)}/{name}", **select_parameters(request, *parameters)
        )
        # Also shown inside of the pod's page: with the words of the refusal, not as another page.
        view = _name_pod(request) | {"part": to_part(answered), "path": answered.path}
        return self.shell.show(request, template, view, answered.status)
