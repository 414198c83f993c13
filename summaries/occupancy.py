"""Which pod was on which node with which devices, from when to when: pure.

What is known of one pod's name are *facts*: binds, and what was seen of it. They come late, twice and in any order; the
same facts make the same stays. A name may have had many pods, one after the other, told apart by their UID; what a
source says without a UID is taken to be about the pod that was there by then.

    Bind, Sight ──add──▶ Facts ──stays──▶ Made (a stay, and the facts it is made from)
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import blake2b
from itertools import zip_longest
from typing import Final, NamedTuple, TypeAlias

from schemas.events import PodObserved, PodRef
from schemas.ids import microseconds
from schemas.stays import Held, Stay

DELETED: Final = "deleted"
REPLACED: Final = "replaced"
MOVED: Final = "moved"
ENDS: Final = frozenset(("Succeeded", "Failed", DELETED))

ADOPTED_WITHIN: Final = timedelta(minutes=10)
"""So long after a bind without a UID may the pod be seen that it was about: clocks differ, watches lag."""
MOST_WITHOUT_UID: Final = 128
"""Sights of one name that are kept where no UID tells its pods apart."""

_DELETED_CONDITION: Final = "Deleted"
"""scheduler-sniffer's: its pods have conditions only."""


@dataclass(frozen=True, slots=True)
class Bind:
    """The end of a bind, as the attempt's summary of that ``version`` has it."""

    attempt_id: str
    scheduler: str
    started: datetime
    """The attempt's."""
    uid: str
    node: str
    at: datetime
    bound: bool
    version: int
    held: tuple[Held, ...] = ()


@dataclass(frozen=True, slots=True)
class Sight:
    """A pod seen on a node (empty: not known) in a ``state``: a phase, or ``deleted``."""

    uid: str
    node: str
    state: str
    at: datetime
    scheduled: datetime | None = None
    """Since when the cluster says it is scheduled."""


Fact: TypeAlias = Bind | Sight


@dataclass(frozen=True, slots=True)
class Made:
    """A stay, and what it is made from: enough to make it again."""

    stay: Stay
    binds: tuple[Bind, ...]
    sights: tuple[Sight, ...]
    bind: Bind | None
    """The one that the stay began with."""


def sight_of(event: PodObserved) -> Sight | None:
    """None where nothing is said of a node, nor of an end."""
    gone = event.deleted or any(each.type == _DELETED_CONDITION for each in event.conditions)
    state = DELETED if gone else event.phase
    if not event.node and state not in ENDS:
        return None
    said = (each.since for each in event.conditions if each.type == "PodScheduled" and each.status == "True")
    return Sight(event.pod.uid, event.node, state, event.observed, next(said, None) if event.node else None)


class Facts:
    """What is known of the pods of one name. ``add`` in any order, and again, comes to the same."""

    def __init__(self, namespace: str, name: str, facts: Iterable[Fact] = ()) -> None:
        self.namespace, self.name = namespace, name
        self._binds: dict[str, Bind] = {}
        self._sights: dict[tuple[object, ...], Sight] = {}
        for fact in facts:
            self.add(fact)

    def add(self, fact: Fact) -> bool:
        """Does it say anything new?"""
        return self._add_bind(fact) if isinstance(fact, Bind) else self._add_sight(fact)

    def _add_bind(self, bind: Bind) -> bool:
        known = self._binds.get(bind.attempt_id)
        if known and _knowledge(known) >= _knowledge(bind):
            return False
        self._binds[bind.attempt_id] = bind
        return True

    def _add_sight(self, sight: Sight) -> bool:
        key = (sight.uid, sight.node, sight.state) if sight.uid else (sight.uid, sight.node, sight.state, sight.at)
        known = self._sights.get(key)
        first = _first(known, sight) if known else sight
        self._sights[key] = first
        if first != known and not sight.uid:
            self._forget_old_ones()
        return first != known

    def _forget_old_ones(self) -> None:
        nameless = sorted((sight.at, key) for key, sight in self._sights.items() if not sight.uid)
        for _, key in nameless[:-MOST_WITHOUT_UID]:
            del self._sights[key]

    def stays(self) -> list[Made]:
        """By time. A pod is on one node at a time, and a name has one pod at a time: the later one ends the earlier."""
        binds = [bind for bind in self._binds.values() if bind.bound]
        begun = sorted(_parts([*binds, *self._sights.values()]), key=_order)
        return [self._made(part, later) for part, later in zip_longest(begun, begun[1:])]

    def _made(self, part: "_Part", later: "_Part | None") -> Made:
        until, ended_by = part.end or (None, "")
        if later and (until is None or until > later.began):
            until, ended_by = later.began, MOVED if part.uid and part.uid == later.uid else REPLACED
        bind = part.bind
        stay = Stay.model_construct(
            id=part.id(f"{self.namespace}/{self.name}"),
            pod=PodRef(namespace=self.namespace, name=self.name, uid=part.uid),
            node=part.node,
            began=part.began,
            until=max(until, part.began) if until else None,
            ended_by=ended_by,
            scheduler=bind.scheduler if bind else "",
            attempt_id=bind.attempt_id if bind else "",
            phase=part.phase,
            held=list(bind.held) if bind else [],
        )
        return Made(stay, tuple(sorted(part.binds, key=_time)), tuple(sorted(part.sights, key=_time)), bind)


def _time(fact: Fact) -> tuple[datetime, str]:
    return fact.at, repr(fact)


def _knowledge(bind: Bind) -> tuple[object, ...]:
    """Of two tellings of one attempt the greater one holds."""
    return bind.version, bind.bound, len(bind.held), bind.at, bind.node, bind.uid


def _first(one: Sight, other: Sight) -> Sight:
    scheduled = [each.scheduled for each in (one, other) if each.scheduled]
    return Sight(one.uid, one.node, one.state, min(one.at, other.at), min(scheduled, default=None))


@dataclass(slots=True)
class _Part:
    """The time of one pod on one node in the making. ``end``: when, and by what."""

    uid: str
    node: str
    binds: list[Bind] = field(default_factory=list)
    sights: list[Sight] = field(default_factory=list)
    end: tuple[datetime, str] | None = None

    @property
    def bind(self) -> Bind | None:
        """Of several that tell of the same one, the one that knows the devices."""
        return max(self.binds, key=lambda bind: (bool(bind.held), *_knowledge(bind), bind.attempt_id), default=None)

    @property
    def began(self) -> datetime:
        if bind := self.bind:
            return bind.at
        here = [sight for sight in self.sights if sight.node == self.node]
        return min((each.scheduled for each in here if each.scheduled), default=min(each.at for each in here))

    @property
    def phase(self) -> str:
        seen = [sight for sight in self.sights if sight.state != DELETED]
        return max(seen, key=lambda sight: (sight.at, sight.state)).state if seen else ""

    def id(self, pod: str) -> str:
        """Of a pod without UID the bind tells this stay from others, else its beginning."""
        bind = self.bind
        which = self.uid or (bind.attempt_id if bind else str(microseconds(self.began)))
        said = "\x1f".join(("uid" if self.uid else "name", "" if self.uid else pod, which, self.node))
        return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _order(part: _Part) -> tuple[datetime, str, str]:
    return part.began, part.uid, part.node


class _Span(NamedTuple):
    """When which pod was where."""

    uid: str
    node: str
    began: datetime
    until: datetime | None


@dataclass(slots=True)
class _Life:
    """Everything about one pod; without a UID what is about none of the pods with one."""

    uid: str
    binds: list[Bind] = field(default_factory=list)
    sights: list[Sight] = field(default_factory=list)

    def take(self, fact: Fact) -> None:
        if isinstance(fact, Bind):
            self.binds.append(fact)
        else:
            self.sights.append(fact)

    @property
    def end(self) -> tuple[datetime, str] | None:
        # A pod that came to its end is deleted some time after: how it ended is said first.
        ends = [(sight.at, sight.state == DELETED, sight.state) for sight in self.sights if sight.state in ENDS]
        return (min(ends)[0], min(ends)[2]) if ends else None

    def parts(self) -> list[_Part]:
        nodes = ({bind.node for bind in self.binds} | {sight.node for sight in self.sights}) - {""}
        return [
            _Part(
                self.uid, node, [bind for bind in self.binds if bind.node == node],
                [sight for sight in self.sights if sight.node in (node, "")], self.end,
            )
            for node in sorted(nodes)
        ]  # fmt: skip


def _lives(facts: Iterable[Fact]) -> dict[str, _Life]:
    lives: dict[str, _Life] = {}
    for fact in facts:
        lives.setdefault(fact.uid, _Life(fact.uid)).take(fact)
    return lives


def _parts(facts: Iterable[Fact]) -> list[_Part]:
    """What has no UID goes to the pod that it fits, else it makes stays of its own."""
    lives = _lives(facts)
    nameless = lives.pop("", _Life(""))
    rest = [bind for bind in nameless.binds if not _given(bind, _bound(bind, _spans(lives)), lives)]
    # Only with their binds is it known since when pods are there.
    spans = _spans(lives)
    left = [sight for sight in nameless.sights if not _given(sight, _seen(sight, spans), lives)]
    return [*(part for life in lives.values() for part in life.parts()), *_in_turn([*rest, *left])]


def _given(fact: Fact, uid: str | None, lives: Mapping[str, _Life]) -> bool:
    if uid:
        lives[uid].take(fact)
    return bool(uid)


def _spans(lives: Mapping[str, _Life]) -> list[_Span]:
    parts = sorted((part for life in lives.values() for part in life.parts()), key=_order)
    spans = []
    for part, later in zip_longest(parts, parts[1:]):
        ends = [*([part.end[0]] if part.end else []), *([later.began] if later else [])]
        spans.append(_Span(part.uid, part.node, part.began, min(ends, default=None)))
    return spans


def _bound(bind: Bind, spans: Sequence[_Span]) -> str | None:
    """The first pod there that had not ended by then."""
    fits = (
        each.uid
        for each in spans
        if each.node == bind.node
        and (each.until is None or each.until > bind.at)
        and each.began - bind.at <= ADOPTED_WITHIN
    )
    return next(fits, None)


def _seen(sight: Sight, spans: Sequence[_Span]) -> str | None:
    """The latest pod there that had begun by then, unless it had ended."""
    fits = [
        each.uid
        for each in spans
        if sight.node in ("", each.node) and each.began <= sight.at and (each.until is None or sight.at <= each.until)
    ]
    return fits[-1] if fits else None


def _in_turn(facts: Iterable[Fact]) -> list[_Part]:
    """Without UIDs: a bind begins a stay, so does a pod that is seen where none was; an end ends it."""
    found: list[_Part] = []
    for fact in sorted(facts, key=_time):
        last = found[-1] if found else None
        goes_on = last is not None and fact.node in ("", last.node) and _belongs(last, fact)
        if not goes_on and fact.node:
            found.append(_Part("", fact.node))
        if goes_on or fact.node:
            _take(found[-1], fact)
    return found


def _belongs(part: _Part, fact: Fact) -> bool:
    if isinstance(fact, Bind):
        return part.end is None and not part.binds
    return part.end is None or fact.state in ENDS


def _take(part: _Part, fact: Fact) -> None:
    if isinstance(fact, Bind):
        part.binds.append(fact)
        return
    part.sights.append(fact)
    if fact.state in ENDS and part.end is None:
        part.end = fact.at, fact.state
