"""What is known of one attempt: one pod in one scheduling session, with the nodes and cards as they were looked at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from ingest.kai.fit_errors import FitError
from ingest.kai.grammar import Gpus

MAX_EVIDENCE: Final = 500
"""Characters of a line that is kept word for word."""


@dataclass(slots=True)
class Card:
    """A shared card, in MiB as KAI counts them. None is a number that the log does not say."""

    allocated_mib: int | None = None
    """Booked, the releasing included."""
    releasing_mib: int | None = None
    """Booked by pods that are on their way out."""
    used_mib: int | None = None
    """Booked, and promised to pods that wait for others to leave."""
    total_mib: int | None = None
    line: str = ""
    """The line that said so last; kept where memory is being released."""

    def copy(self) -> "Card":
        return Card(self.allocated_mib, self.releasing_mib, self.used_mib, self.total_mib, self.line)


@dataclass(slots=True)
class Change:
    """Numbers of a card that were others when it was taken than when it was judged."""

    node: str
    group: str
    before: Card
    after: Card
    time: datetime
    lines: list[str]


@dataclass(slots=True)
class JudgedNode:
    score: float = 0.0
    is_gpu_refused: bool = False
    """Its GPUs were the reason."""
    is_refused: bool = False
    is_taken: bool = False
    """The pod was put there, for good or for a trial."""
    reason: str = ""
    detail: str = ""
    cards: Mapping[str, Card] = field(default_factory=dict)
    """As they stood when the node was first looked at."""
    card_count: int = 0
    """Cards of the node, shared or not; 0 where it is not known."""
    fitting: list[str] = field(default_factory=list)
    """Cards that were found to have room."""


@dataclass(slots=True)
class Attempt:
    pod: str
    """``namespace/name``."""
    session: str
    started_at: datetime
    last: datetime
    levels: set[int] = field(default_factory=set)
    """Of which log levels there were lines about it."""
    ordinal: int = 0
    """Tells attempts apart that have neither a session nor a time: the number of the first line."""
    asked: Gpus | None = None
    job_asked: Gpus | None = None
    memory_mib: int | None = None
    """Asked for on each card."""
    nodes: dict[str, JudgedNode] = field(default_factory=dict)
    """The latest walk over the nodes."""
    first_nodes: dict[str, JudgedNode] | None = None
    """The first walk, once there was another: those after it try what would be if others left."""
    walks: int = 0
    chosen: str = ""
    groups: list[str] = field(default_factory=list)
    """The cards that were taken."""
    taken: dict[str, Card] = field(default_factory=dict)
    """How the cards stood right before the pod was put on them."""
    taking_line: str = ""
    is_pipelined: bool = False
    """Waits for others to leave; nothing was bound."""
    is_committed: bool = False
    """The choice was not taken back."""
    fit: FitError | None = None
    changes: list[Change] = field(default_factory=list)
    bind_error: str = ""
    bind_failed_at: datetime | None = None
    is_told_by_tags: bool = False
    is_allocation_over: bool = False
    """The tag of the allocation was read; the next filter of the pod begins another attempt."""

    def judged(self) -> dict[str, JudgedNode]:
        """The nodes that tell the story: where the pod was put, the walk that put it there; else the first one."""
        return self.nodes if self.first_nodes is None or self.is_placed else self.first_nodes

    @property
    def is_placed(self) -> bool:
        return bool(self.chosen) and self.is_committed

    def begin_walk(self) -> None:
        self.walks += 1
        if self.first_nodes is None and self.nodes:
            self.first_nodes = self.nodes
        self.nodes = {}

    def learn_fit(self, fit: FitError) -> None:
        """Of two tellings each adds what the other does not have: counts, or nodes."""
        known = self.fit
        if known is None:
            self.fit = fit
        else:
            self.fit = FitError(
                text=known.text if known.is_about_nodes or not fit.is_about_nodes else fit.text,
                node_pool=known.node_pool or fit.node_pool,
                code=known.code or fit.code,
                counts=known.counts or fit.counts,
                nodes=known.nodes or fit.nodes,
                gang=known.gang or fit.gang,
                is_unexplained=known.is_unexplained and fit.is_unexplained,
            )


def evidence(line: str) -> str:
    """A line as it is kept to prove something: its beginning, where it is very long."""
    return line if len(line) <= MAX_EVIDENCE else f"{line[:MAX_EVIDENCE]}…"
