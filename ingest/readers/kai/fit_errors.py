"""KAI's fit errors: what it writes into its log, the events and the conditions of pods and pod groups.

Short: ``no nodes with enough resources were found: 2 node(s) didn't have enough resources: GPU memory.`` Detailed
(``--detailed-fit-errors``): a line for each node. A node pool, a reason and a sentence about the gang may precede
either. Two traps: the counts can add up to more than there are nodes (v0.17 counts a node once per resource), and nodes
that were refused device by device are missing from both forms.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from engine.diagnosis.layers.statements import KAI_QUOTA_REASONS

# Optional. KAI keeps one condition per node pool on a pod group.
_POOL: Final = re.compile(r"Node-Pool '(?P<pool>[^']*)': ?")
_CODE: Final = re.compile(r"(?P<code>[A-Z][A-Za-z]+)(?:: |\.?\n)")
CODES: Final = frozenset(("PodSchedulingErrors", "QueueDoesNotExist", *KAI_QUOTA_REASONS))
"""Reasons of ``PodGroup.status.schedulingConditions[].reasons[]``; a text may begin with one."""
# The code PodSchedulingErrors is followed by the pod and its cause, in this form or in that of a gang.
_ALONE: Final = re.compile(r"Resources were not found for pod (?P<pod>\S+) due to: ")
_GANG: Final = re.compile(
    r"Resources were found for (?P<found>\d+) pods while (?P<needed>\d+) are required for gang scheduling\. "
    r"Additional pods cannot be scheduled due to: "
)
_NONE_FOUND: Final = "no nodes with enough resources were found"
_BETWEEN: Final = re.compile(r"\. \n|\. (?=\d+ node)")
"""Text between two reasons, also where a copy has put them into one line."""
_UNEXPLAINED: Final = "Unable to schedule pod"
_COUNT: Final = re.compile(r"(?P<count>\d+) (?P<reason>\S.*)", re.DOTALL)
_NODE: Final = re.compile(r"<(?P<node>[^<>\n]+)>: (?P<reason>[^\n]*)")
_RESOURCES: Final = re.compile(r"Node didn't have enough resources: (?P<what>[^,.]*)(?:, (?P<numbers>.*))?", re.DOTALL)
# KAI spells the unit Mib; the number is the node's label, rounded down to a multiple of 100.
_CAPACITY: Final = re.compile(
    r"Each gpu on the node has a gpu memory capacity of (?P<total>\d+) Mib\. (?P<requested>\d+) Mib of gpu memory"
)


_LISTED: Final = re.compile(r"(?P<name>GPU|Gpus|CPU|memory): (?:(?P<devices>\d+) X )?(?P<amount>\d+(?:\.\d+)?)")
_RESOURCE_NAMES: Final = {"GPU": "GPUs", "Gpus": "GPUs", "CPU": "CPU cores", "memory": "memory"}
"""KAI's names of resources in fit errors, by those in lists of amounts."""
_VECTOR_NAMES: Final = ("CPU cores", "memory", "GPUs")
"""Resources of a vector in the order of its numbers, as v0.17 prints them."""
_REPORTED: Final = ("GPUs", "CPU cores", "memory")
"""Resources in the order of KAI's fit errors."""


@dataclass(frozen=True, slots=True)
class NodeFit:
    """The refusal of one node. ``memory_*`` are MiB per device, None if the text does not give them."""

    reason: str
    detail: str = ""
    memory_total_mib: int | None = None
    memory_requested_mib: int | None = None


@dataclass(frozen=True, slots=True)
class FitError:
    text: str
    node_pool: str = ""
    code: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Reason to number of nodes."""
    nodes: Mapping[str, NodeFit] = field(default_factory=dict)
    gang: tuple[int, int] | None = None
    """Number of pods of the gang that fit, and that must fit."""
    is_unexplained: bool = False
    """The text is only "Unable to schedule pod".

    KAI writes that for a request of memory that fails device by device: it then compares the request with idle GPUs,
    counts it as 0 GPUs, and finds no reason (both versions).
    """

    @property
    def is_about_nodes(self) -> bool:
        return bool(self.counts or self.nodes)


def parse_fit_error(text: str) -> FitError:
    """Parse a fit error; a text in no known form is kept only as ``text``."""
    remainder = text.strip()
    pool, remainder = _take(_POOL, remainder, "pool")
    remainder = remainder.lstrip()
    code = ""
    if (code_match := _CODE.match(remainder)) and code_match["code"] in CODES:
        code, remainder = code_match["code"], remainder[code_match.end() :].lstrip()
    gang = _GANG.match(remainder)
    if cause := gang or _ALONE.match(remainder):
        remainder = remainder[cause.end() :].lstrip()
    return FitError(
        text=text.strip(),
        node_pool=pool,
        code=code,
        counts=_parse_counts(remainder),
        nodes=_parse_nodes(remainder),
        gang=(int(gang["found"]), int(gang["needed"])) if gang else None,
        is_unexplained=remainder.rstrip(".") == _UNEXPLAINED,
    )


def _take(pattern: re.Pattern[str], text: str, name: str) -> tuple[str, str]:
    match = pattern.match(text)
    return (match[name], text[match.end() :]) if match else ("", text)


def _parse_counts(text: str) -> dict[str, int]:
    # The first releases begin with a capital letter.
    if text[:1].lower() + text[1 : len(_NONE_FOUND) + 2] != _NONE_FOUND + ": ":
        return {}
    items = _BETWEEN.split(text[len(_NONE_FOUND) + 2 :])
    counted = [match for item in items if (match := _COUNT.fullmatch(item.strip().rstrip(".")))]
    # [:18]: a log may hold any number of digits, and events have 64 bits.
    return {match["reason"]: int(match["count"][:18]) for match in counted}


def _parse_nodes(text: str) -> dict[str, NodeFit]:
    return {match["node"]: parse_node_fit(match["reason"].rstrip(".")) for match in _NODE.finditer(text)}


def describe_shortage(requested: str, idle: str, releasing: str) -> str:
    """Describe the resources that a node lacks in the words of KAI's fit errors, from amounts as its log prints them.

    KAI compares the request with what is idle and what is being released. Where no amount is short, the request is for
    memory or shares of devices, which the amounts leave out.
    """
    free, leaving = _parse_amounts(idle), _parse_amounts(releasing)
    requests = _parse_amounts(requested)
    short = [name for name in _REPORTED if name in free and requests.get(name, 0) > free[name] + leaving.get(name, 0)]
    return f"Node didn't have enough resources: {' and '.join(short) or 'GPUs'}"


def _parse_amounts(resources: str) -> dict[str, float]:
    if listed := list(_LISTED.finditer(resources)):
        return {_RESOURCE_NAMES[match["name"]]: float(match["amount"]) * int(match["devices"] or 1) for match in listed}
    try:
        return dict(zip(_VECTOR_NAMES, map(float, resources.strip("[]<>").split()), strict=False))
    except ValueError:
        return {}


def parse_node_fit(text: str) -> NodeFit:
    """Parse the reason after a node's name, as in the detailed form and in the log."""
    if capacity := _CAPACITY.search(text):
        total, requested = int(capacity["total"][:12]), int(capacity["requested"][:12])
        return NodeFit("Node didn't have enough resources: GPU memory", text[capacity.start() :], total, requested)
    if match := _RESOURCES.match(text):
        return NodeFit(f"Node didn't have enough resources: {match['what'].strip()}", (match["numbers"] or "").strip())
    return NodeFit(text)
