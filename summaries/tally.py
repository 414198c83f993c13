"""Counting verdicts: from the device rows of an attempt to ``X`` and ``Y`` per node, in numpy.

Everything is kept sparse, as (node, code, count): no array here is larger than the rows that came, whatever a record
claims about positions or tables.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schemas.events import (
    NOT_REASONS,
    NOT_REPORTED,
    PICKED,
    AttemptEvent,
    DeviceInventory,
    DevicesJudged,
    DeviceVerdicts,
    PickedDevice,
    PodRef,
    Refusal,
    Request,
    Words,
)

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """One record of devices judged, counted.

    ``node_index``, ``devices`` and ``rows`` have an entry per node; ``owner``, ``code`` and ``count`` an entry per
    distinct pair of node and verdict: ``count`` rows of the node at place ``owner`` have the verdict ``words[code]``.
    """

    container: int
    request: Request
    words: Sequence[str]
    node_index: Ints
    devices: Ints
    rows: Ints
    owner: Ints
    code: Ints
    count: Ints
    picked: Mapping[str, Sequence[PickedDevice]]
    """Devices taken, by node."""
    models: Mapping[str, int]
    """Device model to number of rows."""
    is_partial: bool
    """True where no row reports some devices of these nodes."""
    by_word: Mapping[str, int]
    """Verdict to number of rows, of those that have any."""

    @property
    def judged(self) -> int:
        """Rows."""
        return sum(self.by_word.values())

    @property
    def size(self) -> int:
        """Bytes in memory, about, of what it does not share with its inventory."""
        return 1_500 + self.node_index.nbytes + 3 * self.owner.nbytes


@dataclass(frozen=True, slots=True, eq=False)
class CountedRecord:
    """A record of devices judged, counted: all that a summary needs of it."""

    attempt_id: str
    pod: PodRef
    scheduler: str
    started_at: datetime
    part: int
    nodes: Words
    tally: Tally
    inventory: str = ""
    """Identifies the record's inventory: equal inventories have equal names. Empty where the inventory was not decoded
    separately."""
    inventory_at: int = -1
    """Its byte offset in the record."""

    @property
    def id(self) -> str:
        """That of the record."""
        return f"{self.attempt_id}/devices/{self.part}"

    @property
    def request(self) -> Request:
        return self.tally.request

    @property
    def verdicts(self) -> Sequence[str]:
        return self.tally.words


class Inventory:
    """The devices that verdicts are about, and what follows from them alone. ``name`` as ``Tallied.inventory``."""

    def __init__(self, devices: DeviceInventory, name: str = "") -> None:
        self.devices = devices
        self.name = name
        self.owners: Ints = np.repeat(np.arange(len(devices.nodes)), devices.rows)
        """Per row the place of its node."""
        self.models = _models(devices)


def count_record(event: DevicesJudged) -> CountedRecord:
    return count_parts(event, event, Inventory(event))


def count_parts(about: AttemptEvent, verdicts: DeviceVerdicts, inventory: Inventory, at: int = -1) -> CountedRecord:
    """Count a record decoded in three parts that passed ``check_rows``; ``at``: byte offset of the inventory."""
    return CountedRecord(
        about.attempt_id, about.pod, about.scheduler, about.started_at,
        verdicts.part, inventory.devices.nodes, tally(verdicts, inventory), inventory.name, at,
    )  # fmt: skip


def tally(verdicts: DeviceVerdicts, inventory: Inventory) -> Tally:
    """Count the rows of one record."""
    devices, words = inventory.devices, verdicts.verdicts
    owner, code, count = _pairs(inventory.owners, verdicts.verdict, len(devices.nodes), len(words))
    columns = (verdicts.node_index, devices.devices, devices.rows, owner, code, count)
    picked, by_word = _picked(verdicts, inventory), _by_word(words, code, count)
    return Tally(
        verdicts.container, verdicts.request, words, *columns, picked, inventory.models, verdicts.partial, by_word
    )


def _by_word(words: Sequence[str], code: Ints, count: Ints) -> dict[str, int]:
    sums = np.bincount(code, weights=count, minlength=len(words)).astype(np.int64).tolist()
    by_word: dict[str, int] = {}
    for word, rows in zip(words, sums, strict=True):
        if rows:  # a table may hold a word twice
            by_word[word] = by_word.get(word, 0) + rows
    return by_word


def _pairs(owners: Ints, codes: Ints, nodes: int, words: int) -> tuple[Ints, Ints, Ints]:
    key = owners * words + codes
    # bincount is ten times as fast, but its size is what the record claims, not what it holds.
    if nodes * words <= 4 * len(key) + 1024:
        dense = np.bincount(key, minlength=1)
        keys = np.flatnonzero(dense)
        counts = dense[keys]
    else:
        keys, counts = np.unique(key, return_counts=True)
    return keys // max(words, 1), keys % max(words, 1), counts


def _picked(verdicts: DeviceVerdicts, inventory: Inventory) -> dict[str, list[PickedDevice]]:
    picked: dict[str, list[PickedDevice]] = {}
    for code in (place for place, word in enumerate(verdicts.verdicts) if word == PICKED):
        for row in np.flatnonzero(verdicts.verdict == code).tolist():
            node = inventory.devices.nodes[int(inventory.owners[row])]
            picked.setdefault(node, []).append(_taken(verdicts, inventory.devices, row))
    return picked


def _taken(verdicts: DeviceVerdicts, devices: DeviceInventory, row: int) -> PickedDevice:
    kind, request = devices.kinds[int(devices.kind[row])], verdicts.request
    memory = request.memory_mib
    if memory is None and request.memory_percent is not None and kind.memory_mib is not None:
        memory = kind.memory_mib * request.memory_percent // 100
    return PickedDevice.model_construct(
        container=verdicts.container,
        uuid=devices.uuid[row],
        model=kind.model,
        memory_mib=memory,
        cores_percent=request.cores_percent,
        memory_total_mib=kind.memory_mib,
        memory_used_mib=_number(verdicts.memory_used_mib[row]),
        cores_total_percent=kind.cores_percent,
        cores_used_percent=_number(verdicts.cores_used_percent[row]),
        slots_total=kind.slots,
        slots_used=_number(verdicts.slots_used[row]),
    )


def _models(devices: DeviceInventory) -> dict[str, int]:
    models: dict[str, int] = {}
    for kind, count in zip(
        devices.kinds, np.bincount(devices.kind, minlength=len(devices.kinds)).tolist(), strict=True
    ):
        models[kind.model] = models.get(kind.model, 0) + count
    return models


def _number(value: Any) -> int | None:
    return None if value == NOT_REPORTED else int(value)


def by_model(tallies: Sequence[Tally]) -> dict[str, int]:
    """Device model to number of rows; what has no name is left out."""
    counts: dict[str, int] = {}
    for each in tallies:
        for model, count in each.models.items():
            counts[model] = counts.get(model, 0) + count
    return {model: count for model, count in sorted(counts.items()) if model and count}


def by_verdict(tallies: Sequence[Tally]) -> list[dict[str, int]]:
    """Per container, verdict to number of rows."""
    counts: list[dict[str, int]] = [{} for _ in range(max((each.container + 1 for each in tallies), default=0))]
    for each in tallies:
        known = counts[each.container]
        for word, count in each.by_word.items():
            known[word] = known.get(word, 0) + count
    return [dict(sorted(each.items())) for each in counts]


class NodeColumns(NamedTuple):
    """What the node records say, an entry per node."""

    node_index: Ints
    refused_by: Ints
    refusal: Ints
    """Index into ``refusals``; -1 for none."""
    refusals: Sequence[Refusal]


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Counts per node and code, sorted by both: entry ``i`` says ``count[i]`` rows of node ``node[i]``."""

    node: Ints
    code: Ints
    count: Ints


def recount(nodes: NodeColumns, tallies: Sequence[Tally]) -> dict[int, Refusal]:
    """Where the device rows count otherwise than the node records say: the node's position and the rows' own refusal.

    Nodes whose devices are not all reported, nodes refused without counts and containers that did not refuse are
    left out.
    """
    tallies = [each for each in tallies if not each.is_partial]
    if not tallies or not len(nodes.node_index):
        return {}
    words, pairs, known, devices = _by_node(nodes, tallies)
    wrong = known & _differ(nodes, words, pairs, devices)
    return {node: _counted(node, words, pairs, int(devices[node])) for node in np.flatnonzero(wrong).tolist()}


def _by_node(
    nodes: NodeColumns, tallies: Sequence[Tally]
) -> tuple[dict[str, int], _Pairs, npt.NDArray[np.bool_], Ints]:
    """The pairs of the container that refused each node; which nodes have rows; their ``Y``."""
    position = _positions(nodes.node_index, np.concatenate([each.node_index for each in tallies]))
    container = np.repeat([each.container for each in tallies], [len(each.node_index) for each in tallies])
    rows = np.concatenate([each.rows for each in tallies])
    counts = (position >= 0) & (rows > 0) & (nodes.refused_by[position] == container)
    known = np.zeros(len(nodes.node_index), dtype=np.bool_)
    devices = np.zeros(len(nodes.node_index), dtype=np.int64)
    known[position[counts]] = True
    devices[position[counts]] = np.concatenate([each.devices for each in tallies])[counts]
    words, code = _one_table(tallies)
    starts = np.cumsum([0, *(len(each.node_index) for each in tallies)])[:-1]
    owner = np.concatenate([each.owner + start for each, start in zip(tallies, starts.tolist(), strict=True)])
    keep = counts[owner] & (code >= 0)
    count = np.concatenate([each.count for each in tallies])
    return words, _sorted(position[owner[keep]], code[keep], count[keep]), known, devices


def _positions(known: Ints, wanted: Ints) -> Ints:
    """Where each of ``wanted`` stands in ``known``; -1 for what is not there."""
    if np.array_equal(known, wanted) and bool(np.all(known[1:] > known[:-1])):  # node for node, as they were judged
        return np.arange(len(known))
    order = np.argsort(known, kind="stable")
    place = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)]
    return np.where(known[place] == wanted, place, -1)


def _one_table(tallies: Sequence[Tally]) -> tuple[dict[str, int], Ints]:
    """Reason codes of all records in one table, and the column of all pairs that points into it; -1 is no reason."""
    words: dict[str, int] = {}
    columns = []
    for each in tallies:
        moved = [-1 if word in NOT_REASONS else words.setdefault(word, len(words)) for word in each.words]
        columns.append(np.array([*moved, -1], dtype=np.int64)[each.code])
    return words, np.concatenate(columns)


def _sorted(node: Ints, code: Ints, count: Ints) -> _Pairs:
    order = np.argsort(node * (int(code.max(initial=0)) + 1) + code, kind="stable")
    node, code, count = node[order], code[order], count[order]
    # A node whose rows are spread over two records has a pair twice.
    first = np.ones(len(node), dtype=np.bool_)
    first[1:] = (node[1:] != node[:-1]) | (code[1:] != code[:-1])
    starts = np.flatnonzero(first)
    return _Pairs(node[starts], code[starts], np.add.reduceat(count, starts) if len(starts) else count)


def _differ(nodes: NodeColumns, words: dict[str, int], pairs: _Pairs, devices: Ints) -> npt.NDArray[np.bool_]:
    """Per node: do its pairs differ from the counts of its refusal?"""
    table = [_recorded(each, words) for each in nodes.refusals] + [None]
    size = np.array([-1 if recorded is None else len(recorded) for recorded in table])[nodes.refusal]
    recorded_devices = np.array([*(each.devices for each in nodes.refusals), 0], dtype=np.int64)[nodes.refusal]
    found = np.bincount(pairs.node, minlength=len(size))
    differ = (found != size) | (devices != recorded_devices)
    same = np.flatnonzero(~differ[pairs.node])
    flat = np.array([entry for recorded in table for entry in recorded or ()], dtype=np.int64).reshape(-1, 2)
    begins = np.cumsum([0, *(len(recorded or ()) for recorded in table)])[:-1][nodes.refusal]
    rank = np.arange(len(pairs.node)) - (np.cumsum(found) - found)[pairs.node]
    entry = flat[(begins[pairs.node] + rank)[same]]
    unequal = (entry[:, 0] != pairs.code[same]) | (entry[:, 1] != pairs.count[same])
    differ[pairs.node[same[unequal]]] = True
    counts = np.array([*(not each.bare and not each.uncounted for each in nodes.refusals), True])[nodes.refusal]
    agrees: npt.NDArray[np.bool_] = ~differ | ~counts
    return ~agrees


def _recorded(refusal: Refusal, words: dict[str, int]) -> list[tuple[int, int]]:
    """The refusal as pairs of code and count, sorted; a code that no row has gets a place behind all that do."""
    return sorted(
        (words.get(code, len(words) + place), x) for place, (code, x) in enumerate(refusal.counts.items()) if x
    )


def _counted(node: int, words: dict[str, int], pairs: _Pairs, devices: int) -> Refusal:
    codes = list(words)
    begin, end = np.searchsorted(pairs.node, [node, node + 1])
    entries = zip(pairs.code[begin:end].tolist(), pairs.count[begin:end].tolist(), strict=True)
    return Refusal.model_construct(counts={codes[code]: count for code, count in entries}, devices=devices)
