"""Memory of the shared GPUs of a session's nodes, rebuilt from the lines about them.

``About to add`` and ``About to remove`` (level 7) print how a device stands before a pod is added or removed,
``Added`` and ``Removed`` (level 8) how it stands afterwards. A log at level 7 therefore shows a device up to the last
pod that was put on it; from there on its numbers are unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final

from pydantic import Field

from engine.simulation.kai_shares import floor_to_hundred
from ingest.readers.kai.grammar import ParsedMessage, parse_gpus

MAX_EVIDENCE: Final = 500
"""Characters of a line that is quoted as evidence."""


@dataclass(slots=True)
class SharedDevice:
    """A GPU that pods share; amounts in MiB as KAI counts them, None where the log does not print one."""

    allocated_mib: int | None = None
    """Allocated to pods, including those that are terminating."""
    releasing_mib: int | None = None
    """The part of it that terminating pods still hold."""
    used_mib: int | None = None
    """Allocated, plus what is promised to pods that wait for terminating ones."""
    total_mib: int | None = None
    line: str = ""
    """The last line with these numbers; kept only while memory is being released."""

    def copy(self) -> "SharedDevice":
        return SharedDevice(self.allocated_mib, self.releasing_mib, self.used_mib, self.total_mib, self.line)

    @property
    def free_mib(self) -> int | None:
        """Memory that is not allocated; None where the log does not give it."""
        if self.total_mib is None or self.allocated_mib is None:
            return None
        return self.total_mib - self.allocated_mib

    def differs(self, later: "SharedDevice") -> bool:
        """Tell whether a number that both have differs; a number that only one has proves nothing."""
        pairs = (self.allocated_mib, later.allocated_mib), (self.releasing_mib, later.releasing_mib)
        return any(old is not None and new is not None and old != new for old, new in pairs)


def cut_evidence(line: str) -> str:
    """Cut a line at ``MAX_EVIDENCE`` characters, as a finding quotes it."""
    return line if len(line) <= MAX_EVIDENCE else f"{line[:MAX_EVIDENCE]}…"


@dataclass(slots=True)
class NodeSharedDevices:
    """The shared devices of one node, by GPU group."""

    devices: dict[str, SharedDevice] = field(default_factory=dict)
    device_count: int = 0
    """All GPUs of the node, shared or not; 0 where the log does not count them."""
    total_mib: int | None = None
    """Memory of each GPU of the node."""
    snapshot: Annotated[dict[str, SharedDevice] | None, Field(exclude=True)] = None
    """The devices in use, sorted by group; computed once and dropped when one of them changes."""


@dataclass(slots=True)
class SharedDeviceStates:
    """Shared devices of all nodes. The line about a device names no node: ``node`` is that of the line before.

    A pod on several devices gets one line per device and moment, in the order of its groups: ``turn`` counts them.
    """

    nodes: dict[str, NodeSharedDevices] = field(default_factory=dict)
    node: str = ""
    turn: int = 0
    is_before_printed: bool = False
    """True after the "About to …" line of the device at ``turn``."""
    total_mib: dict[str, int] = field(default_factory=dict)
    """Memory of each GPU, by node, as KAI counts it."""

    def get_node(self, node: str) -> NodeSharedDevices:
        if (node_devices := self.nodes.get(node)) is None:
            node_devices = self.nodes[node] = NodeSharedDevices(total_mib=self.total_mib.get(node))
        return node_devices

    def read_node(self, message: ParsedMessage) -> None:
        """Note the node that a pod is added to or removed from; the next lines are about its devices there."""
        self.node, self.turn, self.is_before_printed = message.parts["node"], 0, False
        node_devices = self.get_node(message.parts["node"])
        idle, used = parse_gpus(message.parts["idle"]), parse_gpus(message.parts["used"])
        if idle and used:
            # Neither amount includes the devices that are shared.
            shared = sum(1 for device in node_devices.devices.values() if device.used_mib != 0)
            node_devices.device_count = max(node_devices.device_count, idle.devices + used.devices + shared)

    def read_device(self, message: ParsedMessage) -> tuple[str, str] | None:
        """Update a device from its line and return its node and group; None where no line named the node."""
        groups = message.parts["groups"].split()
        if not self.node or not groups:
            return None
        is_before = message.parts["moment"].startswith("About")
        # At level 7 there is no "Added" line between two "About to add": the second one is about the next device.
        self.turn += is_before and self.is_before_printed
        group = groups[self.turn % len(groups)]
        self.turn += not is_before
        self.is_before_printed = is_before
        node_devices = self.get_node(self.node)
        # The line before the change does not say how much the pod takes, so afterwards the numbers are unknown.
        total = node_devices.total_mib
        node_devices.devices[group] = SharedDevice(total_mib=total) if is_before else parse_device(message, total)
        node_devices.snapshot = None
        return self.node, group

    def set_total(self, node: str, total_mib: int) -> None:
        node_devices = self.get_node(node)
        node_devices.total_mib = total_mib
        for device in node_devices.devices.values():
            device.total_mib = total_mib

    def take_snapshot(self, node: str) -> tuple[Mapping[str, SharedDevice], int]:
        """Take the shared devices of a node as they are now, and its number of GPUs.

        Later lines replace a device by a new object, so a snapshot keeps the numbers of its moment.
        """
        node_devices = self.nodes.get(node)
        if node_devices is None:
            return {}, 0
        if node_devices.snapshot is None:
            node_devices.snapshot = {
                group: device for group, device in sorted(node_devices.devices.items()) if device.used_mib != 0
            }
        return node_devices.snapshot, max(node_devices.device_count, len(node_devices.snapshot))


def parse_device(message: ParsedMessage, total_mib: int | None) -> SharedDevice:
    releasing = _parse_number(message.parts["releasing"])
    line = cut_evidence(message.text) if releasing else ""
    return SharedDevice(
        _parse_number(message.parts["allocated"]), releasing, _parse_number(message.parts["used"]), total_mib, line
    )  # fmt: skip


def _parse_number(digits: str) -> int:
    # Bounded: a damaged line may hold thousands of digits, which ``int`` refuses or takes quadratic time for.
    return max(int(digits[:15]), 0)


def floor_totals(labels: Mapping[str, int]) -> dict[str, int]:
    """Round the nodes' labels to the memory of each GPU as KAI counts it, in MiB by node."""
    return {node: floor_to_hundred(memory) for node, memory in labels.items()}
