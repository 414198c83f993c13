"""The result of judging one pod on a snapshot."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from engine.filters.verdicts import PluginRefusal, Unjudged
from engine.snapshot.pods import Pod
from engine.snapshot.requests import Amounts


class JudgedOutcome(StrEnum):
    """Result of the attempt that kube-scheduler would make."""

    FITS = "fits"
    UNFIT = "unfit"
    """Every node was refused."""
    PREFILTER = "prefilter"
    """The pod was refused before any node was looked at."""
    ERROR = "error"
    """The attempt failed; nothing was counted."""
    GATED = "gated"
    """The pod is kept from the queue and never tried."""
    SKIPPED = "skipped"
    """The pod is being deleted."""
    OPEN = "open"
    """Objects that decide could not be read, and no verdict is certain without them."""


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """The verdicts of all filters on one pod."""

    pod: Pod
    request: Amounts
    outcome: JudgedOutcome
    total: int
    """Nodes of the cluster."""
    pre_enqueue: tuple[PluginRefusal, ...]
    """Refusals that keep the pod from the queue; the other fields hold what an attempt would have found."""
    prefilter: PluginRefusal | None
    """Refusal of the pod as such, after which no node is looked at."""
    skipped: frozenset[str]
    """Plugins that had nothing to check."""
    node_names: frozenset[str] | None
    """Names of the only nodes that NodeAffinity lets be looked at; None for all."""
    refused: Mapping[str, PluginRefusal]
    """First refusal, by node."""
    outside: tuple[str, ...]
    """Nodes that were not looked at because of `node_names`."""
    fitting: tuple[str, ...]
    """Nodes that every filter lets pass."""
    undecided: Mapping[str, tuple[Unjudged, ...]]
    """Nodes that nothing refuses and some plugin could not judge."""
    unjudged: tuple[Unjudged, ...]
    """Plugins that could not judge any node, or the pod as such."""
    counts: Mapping[str, int]
    """Nodes by reason, as the message counts them."""
    message: str
    """Text of the condition, uncut; "" where kube-scheduler writes none or where unread objects leave it open."""
    error_messages: tuple[str, ...]
    """Every text that a failing attempt may have; kube-scheduler reports one of them."""
    preemption_node: str | None
    """A node on which preemption would make room; kube-scheduler may choose another."""
    alone: Mapping[str, Mapping[str, PluginRefusal]]
    """Refusals by node and plugin, each plugin by itself; empty unless asked for."""

    @property
    def is_certain(self) -> bool:
        """True if everything that the filters need was read."""
        return not self.unjudged and not self.undecided


def count_reasons(refused: Mapping[str, PluginRefusal], outside: int, outside_reason: str) -> dict[str, int]:
    """Count nodes by reason; a node with several reasons counts for each."""
    counts = Counter(reason for refusal in refused.values() for reason in refusal.reasons)
    if outside:
        counts[outside_reason] += outside
    return dict(counts)
