"""The cards of a session's nodes, rebuilt from the lines about shared GPUs.

``About to add`` and ``About to remove`` say how a card stands before, ``Added`` and ``Removed`` (level 8) how it stands
behind. So at level 7 a card is known up to the last pod that was put on it, and its numbers are unknown from there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import orjson
from pydantic import Field

from ingest.kai.attempt import Card, evidence
from ingest.kai.grammar import Sentence, gpus_of

MEMORY_LABEL: Final = "nvidia.com/gpu.memory"


def floored_to_hundred(memory_mib: int) -> int:
    """KAI takes the node's label ``nvidia.com/gpu.memory`` down to a multiple of 100: 40960 counts as 40900."""
    return memory_mib // 100 * 100


@dataclass(slots=True)
class NodeCards:
    cards: dict[str, Card] = field(default_factory=dict)
    card_count: int = 0
    """All cards of the node, as far as they were counted; 0 where the log does not say."""
    total_mib: int | None = None
    """Memory of every card of the node."""
    snapshot: Annotated[dict[str, Card] | None, Field(exclude=True)] = None
    """The cards in use, by group in order, until one of them changes."""


@dataclass(slots=True)
class CardStates:
    """``node`` and ``turn`` say which card of which node the next line is about: it names neither."""

    nodes: dict[str, NodeCards] = field(default_factory=dict)
    node: str = ""
    turn: int = 0
    is_half_said: bool = False
    """Of the card whose turn it is, how it stands before was said."""
    total_mib: dict[str, int] = field(default_factory=dict)

    def of(self, node: str) -> NodeCards:
        if (known := self.nodes.get(node)) is None:
            known = self.nodes[node] = NodeCards(total_mib=self.total_mib.get(node))
        return known

    def see_node(self, said: Sentence) -> None:
        """A pod is about to be put on a node, or taken off it: the lines behind are about its cards there."""
        self.node, self.turn, self.is_half_said = said.parts["node"], 0, False
        known = self.of(said.parts["node"])
        idle, used = gpus_of(said.parts["idle"]), gpus_of(said.parts["used"])
        if idle and used:
            shared = sum(1 for card in known.cards.values() if card.used_mib != 0)
            known.card_count = max(known.card_count, idle.devices + used.devices + shared)

    def see_card(self, said: Sentence) -> tuple[str, str, Card] | None:
        """A card's numbers. Gives the node, the card, and how it was known until now; None where no node is known."""
        groups = said.parts["groups"].split()
        if not self.node or not groups:
            return None
        is_before = said.parts["moment"].startswith("About")
        self.turn += is_before and self.is_half_said
        group = groups[self.turn % len(groups)]
        self.turn += not is_before
        self.is_half_said = is_before
        known = self.of(self.node)
        was = known.cards.get(group) or Card(total_mib=known.total_mib)
        # How much the pod itself takes is not said, so behind the line before it the numbers are not known.
        known.cards[group] = Card(total_mib=known.total_mib) if is_before else numbers(said, known.total_mib)
        known.snapshot = None
        return self.node, group, was

    def learn_total(self, node: str, total_mib: int) -> None:
        known = self.of(node)
        known.total_mib = total_mib
        for card in known.cards.values():
            card.total_mib = total_mib

    def snapshot_of(self, node: str) -> tuple[Mapping[str, Card], int]:
        """The cards of a node as they stand now, and how many it has. A card's later numbers are another object."""
        known = self.nodes.get(node)
        if known is None:
            return {}, 0
        if known.snapshot is None:
            known.snapshot = {group: card for group, card in sorted(known.cards.items()) if card.used_mib != 0}
        return known.snapshot, max(known.card_count, len(known.snapshot))


def numbers(said: Sentence, total_mib: int | None) -> Card:
    releasing = _number(said.parts["releasing"])
    line = evidence(said.text) if releasing else ""
    return Card(_number(said.parts["allocated"]), releasing, _number(said.parts["used"]), total_mib, line)


def totals(labels: Mapping[str, int]) -> dict[str, int]:
    """From the label of each node (MiB of one card) to what KAI counts with."""
    return {node: floored_to_hundred(memory) for node, memory in labels.items()}


def _number(digits: str) -> int:
    return max(int(digits[:15]), 0)


def labels_of_nodes(node_list: bytes) -> dict[str, int]:
    """Each node's label ``nvidia.com/gpu.memory``, from ``kubectl get nodes -o json``. Raises ``ValueError``."""
    try:
        said = orjson.loads(node_list)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error}): write it with `kubectl get nodes -o json`") from None
    items = said.get("items", [said]) if isinstance(said, dict) else None
    if not isinstance(items, list):
        raise ValueError("no list of nodes: write it with `kubectl get nodes -o json`")
    return dict(label for node in items if (label := _label(node)))


def _label(node: Any) -> tuple[str, int] | None:
    metadata = node.get("metadata") if isinstance(node, dict) else None
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    if not isinstance(labels, dict) or not isinstance(memory := labels.get(MEMORY_LABEL), str):
        return None
    name = str(node["metadata"].get("name"))
    return (name, int(memory)) if memory.isascii() and memory.isdecimal() else None
