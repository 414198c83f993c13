"""One container against one node, one device after the other, as HAMi's `Fit` (device.go) does it.

This is the reference: the rules in their plain form. `fit`, `sequential_fit` and `topology` evaluate the same rules for
all nodes at once, and a property test compares them with this module. Only the reference can try a device more than
once, which MIG needs: one device may give several instances.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from engine.fit.devices.device_matrix import Ints
from engine.fit.devices.node_entry import PairScores
from engine.fit.devices.quota import QuotaLeft
from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.checks.topology import choose_devices
from engine.fit.judge.request.device_request import DeviceRequest
from engine.hami.mig import MigChoice, MigProfile, Placement, choose_instance

Amounts = tuple[int, int]
"""MiB, and percent of one device."""


@dataclass(slots=True)
class DeviceState:
    """Working copy of one device while its node is judged.

    position: among the node's devices. gate: verdict code of a refusal by health, cordon or type, else 0. Memory in
    MiB, cores in percent of one device.
    """

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
    # What only single vendors' rules read (`engine/fit/vendors`); classes: of Metax' pods on the device.
    index: int = 0
    model: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    classes: tuple[str, ...] = ()


class Pick(NamedTuple):
    """Device that was taken: the MiB and cores given, and the instance on a MIG device.

    look: index of its row in `ReferenceFit.looks`.
    """

    device: DeviceState
    memory_mib: int
    cores: int
    mig: MigChoice | None
    look: int
    slots: int = 1
    profile: tuple[str, str] = ("", "")
    """Name and number of an Enflame device's part, which takes `slots` of it."""


@dataclass(slots=True)
class ReferenceFit:
    """Result for one node: every look at a device as (position, verdict), in order, and the picks in order."""

    looks: list[tuple[int, int]] = field(default_factory=list)
    picks: list[Pick] = field(default_factory=list)
    passed: bool = False
    out_of: int | None = None
    """Y of HAMi's `X/Y Reason` where it is not the number of the node's devices."""

    def look(self, device: DeviceState, verdict: int) -> int:
        self.looks.append((device.position, verdict))
        return len(self.looks) - 1

    def drop_picks(self, verdict: int) -> None:
        for pick in self.picks:
            self.looks[pick.look] = (pick.device.position, verdict)
        self.picks = []


def fit_node(
    devices: Sequence[DeviceState],
    request: DeviceRequest,
    quota_left: QuotaLeft,
    scores: PairScores,
    peaks: Mapping[str, Amounts] | None = None,
) -> ReferenceFit:
    """Try the devices in the given order. What is picked on MIG devices changes them.

    peaks: for an init container, what those before it took of each device; None for an app container.
    """
    fit = ReferenceFit()
    numa: int | None = None
    for device in devices:
        if request.numa_bind and not device.gate and device.numa != numa:
            # HAMi's topology-aware policy gives no reason to the devices that it drops here.
            fit.drop_picks(verdict_codes.FITS if request.collects_all else verdict_codes.NUMA_NOT_FIT)
            numa = device.numa
        _try_device(fit, device, request, quota_left, peaks)
        if not request.collects_all and len(fit.picks) >= request.count:
            break
    _conclude(fit, devices, request, scores)
    return fit


def _try_device(
    fit: ReferenceFit,
    device: DeviceState,
    request: DeviceRequest,
    quota_left: QuotaLeft,
    peaks: Mapping[str, Amounts] | None,
) -> None:
    while True:
        refusal = find_refusal(device, request, quota_left, fit.picks, peaks)
        choice = None
        if not refusal and device.is_mig:
            choice = choose_instance(device.profiles, request.resolve_memory(device.total_memory), device.placements)
            refusal = 0 if choice else verdict_codes.MIG_TOPOLOGY_INFEASIBLE
        look = fit.look(device, refusal or verdict_codes.PICKED)
        if refusal:
            return
        memory, cores = (choice.profile.memory_mib, choice.profile.cores) if choice else _derive_share(device, request)
        fit.picks.append(Pick(device, memory, cores, choice, look))
        # A topology-aware pod collects every instance that the device still has room for.
        if not choice or (len(fit.picks) >= request.count and not request.collects_all):
            return
        # Until the container has all that it requested, HAMi adds the placements of instances, not their memory.
        device.placements.append(choice.placement)


def _derive_share(device: DeviceState, request: DeviceRequest) -> tuple[int, int]:
    return request.resolve_memory(device.total_memory), request.cores


def find_refusal(
    device: DeviceState,
    request: DeviceRequest,
    quota_left: QuotaLeft,
    picks: Sequence[Pick],
    peaks: Mapping[str, Amounts] | None,
) -> int:
    """Find the verdict code of the first check that the device fails; 0 where it passes all."""
    if device.gate:
        return device.gate
    if not device.accepts_uuid:
        return verdict_codes.UUID_MISMATCH
    if device.total_slots <= device.used_slots:
        return verdict_codes.TIME_SLICING_EXHAUSTED
    if request.is_mutex and device.used_slots > 0:
        return verdict_codes.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT
    memory = request.resolve_memory(device.total_memory)
    if quota_left.is_limited and is_over(quota_left, [*picks, Pick(device, memory, request.cores, None, 0)], peaks):
        return verdict_codes.RESOURCE_QUOTA_NOT_FIT
    if device.total_memory - device.used_memory < memory:
        return verdict_codes.INSUFFICIENT_MEMORY
    return find_core_refusal(device, request)


def find_core_refusal(device: DeviceState, request: DeviceRequest) -> int:
    """Find the verdict code of the first check of cores that the device fails; 0 where it passes."""
    if device.total_cores - device.used_cores < request.cores:
        return verdict_codes.INSUFFICIENT_CORE
    if device.total_cores == 100 and request.wants_whole_device and device.used_slots > 0:
        return verdict_codes.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT
    if device.total_cores != 0 and device.used_cores == device.total_cores and request.cores == 0:
        return verdict_codes.COMPUTE_UNITS_EXHAUSTED
    return 0


def is_over(quota_left: QuotaLeft, picks: Sequence[Pick], peaks: Mapping[str, Amounts] | None) -> bool:
    """Tell whether the picks are more than the namespace may still take."""
    amounts = [(pick.memory_mib, pick.cores) for pick in picks]
    if peaks is not None:
        # Init containers run one after the other: on each device the largest counts.
        amounts = list(raise_peaks(peaks, picks).values())
    memory = sum(memory_mib for memory_mib, _ in amounts)
    return memory > quota_left.memory_mib or sum(cores for _, cores in amounts) > quota_left.cores


def raise_peaks(peaks: Mapping[str, Amounts], picks: Iterable[Pick]) -> dict[str, Amounts]:
    """Raise the largest share of each device, by UUID, by one more container, which took `picks`."""
    amounts = dict(peaks)
    for pick in picks:
        memory_mib, cores = amounts.get(pick.device.uuid, (0, 0))
        amounts[pick.device.uuid] = (max(memory_mib, pick.memory_mib), max(cores, pick.cores))
    return amounts


def _conclude(fit: ReferenceFit, devices: Sequence[DeviceState], request: DeviceRequest, scores: PairScores) -> None:
    fit.passed = len(fit.picks) >= request.count
    if not fit.passed:
        for pick in fit.picks:
            fit.looks[pick.look] = (pick.device.position, verdict_codes.ALLOCATED_INSUFFICIENT)
        return
    if request.collects_all:
        _keep_best(fit, request.count, scores)
    looked = {position for position, _ in fit.looks}
    for device in devices:
        if device.position not in looked:
            fit.look(device, verdict_codes.NOT_REACHED)


def _keep_best(fit: ReferenceFit, count: int, scores: PairScores) -> None:
    best = [fit.picks[position] for position in choose_devices([pick.device.uuid for pick in fit.picks], count, scores)]
    # Instances are placed when they are given: the first one best on a device gets the first place amounts there.
    choices = {
        pick.device.position: iter([more for more in fit.picks if more.device is pick.device]) for pick in fit.picks
    }
    best = [next(choices[pick.device.position]) for pick in best]
    taken = {pick.look for pick in best}
    for pick in fit.picks:
        if pick.look not in taken:
            fit.looks[pick.look] = (pick.device.position, verdict_codes.FITS)
    fit.picks = best


NO_PEAKS: Final[Mapping[str, Amounts]] = {}


class Peaks:
    """Largest share of each device that an init container took so far, by vendor and node id, and by UUID.

    Init containers run one after the other, so on each device the largest counts against a quota (HAMi's
    `CollapseInitContainerUsage`): one on the devices of the container before takes nothing more, one on other devices
    does.
    """

    def __init__(self) -> None:
        self._by_node: dict[tuple[str, int], dict[str, Amounts]] = {}

    def get_peaks(self, vendor: str, node: int) -> Mapping[str, Amounts]:
        return self._by_node.get((vendor, node), NO_PEAKS)

    def add(self, vendor: str, nodes: Ints, fits: Sequence[ReferenceFit]) -> None:
        """Add what one more init container took on these nodes."""
        for node, done in zip(nodes.tolist(), fits, strict=True):
            if done.picks:
                self._by_node[vendor, node] = raise_peaks(self.get_peaks(vendor, node), done.picks)
