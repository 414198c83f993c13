"""One container against one node's cards, one card after the other, as HAMi's `Fit` walks them.

The plain form of the rules. It alone can look at a card more than once (several MIG instances of one card); where that
is not asked for, `fit`, `turns` and `topology` say the same for all nodes at once, and a property test holds them
together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hami.mig import MigChoice, MigProfile, Placement, choose
from scheduler.devices.pair_scores import PairScores
from scheduler.devices.quota import Room
from scheduler.judge import verdict_codes
from scheduler.judge.device_request import Ask
from scheduler.judge.topology import best_cards


@dataclass(slots=True)
class Card:
    """One device while a node is judged; a working copy. `gate`: the refusal that needs no numbers, or 0."""

    position: int
    uuid: str
    gate: int
    accepts_uuid: bool
    numa: int
    total_slots: int
    used_slots: int
    total_cores: int
    used_cores: int
    total_memory: int
    used_memory: int
    profiles: tuple[MigProfile, ...] = ()
    is_mig: bool = False
    placements: list[Placement] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Pick:
    """A card taken: MiB and cores given, and the instance on a MIG card. `look` is its row in Walk.looks."""

    card: Card
    memory_mib: int
    cores: int
    mig: MigChoice | None
    look: int


@dataclass(slots=True)
class Walk:
    """What became of the cards: each look (position, verdict) in the order of looking, and the picks in theirs."""

    looks: list[tuple[int, int]] = field(default_factory=list)
    picks: list[Pick] = field(default_factory=list)
    passed: bool = False

    def look(self, card: Card, verdict: int) -> int:
        self.looks.append((card.position, verdict))
        return len(self.looks) - 1

    def drop_picks(self, verdict: int) -> None:
        for pick in self.picks:
            self.looks[pick.look] = (pick.card.position, verdict)
        self.picks = []


def walk(cards: Sequence[Card], ask: Ask, room: Room, scores: PairScores) -> Walk:
    """Try the cards in the given order. Cards of MIG are changed by what is picked on them."""
    done = Walk()
    numa: int | None = None
    for card in cards:
        if ask.numa_bind and not card.gate and card.numa != numa:
            # HAMi counts nothing for what its topology-aware walk drops here.
            done.drop_picks(verdict_codes.FITS if ask.collects_all else verdict_codes.NUMA_NOT_FIT)
            numa = card.numa
        _try_card(done, card, ask, room)
        if not ask.collects_all and len(done.picks) >= ask.count:
            break
    _conclude(done, cards, ask, scores)
    return done


def _try_card(done: Walk, card: Card, ask: Ask, room: Room) -> None:
    while True:
        refusal = _refusal(card, ask, room, done.picks)
        choice = None
        if not refusal and card.is_mig:
            choice = choose(card.profiles, ask.memory_of(card.total_memory), card.placements)
            refusal = 0 if choice else verdict_codes.CARD_MIG_TOPOLOGY_INFEASIBLE
        look = done.look(card, refusal or verdict_codes.PICKED)
        if refusal:
            return
        memory, cores = (choice.profile.memory_mib, choice.profile.cores) if choice else _plain_share(card, ask)
        done.picks.append(Pick(card, memory, cores, choice, look))
        if not choice or len(done.picks) >= ask.count:
            return
        # Until the container has all it asked for, HAMi counts only where instances stand, not what they use.
        card.placements.append(choice.placement)


def _plain_share(card: Card, ask: Ask) -> tuple[int, int]:
    return ask.memory_of(card.total_memory), ask.cores


def _refusal(card: Card, ask: Ask, room: Room, picks: Sequence[Pick]) -> int:
    """The first check that the card fails, or 0."""
    if card.gate:
        return card.gate
    if not card.accepts_uuid:
        return verdict_codes.CARD_UUID_MISMATCH
    if card.total_slots <= card.used_slots:
        return verdict_codes.CARD_TIME_SLICING_EXHAUSTED
    if ask.is_mutex and card.used_slots > 0:
        return verdict_codes.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT
    memory = ask.memory_of(card.total_memory)
    if room.is_limited and _is_over(room, picks, memory, ask.cores):
        return verdict_codes.RESOURCE_QUOTA_NOT_FIT
    if card.total_memory - card.used_memory < memory:
        return verdict_codes.CARD_INSUFFICIENT_MEMORY
    return _core_refusal(card, ask)


def _core_refusal(card: Card, ask: Ask) -> int:
    if card.total_cores - card.used_cores < ask.cores:
        return verdict_codes.CARD_INSUFFICIENT_CORE
    if card.total_cores == 100 and ask.wants_whole_card and card.used_slots > 0:
        return verdict_codes.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT
    if card.total_cores != 0 and card.used_cores == card.total_cores and ask.cores == 0:
        return verdict_codes.CARD_COMPUTE_UNITS_EXHAUSTED
    return 0


def _is_over(room: Room, picks: Sequence[Pick], memory_mib: int, cores: int) -> bool:
    memory = memory_mib + sum(pick.memory_mib for pick in picks)
    return memory > room.memory_mib or cores + sum(pick.cores for pick in picks) > room.cores


def _conclude(done: Walk, cards: Sequence[Card], ask: Ask, scores: PairScores) -> None:
    done.passed = len(done.picks) >= ask.count
    if not done.passed:
        for pick in done.picks:
            done.looks[pick.look] = (pick.card.position, verdict_codes.ALLOCATED_CARDS_INSUFFICIENT_REQUEST)
        return
    if ask.collects_all:
        _keep_best(done, ask.count, scores)
    looked = {position for position, _ in done.looks}
    for card in cards:
        if card.position not in looked:
            done.look(card, verdict_codes.NOT_REACHED)


def _keep_best(done: Walk, count: int, scores: PairScores) -> None:
    kept = [done.picks[place] for place in best_cards([pick.card.uuid for pick in done.picks], count, scores)]
    taken = {pick.look for pick in kept}
    for pick in done.picks:
        if pick.look not in taken:
            done.looks[pick.look] = (pick.card.position, verdict_codes.FITS)
    done.picks = kept
