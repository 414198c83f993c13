"""Nodes of the API's answer (``filter.nodes``), grouped by identical refusal."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from engine.hami.reason_codes import ReasonCode
from page.views.node_groups import (
    FITS,
    PICKED,
    UNREGISTERED,
    NodeGroup,
    SharedRefusal,
    arrange_groups,
    build_node_group,
)

_COUNTED: Final = re.compile(r"(\d{1,9})/(\d{1,9}) (\S{1,200})", re.ASCII)


def group_answered_nodes(nodes: Sequence[Mapping[str, Any]], chosen: str | None) -> list[NodeGroup]:
    """Group every node of the answer, in the order of ``arrange_groups``."""
    alike: dict[tuple[str, str, str], list[tuple[str, float]]] = {}
    for node in nodes:
        alike.setdefault(_parse_judgement(node, chosen), []).append((node["name"], node["score"]))
    return arrange_groups(
        [
            build_node_group(" ".join(key), key[0], key[1], _parse_refusal(key[2]) if key[2] else None, scored)
            for key, scored in alike.items()
        ]
    )


def _parse_judgement(node: Mapping[str, Any], chosen: str | None) -> tuple[str, str, str]:
    """Return verdict, refused container and reason."""
    if node["status"] == "passed":
        return PICKED if node["name"] == chosen else FITS, "", ""
    failed: Mapping[str, str] = next(
        (container for container in node["containers"] if container["status"] != "passed"), {}
    )
    reason = failed.get("reason") or ""
    if reason == ReasonCode.NODE_UNREGISTERED:
        return UNREGISTERED, "", reason
    return "refused", failed.get("name", ""), reason


def _parse_refusal(reason: str) -> SharedRefusal:
    """Parse a reason; text that is no list of counts becomes words, so nothing is raised."""
    matches = [_COUNTED.fullmatch(part) for part in reason.split(", ")]
    counted = [match for match in matches if match]
    if len(counted) < len(matches) or len({match[2] for match in counted}) > 1:
        return SharedRefusal({}, words=reason)
    return SharedRefusal({match[3]: int(match[1]) for match in counted}, int(counted[0][2]))
