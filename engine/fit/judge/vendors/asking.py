"""Request that a vendor's rules judge on one node, and steps that several vendors' rules share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from engine.fit.devices.quota import QuotaLeft
from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.checks.reference_fit import DeviceState, Pick, ReferenceFit, find_refusal
from engine.fit.judge.request.device_request import DeviceRequest
from engine.fit.judge.request.pod_request import VendorRequest
from engine.hami.vendors import Vendor


class NodeRequest(NamedTuple):
    """Request of one container on one node.

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
"""Rules of a vendor. They get the devices in the order in which they are tried; HAMi's list is the reverse of it."""

_NO_QUOTA = QuotaLeft()


def find_plain_refusal(device: DeviceState, node_request: NodeRequest) -> int:
    """Find the first check of NVIDIA's that the device fails; 0 for none. HAMi asks no quota here."""
    return find_refusal(device, node_request.request, _NO_QUOTA, (), None)


def find_slot_refusal(device: DeviceState, node_request: NodeRequest) -> int:
    """Find a refusal before amounts: by health, type, the pod's UUID lists or full slots; 0 for none."""
    if device.gate:
        return device.gate
    if not device.accepts_uuid:
        return verdict_codes.UUID_MISMATCH
    if device.total_slots <= device.used_slots:
        return verdict_codes.TIME_SLICING_EXHAUSTED
    if node_request.request.is_mutex and device.used_slots > 0:
        return verdict_codes.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT
    return 0


def pick_plain(device: DeviceState, node_request: NodeRequest, look: int) -> Pick:
    return Pick(
        device, node_request.request.resolve_memory(device.total_memory), node_request.request.cores, None, look
    )


def take_in_turn(
    devices: Sequence[DeviceState],
    node_request: NodeRequest,
    refusal: Callable[[DeviceState, NodeRequest], int] = find_plain_refusal,
    pick: Callable[[DeviceState, NodeRequest, int], Pick] = pick_plain,
    *,
    takes_all: bool = False,
) -> ReferenceFit:
    """Take what passes the checks, until there is enough or, with `takes_all`, to the end."""
    fit = ReferenceFit()
    for device in devices:
        code = refusal(device, node_request)
        look = fit.look(device, code or verdict_codes.PICKED)
        if not code:
            fit.picks.append(pick(device, node_request, look))
            if not takes_all and len(fit.picks) >= node_request.request.count:
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


def conclude_by_count(fit: ReferenceFit, devices: Iterable[DeviceState], node_request: NodeRequest) -> ReferenceFit:
    """Conclude the fit: it passes if as many devices were taken as are requested."""
    return conclude(fit, devices, passed=len(fit.picks) >= node_request.request.count)


def keep(fit: ReferenceFit, picks: Sequence[Pick]) -> None:
    """Give back all picks but these."""
    taken = {pick.look for pick in picks}
    for pick in fit.picks:
        if pick.look not in taken:
            fit.looks[pick.look] = (pick.device.position, verdict_codes.FITS)
    fit.picks = list(picks)


def refuse_all(devices: Sequence[DeviceState], code: int, count: int = 1) -> ReferenceFit:
    """Refuse the node as a whole, which HAMi counts `count` times."""
    fit = ReferenceFit()
    for position, device in enumerate(devices):
        fit.look(device, code if position < count else verdict_codes.NOT_REACHED)
    return fit
