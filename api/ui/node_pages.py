"""The pages about nodes: all of them, and one with its devices now and over time."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from api.http.errors import BadRequestError
from api.http.param_types import parse_time
from api.ui.answers import Answered
from api.ui.page_shell import PageShell, filters_of, part_of
from page.timelines import draw_device_lines

RANGES: Final = ("6h", "24h", "7d", "30d")
MAX_PLACEMENTS: Final = "200"


@dataclass(frozen=True, slots=True)
class NodePages:
    shell: PageShell

    async def nodes(self, request: Request) -> Response:
        return await self.shell.list_page(request, "nodes", "/nodes", filters_of(request, "limit", "continue"))

    async def node(self, request: Request) -> Response:
        """State, devices, timeline and latest attempts, as they were at the time ``at``."""
        name, at = request.path_params["node"], request.query_params.get("at") or None
        state = await self.shell.ask(request, f"/nodes/{name}", at=at)
        if not state.is_right:
            return self.shell.show_problem(request, state)
        range_, end = _range(request), parse_time(state.json()["at"], datetime.now(UTC))
        begin = end - (datetime.now(UTC) - parse_time(range_, datetime.now(UTC)))
        devices, timeline, refusals, attempts = await asyncio.gather(
            self.shell.ask(request, f"/nodes/{name}/occupancy", at=state.json()["at"]),
            self.shell.ask(
                request, f"/nodes/{name}/occupancy", since=_text(begin), until=_text(end), limit=MAX_PLACEMENTS
            ),
            self.shell.ask(
                request, "/schedulerlogs", node=name, group_by="node", since=_text(begin), until=_text(end), limit="1"
            ),
            self.shell.ask(request, "/schedulerlogs", node=name, until=at and _text(end), limit="8"),
        )
        judged = await self._judged(request, name, attempts)
        shown, held = part_of(devices), part_of(timeline)
        view: dict[str, Any] = {
            "name": name,
            "state": state.json(),
            "ready": _ready(state.json()),
            "devices": shown,
            "timeline": held,
            "range": range_,
            "begin": begin,
            "end": end,
            "lines": [],
            "refusals": part_of(refusals),
            "attempts": part_of(attempts),
            "judged": judged,
            "path": state.path,
        }
        if held["value"] and held["value"]["items"]:
            known = [device["uuid"] for device in shown["value"]["devices"]] if shown["value"] else []
            view["lines"] = draw_device_lines(held["value"]["items"], known, begin, end)
        return self.shell.show(request, "node", view)

    async def _judged(self, request: Request, node: str, attempts: Answered) -> list[tuple[str, str]]:
        """How each attempt judged the node: status, and the reason word for word. Empty where not known.

        Of the chosen node whose bind failed, the reason is that of the bind.
        """
        if not attempts.is_right:
            return []
        items = attempts.json()["items"]
        answers = await asyncio.gather(
            *(self.shell.ask(request, f"/attempts/{item['attempt_id']}", node=node) for item in items)
        )
        listed = zip(items, answers, strict=True)
        return [_verdict(answer, is_chosen=item["chosen"] == node) for item, answer in listed]


def _verdict(answered: Answered, *, is_chosen: bool) -> tuple[str, str]:
    nodes = answered.json()["filter"]["nodes"] if answered.is_right else []
    if not nodes:
        return "", ""
    bind = answered.json()["bind"]
    if is_chosen and bind["status"] == "failed":
        return nodes[0]["status"], bind["summary"]
    reasons = [container["reason"] for container in nodes[0]["containers"] if container.get("reason")]
    return nodes[0]["status"], "; ".join(reasons)


def _range(request: Request) -> str:
    asked = request.query_params.get("range") or "24h"
    if asked not in RANGES:
        raise BadRequestError(f"parameter range: {asked[:40]!a} is none of {', '.join(RANGES)}", "Choose one of them.")
    return asked


def _text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _ready(state: dict[str, Any]) -> str | None:
    conditions = (state["status"] or {}).get("conditions", [])
    return next((condition["status"] for condition in conditions if condition["type"] == "Ready"), None)
