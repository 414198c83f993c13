"""Nodes that are walked card by card: those with MIG cards, and the chosen one."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from hami.mig import Placement
from scheduler.devices.node_entry import NodeEntry
from scheduler.devices.quota import Room
from scheduler.judge.device_matrix import Cards, Ints
from scheduler.judge.device_request import Ask
from scheduler.judge.fit import Checks
from scheduler.judge.pod_constraints import Terms
from scheduler.judge.reference_fit import Card, Walk, walk
from scheduler.judge.sequential_fit import Left

Placed = Mapping[int, Sequence[Placement]]
"""By device row: the instances that the pod's own containers took so far."""


def walk_nodes(
    terms: Terms, cards: Cards, ask: Ask, checks: Checks, order: Ints, left: Left | None, placed: Placed
) -> list[Walk]:
    """One walk per node of `cards`; order (slots, n) as `trying_order` gives it.

    Nodes that are equal in all that a walk looks at share one: then its picks name the cards of the first of them.
    """
    table = _table(terms, cards, checks, order)
    rooms = np.column_stack([left.memory, left.cores]) if left else np.zeros((len(table), 0), np.int64)
    walks: dict[Hashable, Walk] = {}
    found = []
    for entry, numbers, room in zip(terms.columns.entries(cards.ids.tolist()), table, rooms, strict=True):
        shape = (numbers.tobytes(), room.tobytes(), _mig_shape(terms, entry, placed), _pair_shape(entry, ask))
        if shape not in walks:
            given = Room(*room.tolist()) if left else Room()
            walks[shape] = walk(_cards(terms, entry, numbers, placed), ask, given, entry.devices.pair_scores)
        found.append(walks[shape])
    return found


def _table(terms: Terms, cards: Cards, checks: Checks, order: Ints) -> Ints:
    """What a walk looks at in numbers, shape (n, 11, slots): the order of trying, validity, and those of a `Card`."""
    accepts = terms.accepts_uuid(cards)
    allowed = cards.valid if accepts is None else accepts
    columns = (
        *(order, cards.valid, checks.gate, allowed, cards.numa, cards.total_slots, cards.used_slots),
        *(cards.total_cores, cards.used_cores, cards.total_memory, cards.used_memory),
    )
    return np.stack(columns, dtype=np.int64).transpose(2, 0, 1)


def _mig_shape(terms: Terms, entry: NodeEntry, placed: Placed) -> Hashable:
    """What a node's MIG cards can be cut into and what stands on them; no other node's where the pod holds a part."""
    if entry is terms.own_node:
        return entry.id
    standing = tuple((row - entry.start, tuple(places)) for row, places in sorted(entry.held.items()) if places)
    taken = [(slot, tuple(placed[row])) for slot, row in enumerate(entry.block) if row in placed] if placed else []
    return entry.cuts, standing, tuple(taken)


def _pair_shape(entry: NodeEntry, ask: Ask) -> bytes:
    return entry.pairs.tobytes() if ask.collects_all and entry.pairs is not None else b""


def _cards(terms: Terms, entry: NodeEntry, numbers: Ints, placed: Placed) -> list[Card]:
    """Working copies of a node's cards in the order of trying; numbers: its part of `_table`."""
    turns, valid, *_ = numbers.tolist()
    rows = list(zip(*numbers[2:].tolist(), strict=True))
    return [_card(terms, entry, slot, rows[slot], placed) for slot in turns if valid[slot]]


def _card(terms: Terms, entry: NodeEntry, slot: int, numbers: tuple[int, ...], placed: Placed) -> Card:
    gate, accepts_uuid, numa, total_slots, used_slots, total_cores, used_cores, total_memory, used_memory = numbers
    card = Card(
        slot,
        entry.fragment.uuids[slot],
        gate,
        bool(accepts_uuid),
        numa,
        total_slots,
        used_slots,
        total_cores,
        used_cores,
        total_memory,
        used_memory,
    )
    row = entry.start + slot
    if entry.is_mig(row):
        card.is_mig = True
        card.profiles = entry.profiles(row)
        card.placements = [*terms.standing(entry, row), *placed.get(row, ())]
    return card
