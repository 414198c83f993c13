"""One pod against one batch of nodes, container after container.

Init containers each see the cards as they are; app containers also see what the app containers before them took. A node
that refuses a container is not asked about later ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduler import codes
from scheduler.ask import Ask, ask_of
from scheduler.cards import Bools, Cards, Ints
from scheduler.columns import MIG_MODE, ClusterColumns
from scheduler.fit import Checks, Fit, check, fit, gate
from scheduler.judgement import Part, flat_part, join, looked_part
from scheduler.mig import Placement
from scheduler.order import device_scores, trying_order
from scheduler.quota import Room
from scheduler.request import ContainerRequest
from scheduler.turns import Left, fit_in_turns
from scheduler.usage import PodUse
from scheduler.walk import Card, Pick, Walk, walk
from scheduler.wishes import Wishes


@dataclass(frozen=True, slots=True)
class Terms:
    """What is the same for all nodes of one attempt.

    own: what the pod holds already, and gives back. accepts_row, shape (device rows,): the pod's UUID lists; None where
    it has none. one_by_one: every node is walked card by card, which also tells the picks in their order.
    """

    columns: ClusterColumns
    wishes: Wishes
    room: Room
    own: PodUse | None
    accepts_kind: Bools  # (kinds,)
    is_bare_kind: Bools  # (kinds,) the model is nothing but the vendor's name
    accepts_row: Bools | None
    one_by_one: bool = False


class Trial:
    """The nodes of one batch that passed so far. Arrays per node have shape (n,) and shrink as nodes refuse."""

    def __init__(self, terms: Terms, cards: Cards) -> None:
        self._terms = terms
        self._cards = cards
        if terms.own:
            self._give_back(terms.own)
        self._apps = cards.with_own_use()
        self._gate = gate(cards, terms.accepts_kind)
        self._memory_taken = np.zeros(len(cards.ids), np.int64)
        self._cores_taken = np.zeros(len(cards.ids), np.int64)
        self._placed: dict[int, list[Placement]] = {}  # by device row: instances that app containers took
        self.picks: list[list[Pick]] = []
        """Picks of the latest container on the nodes that were walked card by card."""

    @property
    def is_over(self) -> bool:
        return not self._cards.ids.size

    @property
    def passed(self) -> Ints:
        """Positions of the nodes that passed all containers so far."""
        return self._cards.nodes

    def _give_back(self, own: PodUse) -> None:
        columns, cards = self._terms.columns, self._cards
        entry = columns.entry(own.node)
        for node in np.flatnonzero(cards.ids == entry.id).tolist() if entry else ():
            for uuid, share in own.by_uuid.items():
                for slot in (row - entry.start for row in entry.rows.get(uuid, ())) if entry else ():
                    cards.used_slots[slot, node] -= share.slots
                    cards.used_cores[slot, node] -= share.cores
                    cards.used_memory[slot, node] -= share.memory_mib
                    cards.unsound[slot, node] -= entry.unsound(entry.start + slot, share)

    def judge(self, request: ContainerRequest) -> Part:
        """Judge one container on the nodes that passed so far, and keep only those that pass it too."""
        cards = self._cards if request.is_init else self._apps
        ask = ask_of(request, self._terms.wishes)
        nodes = self._terms.columns.nodes
        is_short = ask.count > nodes["countable"][cards.ids]
        if self._terms.wishes.accepts_mode(MIG_MODE):
            # One MIG card may hold several instances, so there a small number of cards proves nothing.
            is_short &= ~nodes["has_mig"][cards.ids]
        checks = check(cards, ask, self._gate, self._accepts_uuid(cards))
        singly = (nodes["has_mig"][cards.ids] | ask.collects_all | self._terms.one_by_one) & ~is_short
        part = self._judge_apart(cards, ask, checks, is_short, singly, request.is_init)
        self._keep(part.passed)
        return part

    def _judge_apart(
        self, cards: Cards, ask: Ask, checks: Checks, is_short: Bools, singly: Bools, is_init: bool
    ) -> Part:
        """Plain nodes together, the others one by one."""
        parts = []
        if not singly.all():
            plain = np.flatnonzero(~singly)
            parts.append(self._judge_together(cards, ask, checks, is_short, plain, is_init))
        if singly.any():
            parts.append(self._judge_singly(cards, ask, checks, np.flatnonzero(singly), is_init))
        return join(parts)

    def _judge_together(
        self, cards: Cards, ask: Ask, checks: Checks, is_short: Bools, where: Ints, is_init: bool
    ) -> Part:
        is_all = where.size == cards.ids.size
        some = cards if is_all else cards.only(where)
        result = self._fit(some, ask, checks if is_all else checks.only(where), where, is_init)
        short = is_short[where]
        if short.any():
            result.verdict[:, short] = codes.NOT_REACHED
            result.passed[short] = False
        asked = checks.memory if is_all else checks.memory[:, where]
        part = flat_part(some, result.verdict, result.passed, short, asked)
        if not is_init and result.passed.any():
            self._take(ask, result, where, asked)
        return part

    def _fit(self, cards: Cards, ask: Ask, checks: Checks, where: Ints, is_init: bool) -> Fit:
        left = self._left(where, is_init)
        if left is None and not ask.numa_bind:
            return fit(cards, ask, checks, lambda some: self._order(cards.only(some), ask))
        return fit_in_turns(cards, ask, checks, self._order(cards, ask), left)

    def _order(self, cards: Cards, ask: Ask) -> Ints:
        bare = self._terms.is_bare_kind[cards.kind]
        scores = device_scores(cards, ask, self._terms.wishes.weights, bare)
        return trying_order(cards, scores, self._terms.wishes)

    def _accepts_uuid(self, cards: Cards) -> Bools | None:
        accepts = self._terms.accepts_row
        return None if accepts is None else accepts[cards.rows]

    def _left(self, where: Ints, is_init: bool) -> Left | None:
        room = self._terms.room
        if not room.is_limited:
            return None
        if is_init:
            return Left(np.full(where.size, room.memory_mib), np.full(where.size, room.cores))
        return Left(room.memory_mib - self._memory_taken[where], room.cores - self._cores_taken[where])

    def _take(self, ask: Ask, result: Fit, where: Ints, asked: Ints) -> None:
        """Count what app containers took on plain nodes."""
        picked = result.picked & result.passed
        memory = picked * asked
        apps = self._apps
        apps.used_slots[:, where] += picked
        apps.used_cores[:, where] += picked * ask.cores
        apps.used_memory[:, where] += memory
        self._memory_taken[where] += memory.sum(axis=0)
        self._cores_taken[where] += picked.sum(axis=0) * ask.cores

    def _judge_singly(self, cards: Cards, ask: Ask, checks: Checks, where: Ints, is_init: bool) -> Part:
        some = cards.only(where)
        order, left = self._order(some, ask), self._left(where, is_init)
        walks = []
        for place, node in enumerate(where.tolist()):
            room = Room(int(left.memory[place]), int(left.cores[place])) if left else Room()
            listed = self._cards_of(cards, checks, node, order[:, place].tolist(), is_init)
            entry = self._terms.columns.entries([int(cards.ids[node])])[0]
            walks.append(walk(listed, ask, room, entry.devices.pair_scores if entry else {}))
        part = looked_part(some, walks, checks.memory[:, where])
        if not is_init:
            self._take_walks(walks, where)
        self.picks = [done.picks for done in walks]
        return part

    def _cards_of(self, cards: Cards, checks: Checks, node: int, order: list[int], is_init: bool) -> list[Card]:
        entry = self._terms.columns.entries([int(cards.ids[node])])[0]
        assert entry is not None
        accepts = self._accepts_uuid(cards)
        columns = [
            matrix[:, node].tolist()
            for matrix in (
                checks.gate,
                cards.numa,
                cards.total_slots,
                cards.used_slots,
                cards.total_cores,
                cards.used_cores,
                cards.total_memory,
                cards.used_memory,
            )
        ]
        found = []
        for slot in order:
            if not cards.valid[slot, node]:
                continue
            gate_, *numbers = (column[slot] for column in columns)
            row = entry.start + slot
            placed = [] if is_init else self._placed.get(row, [])
            found.append(
                Card(
                    slot,
                    entry.fragment.uuids[slot],
                    gate_,
                    accepts is None or bool(accepts[slot, node]),
                    *numbers,
                    profiles=entry.profiles(row),
                    is_mig=bool(cards.is_mig[slot, node]),
                    placements=[
                        *self._standing(entry.held.get(row, []), entry.fragment.name, entry.fragment.uuids[slot]),
                        *placed,
                    ],
                )
            )
        return found

    def _standing(self, held: Sequence[Placement], node: str, uuid: str) -> list[Placement]:
        """What stands on a card without the pod's own earlier instances."""
        rest = list(held)
        own = self._terms.own
        if own and own.node == node and uuid in own.by_uuid:
            for _, placement in own.by_uuid[uuid].instances:
                if placement in rest:
                    rest.remove(placement)
        return rest

    def _take_walks(self, walks: Sequence[Walk], where: Ints) -> None:
        """Count what app containers took on nodes that were walked."""
        apps = self._apps
        for node, done in zip(where.tolist(), walks, strict=True):
            for pick in done.picks if done.passed else ():
                slot = pick.card.position
                apps.used_slots[slot, node] += 1
                apps.used_cores[slot, node] += pick.cores
                apps.used_memory[slot, node] += pick.memory_mib
                self._memory_taken[node] += pick.memory_mib
                self._cores_taken[node] += pick.cores
                if pick.mig:
                    self._placed.setdefault(int(apps.rows[slot, node]), []).append(pick.mig.placement)

    def _keep(self, passed: Bools) -> None:
        if passed.all():
            return
        self._cards, self._apps = self._cards.only(passed), self._apps.only(passed)
        self._gate = self._gate[:, passed]
        self._memory_taken, self._cores_taken = self._memory_taken[passed], self._cores_taken[passed]
