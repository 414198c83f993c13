"""One pod against one batch of nodes, container after container.

Init containers each see the cards as they are; app containers also see what the app containers before them took. A node
that refuses a container is not asked about later ones.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from hami.mig import Placement
from scheduler.devices.node_entry import MIG_MODE
from scheduler.judge import verdict_codes
from scheduler.judge.device_matrix import Bools, Cards, Ints
from scheduler.judge.device_request import Ask, ask_of
from scheduler.judge.fit import Checks, Fit, check, collect, fit, gate
from scheduler.judge.per_node import walk_nodes
from scheduler.judge.pod_constraints import Terms, give_back
from scheduler.judge.reference_fit import Pick, Walk
from scheduler.judge.request import ContainerRequest
from scheduler.judge.results import Part, flat_part, join, looked_part
from scheduler.judge.scoring import device_scores, trying_order
from scheduler.judge.sequential_fit import Left, fit_in_turns
from scheduler.judge.topology import keep_best


class Trial:
    """The nodes of one batch that passed so far. Arrays per node have shape (n,) and shrink as nodes refuse."""

    def __init__(self, terms: Mapping[str, Terms], cards: Cards) -> None:
        """terms: by vendor; `cards` are judged for the first of them."""
        self._by_vendor = terms
        self._terms = next(iter(terms.values()))
        self._cards = cards
        give_back(self._terms, cards)
        self._apps = cards.with_own_use()
        self._gate = gate(cards, self._terms.accepts_kind)
        self._takes = {vendor: Left.nothing(len(cards.ids)) for vendor in terms}
        self._placed: dict[int, list[Placement]] = {}
        self.picks: list[list[Pick]] = []
        """Of the latest container, on the nodes that were walked card by card."""

    @property
    def is_over(self) -> bool:
        return not self._cards.ids.size

    @property
    def passed(self) -> Ints:
        """The offered nodes, by position, that passed all containers so far."""
        return self._cards.nodes

    def judge(self, request: ContainerRequest) -> Part:
        """Judge one container on the nodes that passed so far, and keep only those that pass it too."""
        if request.vendor != self._terms.vendor.word:
            self._turn_to(self._by_vendor[request.vendor])
        cards = self._cards if request.is_init else self._apps
        ask = ask_of(request, self._terms.wishes)
        checks = check(cards, ask, self._gate, self._terms.accepts_uuid(cards))
        is_short = self._is_short(ask)
        has_mig = self._terms.columns.nodes["has_mig"][cards.ids]
        singly = (has_mig | self._terms.one_by_one) & ~is_short
        parts = []
        if not singly.all():
            parts.append(self._judge_together(request, ask, checks, is_short, np.flatnonzero(~singly)))
        if singly.any():
            parts.append(self._judge_singly(request, ask, checks, np.flatnonzero(singly)))
        part = join(parts)
        self._keep(part.passed)
        return part

    def _turn_to(self, terms: Terms) -> None:
        """Judge another vendor's cards from here on."""
        self._terms = terms
        self._cards = self._cards.of_vendor(terms.columns, terms.code)
        self._apps = self._apps.of_vendor(terms.columns, terms.code)
        self._gate = gate(self._cards, terms.accepts_kind)

    @property
    def _taken(self) -> Left:
        """What the pod's app containers took of the vendor so far."""
        return self._takes[self._terms.vendor.word]

    def _is_short(self, ask: Ask) -> Bools:
        """Nodes with fewer cards than asked for; but one MIG card may hold several instances."""
        short = ask.count > self._cards.judged
        if self._terms.vendor.pod.mode and self._terms.wishes.accepts_mode(MIG_MODE):
            short &= ~self._terms.columns.nodes["has_mig"][self._cards.ids]
        return short

    def _judge_together(
        self, request: ContainerRequest, ask: Ask, checks: Checks, is_short: Bools, where: Ints
    ) -> Part:
        cards = self._cards if request.is_init else self._apps
        if where.size < cards.ids.size:
            cards, checks, is_short = cards.only(where), checks.only(where), is_short[where]
        result = self._fit(cards, ask, checks, self._left(where, request.is_init))
        result.verdict[:, is_short] = verdict_codes.NOT_REACHED
        result.passed[is_short] = False
        part = flat_part(cards, result.verdict, result.passed, is_short, checks.memory)
        if not request.is_init and result.passed.any():
            self._take(ask, result, checks.memory, where)
        return part

    def _fit(self, cards: Cards, ask: Ask, checks: Checks, left: Left | None) -> Fit:
        in_turns = left is not None or ask.numa_bind
        if not in_turns and not ask.collects_all:
            return fit(cards, ask, checks, lambda some: self._order(cards.only(some), ask))
        order = self._order(cards, ask)
        found = fit_in_turns(cards, ask, checks, order, left) if in_turns else collect(cards, ask, checks)
        if ask.collects_all:
            keep_best(found, ask, order, [entry.pairs for entry in self._terms.columns.entries(cards.ids.tolist())])
        return found

    def _order(self, cards: Cards, ask: Ask) -> Ints:
        bare = self._terms.is_bare_kind[cards.kind]
        scores = device_scores(cards, ask, self._terms.wishes.weights, bare)
        return trying_order(cards, scores, self._terms.wishes)

    def _left(self, where: Ints, is_init: bool) -> Left | None:
        room = self._terms.room
        if not room.is_limited:
            return None
        taken = 0 * self._taken.memory if is_init else self._taken.memory
        cores = 0 * self._taken.cores if is_init else self._taken.cores
        return Left(room.memory_mib - taken[where], room.cores - cores[where])

    def _take(self, ask: Ask, result: Fit, memory: Ints, where: Ints) -> None:
        """Count what an app container took on nodes judged together."""
        picked = result.picked & result.passed
        self._apps.used_slots[:, where] += picked
        self._apps.used_cores[:, where] += picked * ask.cores
        self._apps.used_memory[:, where] += picked * memory
        self._taken.memory[where] += (picked * memory).sum(axis=0)
        self._taken.cores[where] += picked.sum(axis=0) * ask.cores

    def _judge_singly(self, request: ContainerRequest, ask: Ask, checks: Checks, where: Ints) -> Part:
        cards = (self._cards if request.is_init else self._apps).only(where)
        some = checks.only(where)
        placed = {} if request.is_init else self._placed
        left = self._left(where, request.is_init)
        walks = walk_nodes(self._terms, cards, ask, some, self._order(cards, ask), left, placed)
        if not request.is_init:
            self._take_walks(walks, where)
        self.picks = [done.picks for done in walks]
        return looked_part(cards, walks, some.memory)

    def _take_walks(self, walks: Sequence[Walk], where: Ints) -> None:
        """Count what an app container took on nodes that were walked."""
        for node, done in zip(where.tolist(), walks, strict=True):
            for pick in done.picks if done.passed else ():
                self._take_pick(node, pick)

    def _take_pick(self, node: int, pick: Pick) -> None:
        at = (pick.card.position, node)
        self._apps.used_slots[at] += 1
        self._apps.used_cores[at] += pick.cores
        self._apps.used_memory[at] += pick.memory_mib
        self._taken.memory[node] += pick.memory_mib
        self._taken.cores[node] += pick.cores
        if pick.mig:
            self._placed.setdefault(int(self._apps.rows[at]), []).append(pick.mig.placement)

    def _keep(self, passed: Bools) -> None:
        if passed.all():
            return
        self._cards, self._apps = self._cards.only(passed), self._apps.only(passed)
        self._gate = self._gate[:, passed]
        self._takes = {vendor: left.only(passed) for vendor, left in self._takes.items()}
