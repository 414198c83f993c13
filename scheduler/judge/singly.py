"""Nodes that are walked card by card: those with MIG cards, and all of them for a topology-aware pod."""

from collections.abc import Iterator, Mapping, Sequence

from scheduler.devices.mig import Placement
from scheduler.devices.node_entry import NodeEntry
from scheduler.devices.quota import Room
from scheduler.judge.ask import Ask
from scheduler.judge.cards import Cards, Ints
from scheduler.judge.fit import Checks
from scheduler.judge.terms import Terms
from scheduler.judge.turns import Left
from scheduler.judge.walk import Card, Walk, walk

Placed = Mapping[int, Sequence[Placement]]
"""By device row: the instances that the pod's own containers took so far."""


def walk_nodes(
    terms: Terms, cards: Cards, ask: Ask, checks: Checks, order: Ints, left: Left | None, placed: Placed
) -> list[Walk]:
    """One walk per node of `cards`; order (slots, n) as `trying_order` gives it."""
    listed = _cards_by_node(terms, cards, checks, placed)
    entries = terms.columns.entries(cards.ids.tolist())
    orders = order.T.tolist()
    rooms = zip(left.memory.tolist(), left.cores.tolist(), strict=True) if left else None
    return [
        walk(
            [by_slot[slot] for slot in turns if slot in by_slot],
            ask,
            Room(*next(rooms)) if rooms else Room(),
            entry.devices.pair_scores,
        )
        for entry, by_slot, turns in zip(entries, listed, orders, strict=True)
    ]


def _cards_by_node(terms: Terms, cards: Cards, checks: Checks, placed: Placed) -> Iterator[dict[int, Card]]:
    """Working copies of each node's cards, by slot."""
    accepts = terms.accepts_uuid(cards)
    allowed = cards.valid if accepts is None else accepts
    columns = (
        *(checks.gate, allowed, cards.numa, cards.total_slots, cards.used_slots, cards.total_cores),
        *(cards.used_cores, cards.total_memory, cards.used_memory),
    )
    by_node = zip(*(matrix.T.tolist() for matrix in columns), strict=True)
    entries = terms.columns.entries(cards.ids.tolist())
    for entry, valid, numbers in zip(entries, cards.valid.T.tolist(), by_node, strict=True):
        rows = enumerate(zip(*numbers, strict=True))
        yield {slot: _card(terms, entry, slot, row, placed) for slot, row in rows if valid[slot]}


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
