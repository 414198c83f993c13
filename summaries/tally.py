"""Counting verdicts: from the device rows of an attempt to ``X`` and ``Y`` per node, in numpy.

Everything is kept sparse, as (node, code, count): no array here is larger than the rows that came, whatever a record
claims about positions or tables.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from schemas.events import (
    NOT_REPORTED,
    PICKED,
    AttemptEvent,
    DeviceInventory,
    DevicesJudged,
    DeviceVerdicts,
    PickedDevice,
    PodRef,
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
    # One integer for each pair of node and verdict, so that numpy counts 40,000 rows in one pass.
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
        # HAMi's ``memreq = Totalmem * pct / 100`` in int32, which truncates.
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
