"""The nodes of an attempt, grouped by identical refusal: thousands of nodes become a handful of rows. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SHOWN_NAMES = 3


@dataclass(frozen=True, slots=True)
class AlikeNodes:
    verdict: str
    """``chosen``, ``fits``, ``refused``."""
    why: str
    """``container: X/Y Reason, …`` of a refusal; the range of scores of nodes that fit."""
    names: tuple[str, ...]

    @property
    def shown_names(self) -> str:
        more = len(self.names) - SHOWN_NAMES
        return ", ".join(self.names[:SHOWN_NAMES]) + (f" +{more:,}" if more > 0 else "")


def alike_nodes(nodes: Sequence[Mapping[str, Any]], chosen: str | None) -> list[AlikeNodes]:
    """The nodes of ``filter.nodes``: the chosen one, those that fit, then refusals, the most frequent first."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for node in nodes:
        verdict = "refused" if node["status"] != "passed" else "chosen" if node["name"] == chosen else "fits"
        groups.setdefault((verdict, _refusal(node)), []).append(node)
    order = ("chosen", "fits", "refused")
    found = sorted(groups.items(), key=lambda each: (order.index(each[0][0]), -len(each[1]), each[0][1]))
    return [
        AlikeNodes(verdict, why or _scores(alike), tuple(node["name"] for node in alike))
        for (verdict, why), alike in found
    ]


def _refusal(node: Mapping[str, Any]) -> str:
    failed = (each for each in node["containers"] if each["status"] != "passed")
    return "; ".join(f"{each['name']}: {each.get('reason') or 'failed'}" for each in failed)


def _scores(nodes: Sequence[Mapping[str, Any]]) -> str:
    scores = sorted(node["score"] for node in nodes)
    low, high = scores[0], scores[-1]
    return f"score {low:g}" if low == high else f"scores {low:g} to {high:g}"
