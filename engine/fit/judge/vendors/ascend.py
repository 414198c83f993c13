"""Ascend (HAMi's `ascend/device.go`): parts by template or in software, network groups, and pairs of Ascend910C."""

from collections.abc import Sequence
from typing import Final

from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.checks.reference_fit import DeviceState, Pick, ReferenceFit
from engine.fit.judge.vendors.asking import NodeRequest, conclude, enough, keep, refuse_all, take_in_turn
from engine.hami import vendor_annotations as keys

NETWORK: Final = "NetworkID"
HAS_NETWORKS: Final = "Ascend910"
_PAIRED: Final = "Ascend910C"
_PAIR: Final = 2
_ALL_CORES: Final = 100


def is_soft(asked: NodeRequest) -> bool:
    """Whether the pod wants its share in software, not as a template."""
    return asked.texts.get(keys.ASCEND_MODE) == keys.ASCEND_SOFT


def fit_ascend(devices: Sequence[DeviceState], asked: NodeRequest) -> ReferenceFit:
    if is_soft(asked):
        if not _shares_in_software(asked):
            return refuse_all(devices, verdict_codes.MODE_NOT_FIT)
        # In software a device has a hundred percent, however many cores it registers.
        for device in devices:
            device.total_cores = _ALL_CORES
    count, word = asked.request.count, asked.vendor.word
    by_network = word.startswith(HAS_NETWORKS) and all(NETWORK in device.extra for device in devices)
    in_pairs = word == _PAIRED and count > 1
    fit = take_in_turn(devices, asked, takes_all=by_network or in_pairs)
    if in_pairs:
        return _conclude_pairs(fit, devices, count)
    if by_network and len(fit.picks) > count:
        keep(fit, fit.picks[:1] if count == 1 else _of_largest_groups(fit.picks, count))
        return conclude(fit, devices, passed=True)
    return enough(fit, devices, asked)


def _shares_in_software(asked: NodeRequest) -> bool:
    named = asked.marks.get(keys.ASCEND_NODE_SOFT)
    return asked.vendor.chip.soft_split if named is None else named == "true"


def _conclude_pairs(fit: ReferenceFit, devices: Sequence[DeviceState], count: int) -> ReferenceFit:
    """Both devices of a module, or none of it."""
    modules: dict[int, list[Pick]] = {}
    for pick in fit.picks:
        modules.setdefault(pick.device.index // _PAIR, []).append(pick)
    kept: list[Pick] = []
    for module in modules.values():
        if len(module) == _PAIR and len(kept) < count:
            kept += module
    keep(fit, kept)
    fit = conclude(fit, devices, passed=len(kept) == count)
    if not fit.passed:
        # HAMi counts here out of what is requested, not out of the node's devices.
        fit.out_of = count
    return fit


def _of_largest_groups(picks: Sequence[Pick], count: int) -> list[Pick]:
    """Devices of as few networks as possible: the largest group first; of equal ones the first, at random in HAMi."""
    groups: dict[int, list[Pick]] = {}
    for pick in picks:
        network = pick.device.extra.get(NETWORK)
        if isinstance(network, int | float):
            groups.setdefault(int(network), []).append(pick)
    return [pick for group in sorted(groups.values(), key=len, reverse=True) for pick in group][:count]
