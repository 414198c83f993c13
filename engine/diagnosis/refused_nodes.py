"""The nodes that an attempt refused, each once, under the reason that decides it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, get_args, overload

import numpy as np
import numpy.typing as npt

from engine.diagnosis.texts import Kind, kind_of, obstacle_of_word
from engine.hami.reason_codes import DEVICE_REASON_CODES, ReasonCode
from schemas.events import NOT_REACHED, REFUSED, UNREGISTERED, AttemptSummarized, Refusal, Request

KINDS: Final[Mapping[Kind, int]] = {kind: place for place, kind in enumerate(get_args(Kind))}
"""The most important kind first; ``engine.diagnosis.obstacle`` says why."""
_OTHER_DEVICES: Final = frozenset(
    (
        ReasonCode.CARD_TYPE_MISMATCH, ReasonCode.CARD_UUID_MISMATCH, ReasonCode.MODE_NOT_FIT,
        ReasonCode.DEVICE_TYPE_NOT_FOUND, ReasonCode.NODE_UNREGISTERED,
    )
)  # fmt: skip
"""Nodes that these refused have no device that the pod accepts."""
_CHECKED: Final = {code.value: place for place, code in enumerate(DEVICE_REASON_CODES)}
SAYS_ASKED: Final = frozenset(
    (
        ReasonCode.CARD_INSUFFICIENT_MEMORY, ReasonCode.CARD_INSUFFICIENT_CORE, ReasonCode.CARD_MIG_TOPOLOGY_INFEASIBLE,
        ReasonCode.ALLOCATED_CARDS_INSUFFICIENT_REQUEST, ReasonCode.NODE_INSUFFICIENT_DEVICE, ReasonCode.NUMA_NOT_FIT,
    )
)  # fmt: skip
"""Their sentences say what was asked, so that each different request is an obstacle of its own."""
_APART: Final = frozenset(("InsufficientResource", "RefusedInOtherWords"))
"""Obstacles of which each resource, each text is one of its own."""


Rows = npt.NDArray[np.intp]


class RowNames(Sequence[str]):
    """The names of an attempt's nodes in these rows, in the attempt's order. A name is looked up when it is read: an
    answer shows twenty of thousands."""

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

    def joined(self, *others: "RowNames") -> "RowNames":
        """These and the others, which are of the same attempt."""
        return RowNames(self._nodes, np.sort(np.concatenate([self.rows, *(other.rows for other in others)])))


_UNNAMED: Final = RowNames((), np.array([], np.intp))


@dataclass(frozen=True, slots=True)
class RefusedNodes:
    """Nodes that one attempt refused for the same reason."""

    code: str
    count: int
    names: RowNames = _UNNAMED
    """Those that the source names."""
    request: Request | None = None
    """What they refused; None where several containers ask and the source does not say which of them it was."""
    containers: frozenset[str] = frozenset()
    """Those that ask for the same; empty where it is not known which were refused."""
    rest: tuple[str, ...] = ()
    """What the scheduler's words say beyond the code: taints, the resource."""

    @property
    def has_devices(self) -> bool:
        """Were its nodes' devices judged one by one?"""
        return self.code in _CHECKED

    @property
    def has_accepted_devices(self) -> bool:
        return self.code not in _OTHER_DEVICES


def is_about_devices(code: str) -> bool:
    """Was a node with this reason refused for its devices: what they are, how many, or what is free of them?"""
    return code in _CHECKED or code == ReasonCode.NODE_INSUFFICIENT_DEVICE


def refused_nodes(attempt: AttemptSummarized) -> list[RefusedNodes]:
    """The most important first: by kind, then by number of nodes. Each reason once for each different request."""
    groups: dict[tuple[str, str, str], list[RefusedNodes]] = {}
    for group in (*_named(attempt), *_counted(attempt)):
        apart = group.rest[0] if group.code in _APART and group.rest else ""
        groups.setdefault((group.code, apart, _asked(group)), []).append(group)
    joined = (_joined(members, judged_nodes(attempt)) for members in groups.values())
    return sorted(joined, key=lambda group: (KINDS[kind_of(group.code)], -group.count))


def _asked(group: RefusedNodes) -> str:
    """Equal for containers that ask for the same."""
    if group.request is None or group.code not in SAYS_ASKED:
        return ""
    return group.request.model_copy(update={"container": "", "init": False}).model_dump_json()


def judged_nodes(attempt: AttemptSummarized) -> int:
    """How many nodes the attempt judged; where a source only counts them, as many as it looked at."""
    if attempt.refused_nodes:
        return max(attempt.offered_nodes, *attempt.refused_nodes.values())
    return len(attempt.nodes) - len(_rows_with(attempt, NOT_REACHED))


def _rows_with(attempt: AttemptSummarized, *verdicts: str) -> npt.NDArray[np.intp]:
    """The rows of the nodes with one of these verdicts, shape (k,)."""
    has_one = np.array([word in verdicts for word in attempt.verdicts], np.bool_)
    return np.flatnonzero(has_one[attempt.verdict])


def _named(attempt: AttemptSummarized) -> Iterator[RefusedNodes]:
    for rows in rows_by_refusal(attempt, _rows_with(attempt, REFUSED, UNREGISTERED)):
        code, place = int(attempt.refusal[rows[0]]), int(attempt.refused_by[rows[0]])
        refusal = attempt.refusals[code] if code >= 0 else _without_reason(attempt, int(rows[0]))
        name, rest = deciding_reason(refusal)
        request = refused_request(attempt, refusal, place)
        containers = frozenset((request.container,)) if request else frozenset[str]()
        yield RefusedNodes(name, len(rows), RowNames(attempt.nodes, rows), request, containers, rest)


def rows_by_refusal(attempt: AttemptSummarized, rows: Rows) -> Iterator[Rows]:
    """These rows of the attempt's nodes, which ascend, by refusal, and by the container that was refused."""
    # One sort instead of a pass over all nodes for each refusal: an attempt of 5,000 nodes has dozens.
    ordered = rows[np.lexsort((attempt.refused_by[rows], attempt.refusal[rows]))]
    refusal, refused_by = attempt.refusal[ordered], attempt.refused_by[ordered]
    is_first = (refusal[1:] != refusal[:-1]) | (refused_by[1:] != refused_by[:-1])
    return (group for group in np.split(ordered, np.flatnonzero(is_first) + 1) if len(group))


def _without_reason(attempt: AttemptSummarized, row: int) -> Refusal:
    is_unregistered = attempt.verdicts[int(attempt.verdict[row])] == UNREGISTERED
    return Refusal(bare=ReasonCode.NODE_UNREGISTERED if is_unregistered else ReasonCode.NODE_UNFIT_POD)


def deciding_reason(refusal: Refusal) -> tuple[str, tuple[str, ...]]:
    """The obstacle that keeps the pod from a node with this refusal, and what its words say beyond the code."""
    if refusal.bare:
        code, rest = obstacle_of_word(refusal.bare)
        return code, tuple(filter(None, (rest, refusal.cause)))
    found = {obstacle_of_word(code): count for code, count in refusal.counts.items() if count}
    found |= {obstacle_of_word(code): 0 for code in refusal.uncounted}
    if not found:
        return ReasonCode.NODE_UNFIT_POD, ()
    # Of two reasons of a kind, the one of more devices; then the one that is checked later, which is nearer to a fit.
    code, rest = min(found, key=lambda pair: (KINDS[kind_of(pair[0])], -found[pair], -_CHECKED.get(pair[0], 0)))
    return code, (rest,) if rest else ()


def refused_request(attempt: AttemptSummarized, refusal: Refusal, refused_by: int) -> Request | None:
    """What was refused; None where several containers ask and the source does not say which of them it was."""
    if refused_by >= 0:
        return attempt.requests[refused_by]
    asking = [request for request in attempt.requests if request.count]
    # A refusal of the whole node is that of the first container that asks for devices.
    return asking[0] if asking and (refusal.bare or len(asking) == 1) else None


def _counted(attempt: AttemptSummarized) -> Iterator[RefusedNodes]:
    asking = [request for request in attempt.requests if request.count]
    request = asking[0] if len(asking) == 1 else None
    for words, count in attempt.refused_nodes.items():
        code, rest = obstacle_of_word(words)
        yield RefusedNodes(code, count, request=request, rest=(rest,) if rest else ())


def _joined(groups: Sequence[RefusedNodes], judged: int) -> RefusedNodes:
    largest = max(groups, key=lambda group: group.count)
    named = [group.names for group in groups if group.names]
    names = named[0].joined(*named[1:]) if named else _UNNAMED
    rest = tuple(dict.fromkeys(chain.from_iterable(group.rest for group in groups)))
    containers = frozenset(chain.from_iterable(group.containers for group in groups))
    # kube-scheduler may count a node for several reasons of a kind.
    count = min(sum(group.count for group in groups), judged)
    return RefusedNodes(largest.code, count, names, largest.request, containers, rest)
