"""Where HAMi v2.10.0 is wrong and we answer otherwise on purpose: rules about behaviour, each with its reason.

Every rule must hold for the node that a difference is about. Nothing is excused by a case's number.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Case = Mapping[str, Any]

_REGISTER: Final = "hami.io/node-nvidia-register"
_CORDON: Final = "hami.io/device-cordon"
_INT32_MAX: Final = 2**31 - 1
_STABLE_SORT: Final = 12


@dataclass(frozen=True, slots=True)
class Difference:
    """Where our answer is not HAMi's. node: the node it is about, "" for the whole case. about: which fact."""

    node: str
    about: str
    ours: object
    theirs: object

    def __str__(self) -> str:
        return f"{self.node or 'case'}, {self.about}: ours {self.ours}, HAMi's {self.theirs}"


def explained(case: Case, differences: Sequence[Difference]) -> str:
    """The defects behind all differences of a case, joined by " and "; "" if any of them has none.

    Another node may be chosen only because a node's score or fit is explained.
    """
    about_nodes = [difference for difference in differences if difference.node]
    if not about_nodes or any(d.about != "chosen" for d in differences if not d.node):
        return ""
    names = [_defect(case, difference) for difference in about_nodes]
    return " and ".join(sorted(set(names))) if all(names) else ""


def _defect(case: Case, difference: Difference) -> str:
    return next((name for name, applies in DEFECTS.items() if applies(case, difference)), "")


def _has_equal_ranks_above_12(case: Case, difference: Difference) -> bool:
    return difference.about in ("devices", "MIG") and len(_devices(case, difference.node)) > _STABLE_SORT


def _overflows_32_bits(case: Case, difference: Difference) -> bool:
    memory = [device.get("devmem", 0) for device in _devices(case, difference.node)]
    return 100 * max(memory, default=0) > _INT32_MAX or sum(memory) > _INT32_MAX


def _cordon_has_changed(case: Case, difference: Difference) -> bool:
    node = _node(case, difference.node)
    before = (node.get("previous") or {}).get("annotations")
    return before is not None and before.get(_CORDON) != node["annotations"].get(_CORDON)


def _counts_a_quota_with_init_containers(case: Case, difference: Difference) -> bool:
    limited = {quota["namespace"] for quota in case.get("quotas") or ()}
    said = f"{difference.ours} {difference.theirs}"
    pod = case["pod"]
    return bool(pod["initContainers"]) and pod["namespace"] in limited and "ResourceQuotaNotFit" in said


DEFECTS: Final[Mapping[str, Callable[[Case, Difference], bool]]] = {
    "a changed cordon is read at once (HAMi keeps the old one)": _cordon_has_changed,
    "sums are 64 bits wide (HAMi's wrap at 32)": _overflows_32_bits,
    "equal cards of nodes above 12 keep their order (HAMi's sort is unstable there)": _has_equal_ranks_above_12,
    "app containers count fully against a quota (HAMi takes the first for init containers)": (
        _counts_a_quota_with_init_containers
    ),
}


def _node(case: Case, name: str) -> Mapping[str, Any]:
    return next((node for node in case["nodes"] if node["name"] == name), {"annotations": {}})


def _devices(case: Case, name: str) -> list[Mapping[str, Any]]:
    """The devices of a node, as it registers them now or as it did before."""
    node = _node(case, name)
    texts: Iterable[Any] = (
        state["annotations"].get(_REGISTER) for state in (node, node.get("previous") or {"annotations": {}})
    )
    return next((found for text in texts if (found := _listed(text))), [])


def _listed(text: Any) -> list[Mapping[str, Any]]:
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        return []
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
