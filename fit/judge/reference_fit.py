"""One container against one node, one device after the other, as HAMi's `Fit` (device.go) does it.

This is the reference: the rules in their plain form. `fit`, `sequential_fit` and `topology` evaluate the same rules for
all nodes at once, and a property test compares them with this module. Only the reference can try a device more than
once, which MIG needs: one device may give several instances.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from fit.devices.pair_scores import PairScores
from fit.devices.quota import QuotaLeft
from fit.judge import verdict_codes
from fit.judge.device_request import DeviceRequest
from fit.judge.topology import best_devices
from hami.mig import MigChoice, MigProfile, Placement, choose


@dataclass(slots=True)
class DeviceState:
    """The working copy of one device while its node is judged.

    position: among the node's devices. gate: verdict code of a refusal by health, cordon or type, else 0.
    Memory in MiB, cores in percent of one device.
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


@dataclass(frozen=True, slots=True)
class Pick:
    """A device that was taken: the MiB and cores given, and the instance on a MIG device.

    look: index of its row in `NodeFit.looks`.
    """

    device: DeviceState
    memory_mib: int
    cores: int
    mig: MigChoice | None
    look: int


@dataclass(slots=True)
class ReferenceFit:
    """The result for one node: every look at a device as (position, verdict), in order, and the picks in order."""

    looks: list[tuple[int, int]] = field(default_factory=list)
    picks: list[Pick] = field(default_factory=list)
    passed: bool = False

    def look(self, device: DeviceState, verdict: int) -> int:
        self.looks.append((device.position, verdict))
        return len(self.looks) - 1

    def drop_picks(self, verdict: int) -> None:
        for pick in self.picks:
            self.looks[pick.look] = (pick.device.position, verdict)
        self.picks = []


def fit_node(
    devices: Sequence[DeviceState], request: DeviceRequest, quota_left: QuotaLeft, scores: PairScores
) -> ReferenceFit:
    """Try the devices in the given order. MIG devices are changed by what is picked on them."""
    fit = ReferenceFit()
    numa: int | None = None
    for device in devices:
        if request.numa_bind and not device.gate and device.numa != numa:
            # HAMi's topology-aware policy gives no reason to the devices that it drops here.
            fit.drop_picks(verdict_codes.FITS if request.collects_all else verdict_codes.NUMA_NOT_FIT)
            numa = device.numa
        _try_device(fit, device, request, quota_left)
        if not request.collects_all and len(fit.picks) >= request.count:
            break
    _conclude(fit, devices, request, scores)
    return fit


def _try_device(fit: ReferenceFit, device: DeviceState, request: DeviceRequest, quota_left: QuotaLeft) -> None:
    while True:
        refusal = _refusal(device, request, quota_left, fit.picks)
        choice = None
        if not refusal and device.is_mig:
            choice = choose(device.profiles, request.memory_of(device.total_memory), device.placements)
            refusal = 0 if choice else verdict_codes.MIG_TOPOLOGY_INFEASIBLE
        look = fit.look(device, refusal or verdict_codes.PICKED)
        if refusal:
            return
        memory, cores = (choice.profile.memory_mib, choice.profile.cores) if choice else _plain_share(device, request)
        fit.picks.append(Pick(device, memory, cores, choice, look))
        if not choice or len(fit.picks) >= request.count:
            return
        # Until the container has all that it requested, HAMi adds the placements of instances, not their memory.
        device.placements.append(choice.placement)


def _plain_share(device: DeviceState, request: DeviceRequest) -> tuple[int, int]:
    return request.memory_of(device.total_memory), request.cores


def _refusal(device: DeviceState, request: DeviceRequest, quota_left: QuotaLeft, picks: Sequence[Pick]) -> int:
    """The verdict code of the first check that the device fails; 0 where it passes all."""
    if device.gate:
        return device.gate
    if not device.accepts_uuid:
        return verdict_codes.UUID_MISMATCH
    if device.total_slots <= device.used_slots:
        return verdict_codes.TIME_SLICING_EXHAUSTED
    if request.is_mutex and device.used_slots > 0:
        return verdict_codes.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT
    memory = request.memory_of(device.total_memory)
    if quota_left.is_limited and _is_over(quota_left, picks, memory, request.cores):
        return verdict_codes.RESOURCE_QUOTA_NOT_FIT
    if device.total_memory - device.used_memory < memory:
        return verdict_codes.INSUFFICIENT_MEMORY
    return _core_refusal(device, request)


def _core_refusal(device: DeviceState, request: DeviceRequest) -> int:
    if device.total_cores - device.used_cores < request.cores:
        return verdict_codes.INSUFFICIENT_CORE
    if device.total_cores == 100 and request.wants_whole_device and device.used_slots > 0:
        return verdict_codes.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT
    if device.total_cores != 0 and device.used_cores == device.total_cores and request.cores == 0:
        return verdict_codes.COMPUTE_UNITS_EXHAUSTED
    return 0


def _is_over(quota_left: QuotaLeft, picks: Sequence[Pick], memory_mib: int, cores: int) -> bool:
    memory = memory_mib + sum(pick.memory_mib for pick in picks)
    return memory > quota_left.memory_mib or cores + sum(pick.cores for pick in picks) > quota_left.cores


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
    kept = [fit.picks[place] for place in best_devices([pick.device.uuid for pick in fit.picks], count, scores)]
    taken = {pick.look for pick in kept}
    for pick in fit.picks:
        if pick.look not in taken:
            fit.looks[pick.look] = (pick.device.position, verdict_codes.FITS)
    fit.picks = kept
