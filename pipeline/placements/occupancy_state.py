"""The pods and nodes at hand, and which documents follow from what was said: pure.

What is not at hand stands in the index, in documents that say what they were made from: ``load_pod`` and ``load_node``
take them in, and from there on it is as if nothing had been forgotten.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Final, NamedTuple

import orjson

from pipeline.placements import occupancy_queries
from pipeline.placements.device_holdings import Ledger
from pipeline.placements.input_decoder import BoundAttempt, Said, bind_of
from pipeline.placements.observation_dedup import Known, Latest, digest_of
from pipeline.placements.occupancy_queries import Stored
from pipeline.sinks.bulk import Document, source
from schemas.documents.observations import Observed, observation_document, observation_kind
from schemas.documents.placements import placement_document
from schemas.events import FindingReported, NodeRegistered, PodObserved
from schemas.ids import microseconds
from schemas.indices import OBSERVATIONS, OCCUPANCY
from summaries.occupancy import DerivedPlacement, Facts, sighting_of
from summaries.overcommit import Holding, overcommitted, totals_of
from summaries.pod_timelines import Fact

MOST_PODS: Final = 50_000
_REGISTRATIONS: Final = 8
"""Of one node, each with other devices than the one before; what was before that nobody holds any more."""


class PodKey(NamedTuple):
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


Thing = PodKey | str
"""A pod, or a node by its name."""


class Origin(NamedTuple):
    """What a document came from: the record, and what it is about."""

    record: object
    thing: Thing


class _Place(NamedTuple):
    """Of a document. One that moves to another day is in both places when it is cut off in between."""

    index_name: str
    id: str


@dataclass(frozen=True, slots=True)
class _Written:
    version: int
    digest: bytes


@dataclass(slots=True)
class _Pod:
    facts: Facts
    latest: Latest
    written: dict[_Place, _Written] = field(default_factory=dict)
    is_checked: bool = False
    """Does the index say what the facts say? An earlier run may have been cut off in between."""


@dataclass(slots=True)
class _Node:
    latest: dict[tuple[str, str], Latest] = field(default_factory=dict)
    """By kind and scheduler."""
    registrations: list[NodeRegistered] = field(default_factory=list)

    def register(self, event: NodeRegistered) -> bool:
        """Are the devices others than before?"""
        known = sorted([*self.registrations, event], key=lambda each: each.observed_at)
        kept = [each for at, each in enumerate(known) if not at or _devices(each) != _devices(known[at - 1])]
        is_news = kept != self.registrations
        self.registrations = kept[-_REGISTRATIONS:]
        return is_news


def _devices(event: NodeRegistered) -> tuple[bytes, ...]:
    columns = (event.memory_mib, event.cores_percent, event.slots)
    return "\x1f".join(event.uuid).encode(errors="replace"), *(column.tobytes() for column in columns)


def thing_of(said: Said) -> Thing:
    if isinstance(said, BoundAttempt | PodObserved):
        return PodKey(said.pod.namespace, said.pod.name)
    return said.node


class Book:
    """``take`` gives the documents to be written; they are taken for written then."""

    def __init__(self, most_pods: int = MOST_PODS) -> None:
        self.ledger = Ledger()
        self._most = most_pods
        self._pods: OrderedDict[PodKey, _Pod] = OrderedDict()
        self._nodes: dict[str, _Node] = {}
        self._version = 0

    def __len__(self) -> int:
        """Pods at hand."""
        return len(self._pods)

    def lacks(self, thing: Thing) -> bool:
        return thing not in (self._pods if isinstance(thing, PodKey) else self._nodes)

    def load_pod(self, key: PodKey, documents: Iterable[Stored], seen: Iterable[tuple[Known, Observed]]) -> None:
        """The pod as the index knows it."""
        pod = _Pod(Facts(key.namespace, key.name), Latest())
        for known, event in sorted(seen, key=lambda pair: pair[0]):
            pod.latest.remember(known)
            if isinstance(event, PodObserved) and (sight := sighting_of(event)):
                pod.facts.add(sight)
        for each in documents:
            if facts := occupancy_queries.facts_of(each):
                pod.written[_Place(each.index, each.id)] = _Written(each.version, _digest(each.source))
                for fact in facts:
                    pod.facts.add(fact)
        self._pods[key] = pod
        self.ledger.put(str(key), _holdings(pod.facts.placements()))

    def load_node(self, node: str, seen: Iterable[tuple[Known, Observed]]) -> None:
        known = self._nodes[node] = _Node()
        for said, event in sorted(seen, key=lambda pair: pair[0]):
            known.latest.setdefault(_stream(event), Latest()).remember(said)
            if isinstance(event, NodeRegistered):
                known.register(event)

    def load_holdings(self, documents: Iterable[Stored]) -> None:
        """Of pods that are not at hand: what they hold counts nevertheless."""
        by_pod: dict[str, list[Holding]] = {}
        for each in documents:
            if holding := occupancy_queries.holding_of(each):
                by_pod.setdefault(str(holding.placement.pod), []).append(holding)
        for pod, holdings in by_pod.items():
            self.ledger.put(pod, holdings)

    def take(self, said: Said, now: datetime, record: object = None) -> list[Document]:
        """The documents that it makes, changes or ends. What it is about has been loaded."""
        origin = Origin(record, thing_of(said))
        if isinstance(said, BoundAttempt):
            return self._learn(PodKey(said.pod.namespace, said.pod.name), bind_of(said), now, origin)
        if isinstance(said, PodObserved):
            return self._see_pod(said, now, origin)
        return self._see_node(said, origin)

    def _see_pod(self, event: PodObserved, now: datetime, origin: Origin) -> list[Document]:
        key, digest = PodKey(event.pod.namespace, event.pod.name), digest_of(event)
        is_new = self._pods[key].latest.add(Known(event.observed_at, event.id, digest))
        told = [_observation(event, digest, origin)] if is_new else []
        return [*told, *self._learn(key, sighting_of(event), now, origin)]

    def _see_node(self, event: Observed, origin: Origin) -> list[Document]:
        node, digest = self._nodes[str(event.node)], digest_of(event)
        latest = node.latest.setdefault(_stream(event), Latest())
        if not latest.add(Known(event.observed_at, event.id, digest)):
            return []
        if isinstance(event, NodeRegistered) and node.register(event):
            self.ledger.changed(event.node, event.observed_at)
        return [_observation(event, digest, origin)]

    def _learn(self, key: PodKey, fact: Fact | None, now: datetime, origin: Origin) -> list[Document]:
        pod = self._pods[key]
        self._pods.move_to_end(key)
        is_new = fact is not None and pod.facts.add(fact)
        if pod.is_checked and not is_new:
            return []
        pod.is_checked = True
        made = pod.facts.placements()
        self.ledger.put(str(key), _holdings(made))
        return list(self._changes(pod, made, now, origin))

    def _changes(
        self, pod: _Pod, made: Sequence[DerivedPlacement], now: datetime, origin: Origin
    ) -> Iterator[Document]:
        """Stays as the index does not have them yet. One that turns out to have begun on another day goes there.

        What a document no longer says another one says by then, wherever this is cut off: new ones come first, those
        that are gone last.
        """
        wanted = {_Place(OCCUPANCY.name(each.placement.started_at), each.placement.id): each for each in made}
        for place in sorted(wanted, key=pod.written.__contains__):
            said = source(placement_document(wanted[place].placement, occupancy_queries.known(wanted[place])))
            known, digest = pod.written.get(place), _digest(orjson.loads(said))
            if known is None or known.digest != digest:
                version = self._next_version(now, known.version if known else 0)
                pod.written[place] = _Written(version, digest)
                yield Document(*place, said, version, origin)
        for place in [each for each in pod.written if each not in wanted]:
            version = self._next_version(now, pod.written.pop(place).version)
            yield Document(*place, b"", version, origin, is_deletion=True)

    def _next_version(self, now: datetime, before: int) -> int:
        """Greater than any that was given to the document, also where it was deleted in between."""
        self._version = max(self._version + 1, before + 1, microseconds(now))
        return self._version

    def forget(self, things: Iterable[Thing]) -> None:
        """Somebody else has written about them: the index has to be asked again."""
        for thing in things:
            if isinstance(thing, PodKey):
                self._pods.pop(thing, None)

    def trim(self) -> None:
        """Pods that nothing was said of for longest leave; what they hold stays in the ledger."""
        while len(self._pods) > self._most:
            self._pods.popitem(last=False)

    def nodes_to_load(self) -> list[str]:
        """Whose devices are about to be judged."""
        return [node for node in self.ledger.nodes_to_look_at() if self.lacks(node)]

    def judge(self, until: datetime) -> list[FindingReported]:
        """What is wrong with devices that somebody came to or went from; all before ``until`` is known."""
        found: list[FindingReported] = []
        for device, holdings in self.ledger.look_at(until):
            totals = totals_of(self._nodes[device.node].registrations, device.uuid)
            found += overcommitted(device.uuid, holdings, totals, until)
        self.ledger.forget(until)
        return found


def _stream(event: Observed) -> tuple[str, str]:
    return observation_kind(event), getattr(event, "scheduler", "")


def _holdings(made: Iterable[DerivedPlacement]) -> list[Holding]:
    return [Holding(each.placement, each.bind.started_at) for each in made if each.bind]


def _observation(event: Observed, digest: str, origin: Origin) -> Document:
    written = source(observation_document(event, digest))
    return Document(OBSERVATIONS.name(event.observed_at), event.id, written, None, origin)


def _digest(document: object) -> bytes:
    """Equal for equal documents, whatever the order of their fields."""
    return blake2b(orjson.dumps(document, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()
