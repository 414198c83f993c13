"""Pages of nodes: their list, sums over all of them, and one node with its devices now and over time."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from api.http.errors import BadRequestError
from api.http.param_types import parse_time
from api.http.query_params import MAX_ITEMS
from api.http.tables import to_csv
from api.ui.answers import Answered
from api.ui.page_shell import PageShell, select_parameters, to_part
from page.timelines import draw_device_lines, fit_begin
from page.views.fleet import GROUPINGS, add_nodes
from schemas.json_types import Json

RANGES: Final = ("6h", "24h", "7d", "30d")
MAX_PLACEMENTS: Final = "200"
MAX_PAGES: Final = 50
"""Pages of nodes that are added up: those of 10,000 nodes."""


async def fetch_fleet(shell: PageShell, request: Request) -> tuple[Answered, list[Json]]:
    """Fetch all nodes, or those of the page's pool, of ``MAX_PAGES`` pages at most: the last answer, and all nodes."""
    nodes, token = list[Json](), None
    pool = select_parameters(request, "pool")
    for _ in range(MAX_PAGES):
        answered = await shell.ask(request, "/nodes", limit=str(MAX_ITEMS), **pool, **{"continue": token})
        if not answered.is_right:
            return answered, []
        body = answered.parse_json()
        nodes += body["items"]
        if not (token := body.get("continue")):
            break
    return answered, nodes


@dataclass(frozen=True, slots=True)
class NodePages:
    shell: PageShell

    async def show_nodes(self, request: Request) -> Response:
        parameters = select_parameters(request, "pool", "limit", "continue")
        grouping = "pool" if request.query_params.get("by") == "pool" else "model"
        return await self.shell.show_list(request, "nodes", "/nodes", parameters, {"by": grouping})

    async def show_fleet(self, request: Request) -> Response:
        """Show the sums over all nodes, which takes a request for each two hundred of them."""
        answered, nodes = await fetch_fleet(self.shell, request)
        total = answered.parse_json().get("total", 0)
        view = {"part": to_part(answered), "items": nodes, "total": total}
        return self.shell.show(request, "fleet", view, answered.status)

    async def write_fleet_table(self, request: Request) -> Response:
        """Write the sums over all nodes by model, pool or namespace as CSV."""
        text = request.query_params.get("by") or "model"
        grouping = next((name for name in GROUPINGS if name == text), None)
        if grouping is None:
            raise BadRequestError(
                f"parameter by: {text[:40]!a} is not one of {', '.join(GROUPINGS)}", "Choose one of them."
            )
        answered, nodes = await fetch_fleet(self.shell, request)
        if not answered.is_right:
            return self.shell.show_problem(request, answered)
        sums = add_nodes(nodes, grouping)
        columns = list(sums[0]) if sums else [grouping]
        table = to_csv(columns, ([entry[name] for name in columns] for entry in sums))
        headers = {"Content-Disposition": f'attachment; filename="nodes-by-{grouping}.csv"'}
        return Response(table, headers=headers, media_type="text/csv; charset=utf-8")

    async def show_node(self, request: Request) -> Response:
        """Show state, devices, timeline and latest attempts at the time that the parameter ``at`` names."""
        name, moment = request.path_params["node"], request.query_params.get("at") or None
        state = await self.shell.ask(request, f"/nodes/{name}", at=moment)
        if not state.is_right:
            return self.shell.show_problem(request, state)
        range_, end = _parse_range(request), parse_time(state.parse_json()["at"], datetime.now(UTC))
        begin = end - (datetime.now(UTC) - parse_time(range_, datetime.now(UTC)))
        devices, timeline, refusals, attempts = await asyncio.gather(
            self.shell.ask(request, f"/nodes/{name}/occupancy", at=state.parse_json()["at"]),
            self.shell.ask(
                request, f"/nodes/{name}/occupancy", since=_to_text(begin), until=_to_text(end), limit=MAX_PLACEMENTS
            ),
            self.shell.ask(
                request,
                "/schedulerlogs",
                node=name,
                group_by="node",
                since=_to_text(begin),
                until=_to_text(end),
                limit="1",
            ),
            self.shell.ask(request, "/schedulerlogs", node=name, until=moment and _to_text(end), limit="8"),
        )
        judged = await self._read_verdicts(request, name, attempts)
        devices_part, timeline_part = to_part(devices), to_part(timeline)
        view: dict[str, Any] = {
            "name": name,
            "state": state.parse_json(),
            "ready": _find_ready(state.parse_json()),
            "devices": devices_part,
            "timeline": timeline_part,
            "range": range_,
            "begin": begin,
            "end": end,
            "lines": [],
            "refusals": to_part(refusals),
            "attempts": to_part(attempts),
            "judged": judged,
            "path": state.path,
        }
        if timeline_part["value"] and timeline_part["value"]["items"]:
            uuids = [device["uuid"] for device in devices_part["value"]["devices"]] if devices_part["value"] else []
            placements = timeline_part["value"]["items"]
            if not request.query_params.get("range"):
                view["begin"] = begin = fit_begin(placements, begin, end)
            view["lines"] = draw_device_lines(placements, uuids, begin, end)
        return self.shell.show(request, "node", view)

    async def _read_verdicts(self, request: Request, node: str, attempts: Answered) -> list[tuple[str, str]]:
        """Read how each attempt judged the node: status, and the reason word for word. Empty if unknown.

        For the chosen node of a failed bind, it is the reason of the bind.
        """
        if not attempts.is_right:
            return []
        items = attempts.parse_json()["items"]
        answers = await asyncio.gather(
            *(self.shell.ask(request, f"/attempts/{item['attempt_id']}", node=node) for item in items)
        )
        listed = zip(items, answers, strict=True)
        return [_parse_verdict(answer, is_chosen=item["chosen"] == node) for item, answer in listed]


def _parse_verdict(answered: Answered, *, is_chosen: bool) -> tuple[str, str]:
    nodes = answered.parse_json()["filter"]["nodes"] if answered.is_right else []
    if not nodes:
        return "", ""
    bind = answered.parse_json()["bind"]
    if is_chosen and bind["status"] == "failed":
        return nodes[0]["status"], bind["summary"]
    reasons = [container["reason"] for container in nodes[0]["containers"] if container.get("reason")]
    return nodes[0]["status"], "; ".join(reasons)


def _parse_range(request: Request) -> str:
    text = request.query_params.get("range") or "24h"
    if text not in RANGES:
        raise BadRequestError(f"parameter range: {text[:40]!a} is none of {', '.join(RANGES)}", "Choose one of them.")
    return text


def _to_text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _find_ready(state: dict[str, Any]) -> str | None:
    conditions = (state["status"] or {}).get("conditions", [])
    return next((condition["status"] for condition in conditions if condition["type"] == "Ready"), None)
