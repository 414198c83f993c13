"""Nodes that an attempt refused, each once, under the reason that decides it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import Final, get_args, overload

import numpy as np
import numpy.typing as npt

from engine.diagnosis.counted_reasons import parse_counted_reasons
from engine.diagnosis.texts import (
    CONTROL_PLANE_TAINT,
    GPU_MEMORY_OF_KAI,
    OTHER_WORDS,
    Kind,
    find_obstacle_of_reason,
    find_taint_obstacle,
    get_counted_code,
    get_counted_resource,
    get_kind,
)
from engine.hami.annotations import GPU_COUNT
from engine.hami.reason_codes import DEVICE_REASON_CODES, EXTENDER_REASON_CODES, ReasonCode
from engine.summaries.reports import find_filter_giver
from schemas.events import NOT_REACHED, REFUSED, SCHEDULER, UNREGISTERED, AttemptSummarized, Refusal, Request
from schemas.reasons import read_catalogue

KINDS: Final[Mapping[Kind, int]] = {kind: rank for rank, kind in enumerate(get_args(Kind))}
"""Rank of each kind, the most important first; ``engine.diagnosis.tree`` has the reason for the order."""
_OTHER_DEVICES: Final = frozenset(
    (
        ReasonCode.CARD_TYPE_MISMATCH, ReasonCode.CARD_UUID_MISMATCH, ReasonCode.MODE_NOT_FIT,
        ReasonCode.DEVICE_TYPE_NOT_FOUND, ReasonCode.NODE_UNREGISTERED, ReasonCode.NODE_OF_ANOTHER_SCHEDULER,
    )
)  # fmt: skip
"""Reasons of nodes without any device that the pod accepts."""
_CHECK_ORDER: Final = {code.value: rank for rank, code in enumerate(DEVICE_REASON_CODES)}
HAMI_LOG: Final = "hami-log"
_EXTENDERS: Final = (SCHEDULER, HAMI_LOG)
"""Sources that name the nodes which kube-scheduler's filters let pass, and no other."""
NODE_LINES_LEVEL: Final = 4
"""The log level from which on HAMi writes a line for every node that it judges."""
NAMES_REQUEST: Final = frozenset(
    (
        ReasonCode.CARD_INSUFFICIENT_MEMORY, ReasonCode.CARD_INSUFFICIENT_CORE, ReasonCode.CARD_MIG_TOPOLOGY_INFEASIBLE,
        ReasonCode.ALLOCATED_CARDS_INSUFFICIENT_REQUEST, ReasonCode.NODE_INSUFFICIENT_DEVICE, ReasonCode.NUMA_NOT_FIT,
    )
)  # fmt: skip
"""Reasons whose sentences name the request, so that each different request is an obstacle of its own."""
_INSUFFICIENT: Final = "InsufficientResource"
_SEPARATE: Final = frozenset((_INSUFFICIENT, OTHER_WORDS))
"""Obstacles that are separate for each resource or text."""


Rows = npt.NDArray[np.intp]


class RowNames(Sequence[str]):
    """Names of an attempt's nodes in these rows, in the attempt's order. A name is looked up when it is read: an answer
    shows twenty of thousands."""

    __slots__ = ("_nodes", "rows")

    def __init__(self, nodes: Sequence[str], rows: Rows) -> None:
        self._nodes = nodes
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...

    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return RowNames(self._nodes, self.rows[index])
        return self._nodes[int(self.rows[index])]

    def __iter__(self) -> Iterator[str]:
        return map(self._nodes.__getitem__, self.rows.tolist())

    def join(self, *others: "RowNames") -> "RowNames":
        """Join these names and others of the same attempt."""
        return RowNames(self._nodes, np.sort(np.concatenate([self.rows, *(other.rows for other in others)])))


_UNNAMED: Final = RowNames((), np.array([], np.intp))


@dataclass(frozen=True, slots=True)
class RefusedNodes:
    """Nodes that one attempt refused for one reason."""

    code: str
    count: int
    names: RowNames = _UNNAMED
    """Names of the nodes that the source names."""
    request: Request | None = None
    """Refused request; None if several containers request devices and the source does not say which was refused."""
    containers: frozenset[str] = frozenset()
    """Containers with equal requests; empty if the source does not say which were refused."""
    details: tuple[str, ...] = ()
    """Details of the scheduler's words beyond the code: taints, the resource."""

    @property
    def has_devices(self) -> bool:
        """True if its nodes' devices were judged one by one."""
        return self.code in _CHECK_ORDER

    @property
    def has_accepted_devices(self) -> bool:
        return self.code not in _OTHER_DEVICES


def is_about_devices(code: str) -> bool:
    """Tell whether a node with this reason was refused for its devices: their kind, their number, or their free
    amounts."""
    return code in _CHECK_ORDER or code == ReasonCode.NODE_INSUFFICIENT_DEVICE


def group_refused_nodes(attempt: AttemptSummarized, excluded_by: str = "") -> list[RefusedNodes]:
    """Group the refused nodes, each reason once for each different request; the most important first: by kind, then by
    number of nodes. excluded_by: reason that stands for those of all devices, as none of them suits the pod for it."""
    groups: dict[tuple[str, str, str], list[RefusedNodes]] = {}
    for group in (*_group_judged(attempt), *_list_unregistered(attempt)):
        if excluded_by and group.has_devices:
            # HAMi names the first check that a device fails: one that is repaired fails the next one.
            group = replace(group, code=excluded_by)
        groups.setdefault((group.code, _find_separator(group), _encode_request(group)), []).append(group)
    joined = (_join_groups(members, count_judged_nodes(attempt)) for members in groups.values())
    return sorted(joined, key=lambda group: (KINDS[get_kind(group.code)], -group.count))


def _find_separator(group: RefusedNodes) -> str:
    """Find what divides groups with one code: the resource, the words, or whose taint it is."""
    details = group.details[0] if group.details else ""
    if group.code in _SEPARATE:
        return details
    return CONTROL_PLANE_TAINT if find_taint_obstacle(group.code, details) == CONTROL_PLANE_TAINT else ""


def _group_judged(attempt: AttemptSummarized) -> list[RefusedNodes]:
    """Group the nodes that the attempt names and those that it counts.

    A count by the scheduler holds against nodes whose verdicts a reader worked out: these only name the nodes of a
    group of the same size, and divide it where the scheduler has one reason for several.
    """
    named, counted = list(_group_named(attempt)), list(_list_counted(attempt))
    if attempt.reconstruction is None or not counted:
        return [*named, *counted]
    members: dict[tuple[str, str], list[RefusedNodes]] = {}
    for group in named:
        members.setdefault(_get_counted_key(group), []).append(group)
    return [
        divided for group in counted for divided in _divide_counted(group, members.get(_get_counted_key(group), []))
    ]


def _get_counted_key(group: RefusedNodes) -> tuple[str, str]:
    """Return the obstacle and the resource under which a scheduler counts the nodes of a group."""
    # Only KAI's parts of devices are worked out by the codes of HAMi's devices: KAI counts GPUs, or their memory.
    if group.code in _CHECK_ORDER:
        return _INSUFFICIENT, GPU_COUNT
    resource = get_counted_resource(group.details[0]) if group.code == _INSUFFICIENT and group.details else ""
    return get_counted_code(group.code), GPU_COUNT if resource == GPU_MEMORY_OF_KAI else resource


def _divide_counted(counted: RefusedNodes, named: Sequence[RefusedNodes]) -> list[RefusedNodes]:
    """Divide a group that the scheduler counts by the reasons of as many named nodes; otherwise keep it unnamed."""
    if sum(group.count for group in named) != counted.count:
        return [counted]
    names: dict[str, RowNames] = {}
    for group in named:
        names[group.code] = names[group.code].join(group.names) if group.code in names else group.names
    return [replace(counted, code=code, count=len(rows), names=rows) for code, rows in names.items()]


def _encode_request(group: RefusedNodes) -> str:
    """Encode the request; containers with equal requests have equal texts."""
    if group.request is None or group.code not in NAMES_REQUEST:
        return ""
    return group.request.model_copy(update={"container": "", "init": False}).model_dump_json()


def count_judged_nodes(attempt: AttemptSummarized) -> int:
    """Count the nodes that the attempt judged; if a source only counts them, as many as it looked at."""
    if counts := _count_unnamed(attempt):
        # kube-scheduler's total has the nodes too that it did not offer to an extender.
        counted = parse_counted_reasons(attempt.scheduler_message)
        return max(attempt.offered_nodes, counted.total if counted else 0, *counts.values())
    judged = len(attempt.nodes) - len(_select_rows(attempt, NOT_REACHED))
    return judged + _count_unregistered(attempt)


def _count_unregistered(attempt: AttemptSummarized) -> int:
    """Count the offered nodes that HAMi's log does not name: below -v=5 it names no node without devices."""
    reports = [report for report in attempt.reports if report.source == HAMI_LOG]
    prints_nodes = any(max(report.levels, default=0) >= NODE_LINES_LEVEL for report in reports)
    if not prints_nodes or len(attempt.reports) > 1 or not attempt.ended_at or not attempt.nodes or attempt.chosen:
        return 0
    return max(attempt.offered_nodes - len(attempt.nodes), 0)


def _list_unregistered(attempt: AttemptSummarized) -> Iterator[RefusedNodes]:
    if count := _count_unregistered(attempt):
        yield RefusedNodes(ReasonCode.NODE_UNREGISTERED, count)


def _select_rows(attempt: AttemptSummarized, *verdicts: str) -> npt.NDArray[np.intp]:
    """Select the rows of the nodes with one of these verdicts, shape (k,)."""
    has_one = np.array([word in verdicts for word in attempt.verdicts], np.bool_)
    return np.flatnonzero(has_one[attempt.verdict])


def _group_named(attempt: AttemptSummarized) -> Iterator[RefusedNodes]:
    weights = _weigh_reasons(attempt)
    for rows in split_by_refusal(attempt, _select_rows(attempt, REFUSED, UNREGISTERED)):
        code, position = int(attempt.refusal[rows[0]]), int(attempt.refused_by[rows[0]])
        refusal = attempt.refusals[code] if code >= 0 else _without_reason(attempt, int(rows[0]))
        name, details = find_deciding_reason(refusal, weights)
        request = find_refused_request(attempt, refusal, position)
        containers = frozenset((request.container,)) if request else frozenset[str]()
        yield RefusedNodes(name, len(rows), RowNames(attempt.nodes, rows), request, containers, details)


def split_by_refusal(attempt: AttemptSummarized, rows: Rows) -> Iterator[Rows]:
    """Split these ascending rows of the attempt's nodes by refusal, and by the container that was refused."""
    # One sort instead of a pass over all nodes for each refusal: an attempt of 5,000 nodes has dozens.
    ordered = rows[np.lexsort((attempt.refused_by[rows], attempt.refusal[rows]))]
    refusal, refused_by = attempt.refusal[ordered], attempt.refused_by[ordered]
    is_first = (refusal[1:] != refusal[:-1]) | (refused_by[1:] != refused_by[:-1])
    return (group for group in np.split(ordered, np.flatnonzero(is_first) + 1) if len(group))


def _without_reason(attempt: AttemptSummarized, row: int) -> Refusal:
    is_unregistered = attempt.verdicts[int(attempt.verdict[row])] == UNREGISTERED
    return Refusal(bare=ReasonCode.NODE_UNREGISTERED if is_unregistered else ReasonCode.NODE_UNFIT_POD)


Weights = Mapping[str, tuple[int, int]]
"""By reason, the nodes of an attempt that it keeps the pod from, and their devices."""


def _weigh_reasons(attempt: AttemptSummarized) -> Weights:
    """Weigh the reasons of an attempt: HAMi's own events count a node for each reason of one of its devices."""
    nodes = np.bincount(attempt.refusal[attempt.refusal >= 0], minlength=len(attempt.refusals)).tolist()
    weights: dict[str, tuple[int, int]] = {}
    for refusal, count in zip(attempt.refusals, nodes, strict=True):
        for code, devices in (*refusal.counts.items(), *((code, 0) for code in refusal.uncounted)):
            name, _ = find_obstacle_of_reason(code)
            before = weights.get(name, (0, 0))
            weights[name] = before[0] + count, before[1] + count * devices
    return weights


def find_deciding_reason(refusal: Refusal, weights: Weights | None = None) -> tuple[str, tuple[str, ...]]:
    """Find the obstacle that keeps the pod from a node with this refusal, and the details of its words beyond the
    code. ``weights``: of the attempt's reasons; None for a node by itself."""
    if refusal.bare:
        code, details = find_obstacle_of_reason(refusal.bare)
        return code, tuple(filter(None, (details, refusal.cause)))
    counts = {find_obstacle_of_reason(code): count for code, count in refusal.counts.items() if count}
    counts |= {find_obstacle_of_reason(code): 0 for code in refusal.uncounted}
    if not counts:
        return ReasonCode.NODE_UNFIT_POD, ()

    def rank(reason: tuple[str, str]) -> tuple[int, ...]:
        nodes, devices = (weights or {}).get(reason[0], (0, 0))
        kind = KINDS[get_kind(reason[0])]
        nearest = -_rank_claim_reasons().get(reason[0], 0)
        return nearest, kind, -nodes, -devices, -counts[reason], -_CHECK_ORDER.get(reason[0], 0)

    # Of two reasons of a kind, that of more nodes decides, then that of more devices; then the one checked later,
    # which is nearer to a fit.
    code, details = min(counts, key=rank)
    return code, (details,) if details else ()


@cache
def _rank_claim_reasons() -> Mapping[str, int]:
    """Rank the reasons of claims' devices; a device with a later one is nearer to a fit."""
    codes = [code for code, reason in read_catalogue().items() if reason.scope == "claim"]
    return {code: rank for rank, code in enumerate(codes)}


def find_refused_request(attempt: AttemptSummarized, refusal: Refusal, refused_by: int) -> Request | None:
    """Find the refused request; None if several containers request devices and the source does not say which was
    refused."""
    if refused_by >= 0:
        request = attempt.requests[refused_by]
        # An attempt whose end the log lacks has containers without requests: a container that asks is refused.
        return request if request.count else None
    asking = [request for request in attempt.requests if request.count]
    # A refusal of the complete node is that of the first container that requests devices.
    return asking[0] if asking and (refusal.bare or len(asking) == 1) else None


def _list_counted(attempt: AttemptSummarized) -> Iterator[RefusedNodes]:
    asking = [request for request in attempt.requests if request.count]
    request = asking[0] if len(asking) == 1 else None
    for words, count in _count_unnamed(attempt).items():
        code, details = find_obstacle_of_reason(words)
        yield RefusedNodes(code, count, request=request, details=(details,) if details else ())


def _count_unnamed(attempt: AttemptSummarized) -> Mapping[str, int]:
    """Count the refused nodes by reason that the verdicts do not name.

    An extender sees no node that the filters of kube-scheduler refuse, whose event counts it, and those of the
    extender under the extender's codes, which are named.
    """
    giver = find_filter_giver(attempt)
    counted = parse_counted_reasons(attempt.scheduler_message)
    if (
        counted is None
        or len(attempt.reports) == 1
        or giver is None
        or giver.source not in _EXTENDERS
        or attempt.chosen
    ):
        return attempt.refused_nodes
    named = set(EXTENDER_REASON_CODES)
    if not len(_select_rows(attempt, UNREGISTERED)):
        named.discard(ReasonCode.NODE_UNREGISTERED)
    filtered = {reason: nodes for reason, nodes in counted.reasons if reason.partition(":")[0] not in named}
    return {**filtered, **attempt.refused_nodes}


def _join_groups(groups: Sequence[RefusedNodes], judged: int) -> RefusedNodes:
    largest = max(groups, key=lambda group: group.count)
    name_lists = [group.names for group in groups if group.names]
    names = name_lists[0].join(*name_lists[1:]) if name_lists else _UNNAMED
    details = tuple(dict.fromkeys(chain.from_iterable(group.details for group in groups)))
    containers = frozenset(chain.from_iterable(group.containers for group in groups))
    # kube-scheduler may count a node for several reasons of a kind.
    count = min(sum(group.count for group in groups), judged)
    return RefusedNodes(largest.code, count, names, largest.request, containers, details)
