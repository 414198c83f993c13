"""One attempt, built line by line: one filter call of one pod, or one bind.

Nothing here guesses. A device line names no node, so the node comes from a registration or is unknown; the refusal of a
node names no container, so the container comes from the order of the walk, or from the request, or is unknown.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from engine.hami.reason_codes import ReasonCode
from ingest.readers.hami.container_requests import ContainerRequest
from ingest.readers.hami.devices import RegisteredDevices
from schemas.events import FITS, REFUSED

UNKNOWN: Final = -1
"""The index of a container that the log does not name."""

MAX_DEVICES: Final = 400_000
"""Device lines of one attempt: 5,000 nodes with 8 devices and ten containers. Lines beyond that are dropped."""

DEVICE_LINES_LEVEL: Final = 4
"""The log level from which on HAMi prints a line for every device that it tries."""


PREVIOUS_NUMA: Final = " prevnuma="
"""Key of the NUMA node of the devices that were taken before."""


class NodeLine(NamedTuple):
    """The log's verdict on a node: ``fits`` or ``refused``, and why."""

    verdict: str
    score: float = 0.0
    is_exact: bool = True
    """False for a score that was rounded to two decimals."""
    reason: str = ""
    container: int = UNKNOWN
    cause: str = ""
    """The text after the reason."""


class DeviceLine(NamedTuple):
    """The last verdict on a device for one container."""

    verdict: str
    node: str
    """Empty if neither the line nor a registration names it."""
    tail: str
    """The end of the line, with the numbers in it."""


@dataclass(slots=True)
class HamiAttempt:
    """One filter call of one pod, from its first line to its end."""

    namespace: str
    name: str
    uid: str
    started_at: datetime
    last_line_at: datetime
    levels: set[int] = field(default_factory=set)
    requests: list[ContainerRequest] | None = None
    init_containers: int | None = None
    names: dict[int, str] = field(default_factory=dict)
    """Container names by position, init containers first."""
    nodes: dict[str, NodeLine] = field(default_factory=dict)
    unregistered: list[str] = field(default_factory=list)
    shortages: dict[str, int] = field(default_factory=dict)
    """Lines about a node with too few devices that do not name the node: number of lines by text."""
    devices: dict[str, DeviceLine] = field(default_factory=dict)
    """By ``container/node/uuid``: one UUID may stand on two nodes, if both registered the same device."""
    fitting: dict[str, list[str]] = field(default_factory=dict)
    """By node, the keys of ``devices`` that HAMi has taken for a container so far."""
    trying: dict[str, int] = field(default_factory=dict)
    """By node, the container for which HAMi tried a device last."""
    has_devices_without_node: bool = False
    """HAMi tried devices whose node no registration names."""
    is_walking: bool = False
    """A line about a node or a device was read."""
    chosen: str = ""
    picked: dict[int, list[str]] = field(default_factory=dict)
    """By container, the UUIDs of the devices that were taken."""
    offered: int | None = None
    error: str = ""
    settings_digest: str = ""
    """The scheduler's settings when it began; empty where the log does not have them."""
    ended_at: datetime | None = None
    message: str = ""
    """The event line that ended it, if no node fits."""
    node_policy: str = ""
    codes: dict[str, list[str]] = field(default_factory=dict)
    """From the event lines: by reason code, the nodes refused for it."""

    @property
    def pod(self) -> str:
        return f"{self.namespace}/{self.name}"

    def list_requesting(self) -> list[int]:
        """List the indices of the containers that request devices."""
        return [index for index, request in enumerate(self.requests or ()) if request.devices]

    def find_container(self, memory_mib: int, memory_percent: int, cores_percent: int) -> int:
        """Find the only container with this request; ``UNKNOWN`` if several have it.

        The number of devices does not help: HAMi counts it down while it takes them.
        """
        wanted = (memory_mib, memory_percent, cores_percent)
        # Device lines carry the request and not the container.
        same = [index for index in self.list_requesting() if (self.requests or ())[index][2:] == wanted]
        return same[0] if len(same) == 1 else UNKNOWN

    def find_only_container(self) -> int:
        list_requesting = self.list_requesting()
        return list_requesting[0] if len(list_requesting) == 1 else UNKNOWN

    def try_device(self, uuid: str, registered: RegisteredDevices, container: int) -> None:
        # HAMi's device lines name no node (-v=5); only a registration shows whose device it is.
        if device := registered.get(uuid):
            self.trying[device.node] = container
        else:
            self.has_devices_without_node = True
        self.is_walking = True

    def judge_device(
        self, uuid: str, node: str, verdict: str, tail: str, registered: RegisteredDevices, container: int = UNKNOWN
    ) -> None:
        """Keep the verdict: ``fits``, or the code of the refusal. ``node`` is empty if the line names none."""
        node = node or _find_node(uuid, registered)
        if container == UNKNOWN:
            container = self.find_only_container()
        if container == UNKNOWN:
            container = self.trying.get(node, UNKNOWN)
        self.is_walking = True
        # A log without the end of attempts must not fill the memory.
        if len(self.devices) >= MAX_DEVICES:
            return
        key = f"{container}/{node}/{uuid}"
        self.devices[key] = DeviceLine(verdict, node, tail)
        if verdict == FITS:
            self.fitting.setdefault(node, []).append(key)

    def give_back(
        self, uuid: str, node: str, tail: str, registered: RegisteredDevices, container: int = UNKNOWN
    ) -> None:
        """Give back the devices before this one, which is on another NUMA node.

        HAMi gives back all that it took for the container on this node, and judges the device again on its own. Where
        no device was taken, or the line does not name the NUMA node of those before it, the line is about the device.
        """
        node = node or _find_node(uuid, registered)
        self.is_walking = True
        if not node:
            return
        given_back = self.fitting.pop(node, ()) if PREVIOUS_NUMA in tail else ()
        for key in given_back:
            self.devices[key] = self.devices[key]._replace(verdict=ReasonCode.NUMA_NOT_FIT.value)
        if not given_back:
            self.judge_device(uuid, node, ReasonCode.NUMA_NOT_FIT.value, tail, registered, container)

    def refuse_node(self, node: str, reason: str, container: int, cause: str = "") -> None:
        if container == UNKNOWN:
            # With too few devices on the node, HAMi refuses the container before it tries a device for it.
            is_untried = reason == ReasonCode.NODE_INSUFFICIENT_DEVICE
            container = self._find_untried(node) if is_untried else self._find_last_tried(node)
        for key in self.fitting.pop(node, ()):
            # Devices that were taken for earlier containers keep their verdict: only the refusing one is out.
            if container == UNKNOWN or key.startswith(f"{container}/"):
                self.devices[key] = self.devices[key]._replace(
                    verdict=ReasonCode.ALLOCATED_CARDS_INSUFFICIENT_REQUEST.value
                )
        previous = self.nodes.get(node)
        if previous and previous.reason == reason:
            cause = cause or previous.cause
        self.nodes[node] = NodeLine(REFUSED, reason=reason, container=container, cause=cause)
        self.is_walking = True

    def _find_last_tried(self, node: str) -> int:
        """Find the container that the walk had reached on the node."""
        container = self.find_only_container()
        return container if container != UNKNOWN else self.trying.get(node, UNKNOWN)

    def _find_untried(self, node: str) -> int:
        """Find the container for which the walk tried no device: the first with a request after the last tried.

        Unknown below -v=4, where HAMi prints no devices, and with init containers, which have an order of their own.
        """
        list_requesting = self.list_requesting()
        if len(list_requesting) < 2:
            return self.find_only_container()
        tried = self.trying.get(node)
        is_level_too_low = max(self.levels) < DEVICE_LINES_LEVEL
        if self.init_containers != 0 or self.has_devices_without_node or tried == UNKNOWN or is_level_too_low:
            return UNKNOWN
        return next((index for index in list_requesting if tried is None or index > tried), UNKNOWN)

    def accept_node(self, node: str, score: float, *, is_exact: bool) -> None:
        previous = self.nodes.get(node)
        # The event line repeats the scores rounded; the node's own line is better.
        if is_exact or not previous or previous.verdict != FITS:
            self.nodes[node] = NodeLine(FITS, score, is_exact)
        self.is_walking |= is_exact

    def pick(self, node: str, by_vendor: Any) -> None:
        """Keep the choice. ``by_vendor``: the JSON of the line, the devices of each container by vendor."""
        self.chosen = node
        for lists in by_vendor.values() if isinstance(by_vendor, dict) else ():
            for index, devices in enumerate(lists if isinstance(lists, list) else ()):
                uuids = [device.get("UUID") for device in devices or () if isinstance(device, dict)]
                if texts := [uuid for uuid in uuids if isinstance(uuid, str) and uuid]:
                    self.picked.setdefault(self._resolve_container(index, len(lists)), []).extend(texts)

    def _resolve_container(self, index: int, lists: int) -> int:
        """Resolve the container of a list: HAMi writes a list for every container, or none for the init containers."""
        total = len(self.requests) if self.requests is not None else None
        # HAMi's ``Scheduling pod to node`` has a list per container in the pod's order, init containers first.
        if total == lists:
            return index
        init = self.init_containers or 0
        return index + init if total is not None and total == lists + init else UNKNOWN


def _find_node(uuid: str, registered: RegisteredDevices) -> str:
    """Find the device's node; empty if no registration names the device."""
    device = registered.get(uuid)
    return device.node if device else ""


@dataclass(frozen=True, slots=True)
class Bind:
    """A bind as far as its lines were read."""

    node: str
    started_at: datetime
    error: str = ""
    ended_at: datetime | None = None
