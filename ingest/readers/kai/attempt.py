"""One attempt: one pod in one scheduling session, with the nodes and devices as KAI looked at them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from ingest.readers.kai.devices import SharedDevice
from ingest.readers.kai.fit_errors import FitError
from ingest.readers.kai.grammar import Gpus


@dataclass(slots=True)
class DeviceChange:
    """A device whose numbers differed between the filter and the allocation of one pod."""

    node: str
    group: str
    before: SharedDevice
    after: SharedDevice
    time: datetime
    lines: list[str]
    """The lines that prove it."""


@dataclass(slots=True)
class ReturnedMemory:
    """A device that a later session shows with less memory allocated than an earlier one left there."""

    node: str
    group: str
    expected_mib: int
    """Allocated before the earlier session's placement, and what that pod got."""
    allocated_mib: int
    """Allocated memory in the later session."""
    total_mib: int | None
    lines: list[str]
    """The lines about the placement, and about the later check."""


@dataclass(slots=True)
class Eviction:
    """A running pod whose place KAI takes for another, at first only in a simulation."""

    node: str = ""
    reason: str = ""
    """KAI's words, with the pod's group that gets the place."""
    committed_at: datetime | None = None
    """Time of the commit; None while KAI only simulates the eviction, or where the log ends before it."""


@dataclass(slots=True)
class NodeOfAttempt:
    score: float = 0.0
    is_gpu_refused: bool = False
    """KAI refused the node because of its GPUs."""
    is_refused: bool = False
    is_taken: bool = False
    """KAI put the pod there, definitely or in a simulation."""
    reason: str = ""
    detail: str = ""
    devices: Mapping[str, SharedDevice] = field(default_factory=dict)
    """By group, as they stood when KAI first looked at the node."""
    device_count: int = 0
    """GPUs of the node, shared or not; 0 where the log does not count them."""
    fitting: list[str] = field(default_factory=list)
    """Groups of the devices that had enough free memory."""
    checks: dict[str, dict[str, bool]] = field(default_factory=dict)
    """By group, the checks of the device in lines of the patch."""

    def note_checks(self, group: str, checks: Mapping[str, bool]) -> None:
        if checks:
            self.checks.setdefault(group, {}).update(checks)


@dataclass(slots=True)
class KaiAttempt:
    pod: str
    """``namespace/name``."""
    session: str
    started_at: datetime
    last_line_at: datetime
    levels: set[int] = field(default_factory=set)
    """Log levels of the lines about it."""
    ordinal: int = 0
    """The number of its first line: part of the attempt's id where lines have neither a session nor a time."""
    requested: Gpus | None = None
    job_requested: Gpus | None = None
    memory_mib: int | None = None
    """Requested on each device."""
    required_devices: int = 0
    """Number of devices that it needs, from a line of the patch; 0 if none says it."""
    nodes: dict[str, NodeOfAttempt] = field(default_factory=dict)
    """The latest walk over the nodes."""
    first_nodes: dict[str, NodeOfAttempt] | None = None
    """The first walk, once there was another: later walks simulate evictions (reclaim, preempt, consolidation)."""
    chosen: str = ""
    groups: list[str] = field(default_factory=list)
    """The devices that were taken."""
    taken: dict[str, SharedDevice] = field(default_factory=dict)
    """By group, the devices right before the pod was put on them."""
    taking_line: str = ""
    is_pipelined: bool = False
    """The pod waits for terminating pods; KAI bound nothing."""
    is_committed: bool = False
    """KAI did not take the choice back."""
    fit_error: FitError | None = None
    changes: list[DeviceChange] = field(default_factory=list)
    returned: list[ReturnedMemory] = field(default_factory=list)
    outside_pool: str = ""
    """Evidence that the chosen node is not in the scheduler's pool; empty if there is none."""
    bind_error: str = ""
    bind_failed_at: datetime | None = None
    has_tags: bool = False
    """Lines of the patch (``ingest.readers.kai.tags``) are about it."""
    is_allocation_over: bool = False
    """The patch's line about the allocation was read; the next filter of the pod begins another attempt."""

    def select_nodes(self) -> dict[str, NodeOfAttempt]:
        """Select the nodes of the decisive walk: the latest if the pod was placed, else the first."""
        return self.nodes if self.first_nodes is None or self.is_placed else self.first_nodes

    @property
    def is_placed(self) -> bool:
        return bool(self.chosen) and self.is_committed

    @property
    def is_concluded(self) -> bool:
        """False where the log stops before the end, or its level leaves the end out."""
        return bool(self.is_placed or self.fit_error or self.is_allocation_over)

    def begin_walk(self) -> None:
        if self.first_nodes is None and self.nodes:
            self.first_nodes = self.nodes
        self.nodes = {}

    def add_fit_error(self, error: FitError) -> None:
        """Merge a further fit error of the attempt: each contributes what the other lacks, counts or nodes."""
        previous = self.fit_error
        if previous is None:
            self.fit_error = error
        else:
            self.fit_error = FitError(
                # The text about nodes is the fuller one; the other only counts.
                text=previous.text if previous.is_about_nodes or not error.is_about_nodes else error.text,
                node_pool=previous.node_pool or error.node_pool,
                code=previous.code or error.code,
                counts=previous.counts or error.counts,
                nodes=previous.nodes or error.nodes,
                gang=previous.gang or error.gang,
                is_unexplained=previous.is_unexplained and error.is_unexplained,
            )
