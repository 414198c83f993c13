"""The nodes of the API's answer (``filter.nodes``), grouped by identical refusal."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from engine.hami.reason_codes import ReasonCode
from page.views.node_groups import FITS, PICKED, UNREGISTERED, NodeGroup, SharedRefusal, node_group, readable

_COUNTED: Final = re.compile(r"(\d{1,9})/(\d{1,9}) (\S{1,200})", re.ASCII)


def answered_nodes(nodes: Sequence[Mapping[str, Any]], chosen: str | None) -> list[NodeGroup]:
    """Every node of the answer, in groups as ``readable`` orders them."""
    alike: dict[tuple[str, str, str], list[tuple[str, float]]] = {}
    for node in nodes:
        alike.setdefault(_judgement(node, chosen), []).append((node["name"], node["score"]))
    return readable(
        [
            node_group(" ".join(key), key[0], key[1], _refusal(key[2]) if key[2] else None, found)
            for key, found in alike.items()
        ]
    )


def _judgement(node: Mapping[str, Any], chosen: str | None) -> tuple[str, str, str]:
    """Verdict, refused container and reason."""
    if node["status"] == "passed":
        return PICKED if node["name"] == chosen else FITS, "", ""
    failed: Mapping[str, str] = next(
        (container for container in node["containers"] if container["status"] != "passed"), {}
    )
    reason = failed.get("reason") or ""
    if reason == ReasonCode.NODE_UNREGISTERED:
        return UNREGISTERED, "", reason
    return "refused", failed.get("name", ""), reason


def _refusal(reason: str) -> SharedRefusal:
    """Raises nothing: what is no list of counts is words."""
    found = [_COUNTED.fullmatch(part) for part in reason.split(", ")]
    counted = [match for match in found if match]
    if len(counted) < len(found) or len({match[2] for match in counted}) > 1:
        return SharedRefusal({}, words=reason)
    return SharedRefusal({match[3]: int(match[1]) for match in counted}, int(counted[0][2]))
