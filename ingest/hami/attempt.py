"""What is known of one scheduling try so far, line by line.

Nothing here guesses. A device line names no node, so its node comes from the registry or stays open; a node's refusal
names no container, so the container comes from the walk's order, or from what the container asks for, or stays open.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from hami.reason_codes import ReasonCode
from hami.requests import UNSET_PERCENT
from ingest.hami.registry import Cards
from schemas.events import FITS, REFUSED

UNKNOWN: Final = -1
"""Of a container's position: the log does not say it."""

MAX_DEVICES: Final = 400_000
"""Of one attempt: 5,000 nodes with 8 cards and ten containers. More are no attempt but noise."""

NAMES_CARDS: Final = 4
"""The log level from which on every card that is tried has a line."""


class Asked(NamedTuple):
    """What one container asks for, as the log says it."""

    vendor: str
    devices: int
    memory_mib: int
    memory_percent: int
    cores_percent: int


NOTHING: Final = Asked("", 0, 0, UNSET_PERCENT, 0)


class NodeLine(NamedTuple):
    """What the log says of a node: ``fits`` or ``refused``, and why."""

    verdict: str
    score: float = 0.0
    is_exact: bool = True
    """False for a score that was rounded to two decimals."""
    reason: str = ""
    container: int = UNKNOWN


class DeviceLine(NamedTuple):
    """The last that was said of a card for one container."""

    verdict: str
    node: str
    """Empty where neither the line nor a registration says it."""
    said: str
    """The rest of the line, with the numbers in it."""


@dataclass(slots=True)
class Attempt:
    """One try of one pod, between its first line and its end."""

    namespace: str
    name: str
    uid: str
    started_at: datetime
    last: datetime
    """When the latest of its lines was written."""
    levels: set[int] = field(default_factory=set)
    requests: list[Asked] | None = None
    init_containers: int | None = None
    names: dict[int, str] = field(default_factory=dict)
    """Container names by position, init containers first."""
    nodes: dict[str, NodeLine] = field(default_factory=dict)
    unregistered: list[str] = field(default_factory=list)
    devices: dict[str, DeviceLine] = field(default_factory=dict)
    """By ``container/uuid``."""
    fitting: dict[str, list[str]] = field(default_factory=dict)
    """Keys of ``devices`` that were taken for a container so far, by node."""
    trying: dict[str, int] = field(default_factory=dict)
    """By node: the container whose cards were tried last."""
    has_strays: bool = False
    """True where cards were tried of which no registration says the node."""
    is_walking: bool = False
    """True from the first line about a node or a card on."""
    is_told_whole: bool = True
    """False where cards were given back and the log does not say of which node."""
    chosen: str = ""
    picked: dict[int, list[str]] = field(default_factory=dict)
    """UUIDs taken, by container."""
    offered: int | None = None
    error: str = ""
    ended_at: datetime | None = None
    node_policy: str = ""
    codes: dict[str, list[str]] = field(default_factory=dict)
    """From the event lines: reason code to the nodes refused for it."""

    @property
    def pod(self) -> str:
        return f"{self.namespace}/{self.name}"

    def asking(self) -> list[int]:
        """Positions of the containers that ask for devices."""
        return [place for place, asked in enumerate(self.requests or ()) if asked.devices]

    def container_of(self, memory_mib: int, memory_percent: int, cores_percent: int) -> int:
        """The only container that asks for this; unknown where several do.

        The count is no help: HAMi counts it down while it takes cards.
        """
        wanted = (memory_mib, memory_percent, cores_percent)
        same = [place for place in self.asking() if (self.requests or ())[place][2:] == wanted]
        return same[0] if len(same) == 1 else UNKNOWN

    def only_container(self) -> int:
        asking = self.asking()
        return asking[0] if len(asking) == 1 else UNKNOWN

    def try_device(self, uuid: str, cards: Cards, container: int) -> None:
        if card := cards.get(uuid):
            self.trying[card.node] = container
        else:
            self.has_strays = True
        self.is_walking = True

    def judge_device(self, uuid: str, node: str, verdict: str, said: str, cards: Cards) -> None:
        """A card was refused (``verdict`` is the code) or would do (``fits``)."""
        card = cards.get(uuid)
        place = node or (card.node if card else "")
        container = self.only_container()
        if container == UNKNOWN:
            container = self.trying.get(place, UNKNOWN)
        self.is_walking = True
        if len(self.devices) >= MAX_DEVICES:
            self.is_told_whole = False
            return
        key = f"{container}/{uuid}"
        self.devices[key] = DeviceLine(verdict, place, said)
        if verdict == FITS:
            self.fitting.setdefault(place, []).append(key)

    def give_back(self, uuid: str, node: str, cards: Cards) -> None:
        """The next card sits on another NUMA node: all that the container took of this node were taken in vain."""
        card = cards.get(uuid)
        place = node or (card.node if card else "")
        self.is_told_whole &= bool(place)
        for key in self.fitting.pop(place, ()) if place else ():
            self.devices[key] = self.devices[key]._replace(verdict=ReasonCode.NUMA_NOT_FIT.value)
        self.is_walking = True

    def refuse_node(self, node: str, reason: str, container: int) -> None:
        if container == UNKNOWN:
            container = self._untried(node) if reason == ReasonCode.NODE_INSUFFICIENT_DEVICE else self._refusing(node)
        for key in self.fitting.pop(node, ()):
            # Cards that were taken for containers before the refusing one were not taken in vain.
            if container == UNKNOWN or key.startswith(f"{container}/"):
                self.devices[key] = self.devices[key]._replace(
                    verdict=ReasonCode.ALLOCATED_CARDS_INSUFFICIENT_REQUEST.value
                )
        self.nodes[node] = NodeLine(REFUSED, reason=reason, container=container)
        self.is_walking = True

    def _refusing(self, node: str) -> int:
        """The container that the walk had come to: of one that asks, it is that one."""
        container = self.only_container()
        return container if container != UNKNOWN else self.trying.get(node, UNKNOWN)

    def _untried(self, node: str) -> int:
        """The container that the walk came to and tried no card for: the first that asks behind the one tried last.

        Cards are named from -v=4 on; init containers are walked in an order of their own.
        """
        asking = self.asking()
        if len(asking) < 2:
            return self.only_container()
        tried = self.trying.get(node)
        if self.init_containers != 0 or self.has_strays or tried == UNKNOWN or max(self.levels) < NAMES_CARDS:
            return UNKNOWN
        return next((place for place in asking if tried is None or place > tried), UNKNOWN)

    def accept_node(self, node: str, score: float, *, is_exact: bool) -> None:
        known = self.nodes.get(node)
        if is_exact or not known or known.verdict != FITS:
            self.nodes[node] = NodeLine(FITS, score, is_exact)
        self.is_walking |= is_exact

    def pick(self, node: str, by_vendor: Any) -> None:
        """``by_vendor``: the JSON of ``Scheduling pod to node``, a list of cards per container for each vendor."""
        self.chosen = node
        for lists in by_vendor.values() if isinstance(by_vendor, dict) else ():
            for place, cards in enumerate(lists if isinstance(lists, list) else ()):
                uuids = [card.get("UUID") for card in cards or () if isinstance(card, dict)]
                if texts := [uuid for uuid in uuids if isinstance(uuid, str) and uuid]:
                    self.picked.setdefault(self._position(place, len(lists)), []).extend(texts)

    def _position(self, place: int, lists: int) -> int:
        """HAMi lists either all containers or those without the init containers."""
        total = len(self.requests) if self.requests is not None else None
        if total == lists:
            return place
        init = self.init_containers or 0
        return place + init if total is not None and total == lists + init else UNKNOWN


def read_requests(said: Any) -> list[Asked] | None:
    """The JSON of ``requests=…``: per container, an object by vendor. None where it is something else.

    A container that asks two vendors is listed with the first of them; HAMi serves such a pod on no node.
    """
    if not isinstance(said, list):
        return None
    return [_asked(by_vendor) for by_vendor in said]


def _asked(by_vendor: Any) -> Asked:
    for vendor, numbers in by_vendor.items() if isinstance(by_vendor, dict) else ():
        if isinstance(numbers, dict):
            keys = {"Nums": 0, "Memreq": 0, "MemPercentagereq": UNSET_PERCENT, "Coresreq": 0}
            values = [numbers.get(key, unset) for key, unset in keys.items()]
            if all(type(value) is int and abs(value) < 2**31 for value in values) and values[0] > 0:
                return Asked(str(vendor), *values)
    return NOTHING
