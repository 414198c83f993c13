"""What the rules of a vendor are asked about one node and one container, and steps that several vendors share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from engine.fit.devices.quota import QuotaLeft
from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.checks.reference_fit import DeviceState, Pick, ReferenceFit, refusal_of
from engine.fit.judge.request.device_request import DeviceRequest
from engine.fit.judge.request.pod_request import VendorRequest
from engine.hami.vendors import Vendor


class NodeRequest(NamedTuple):
    """One container's request of one node.

    texts: the pod's annotations. marks: the node's. earlier: for each container before this one that was given devices
    of the vendor, the positions of those devices; init containers and app containers each have their own.
    """

    vendor: Vendor
    request: DeviceRequest
    raw: VendorRequest
    texts: Mapping[str, str]
    marks: Mapping[str, str]
    earlier: Sequence[Sequence[int]] = ()


FitVendor = Callable[[Sequence[DeviceState], NodeRequest], ReferenceFit]
"""The devices are given in the order in which they are tried; HAMi's list is the reverse of it."""

_NO_QUOTA = QuotaLeft()


def plain_refusal(device: DeviceState, asked: NodeRequest) -> int:
    """The first check of NVIDIA's that the device fails; 0 for none. HAMi asks no quota here."""
    return refusal_of(device, asked.request, _NO_QUOTA, (), None)


def slot_refusal(device: DeviceState, asked: NodeRequest) -> int:
    """The pod's UUID lists, and whether the device may be shared once more: what vendors check before amounts."""
    if not device.accepts_uuid:
        return verdict_codes.UUID_MISMATCH
    if device.total_slots <= device.used_slots:
        return verdict_codes.TIME_SLICING_EXHAUSTED
    if asked.request.is_mutex and device.used_slots > 0:
        return verdict_codes.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT
    return 0


def plain_pick(device: DeviceState, asked: NodeRequest, look: int) -> Pick:
    return Pick(device, asked.request.memory_of(device.total_memory), asked.request.cores, None, look)


def take_in_turn(
    devices: Sequence[DeviceState],
    asked: NodeRequest,
    refusal: Callable[[DeviceState, NodeRequest], int] = plain_refusal,
    pick: Callable[[DeviceState, NodeRequest, int], Pick] = plain_pick,
    *,
    takes_all: bool = False,
) -> ReferenceFit:
    """Take what passes the checks, until there is enough or, with `takes_all`, to the end."""
    fit = ReferenceFit()
    for device in devices:
        code = refusal(device, asked)
        look = fit.look(device, code or verdict_codes.PICKED)
        if not code:
            fit.picks.append(pick(device, asked, look))
            if not takes_all and len(fit.picks) >= asked.request.count:
                break
    return fit


def conclude(fit: ReferenceFit, devices: Iterable[DeviceState], *, passed: bool) -> ReferenceFit:
    """Note what became of devices that no check refused."""
    fit.passed = passed
    if not passed:
        fit.drop_picks(verdict_codes.ALLOCATED_INSUFFICIENT)
    looked = {position for position, _ in fit.looks}
    for device in devices:
        if device.position not in looked:
            fit.look(device, verdict_codes.NOT_REACHED)
    return fit


def enough(fit: ReferenceFit, devices: Iterable[DeviceState], asked: NodeRequest) -> ReferenceFit:
    """Whether so many were taken as are requested."""
    return conclude(fit, devices, passed=len(fit.picks) >= asked.request.count)


def keep(fit: ReferenceFit, kept: Sequence[Pick]) -> None:
    """Give back all but `kept`."""
    taken = {pick.look for pick in kept}
    for pick in fit.picks:
        if pick.look not in taken:
            fit.looks[pick.look] = (pick.device.position, verdict_codes.FITS)
    fit.picks = list(kept)


def refuse_all(devices: Sequence[DeviceState], code: int, count: int = 1) -> ReferenceFit:
    """A refusal of the node as a whole, which HAMi counts `count` times."""
    fit = ReferenceFit()
    for place, device in enumerate(devices):
        fit.look(device, code if place < count else verdict_codes.NOT_REACHED)
    return fit
