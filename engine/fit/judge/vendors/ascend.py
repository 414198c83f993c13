"""Ascend (HAMi's `ascend/device.go`): parts by template or in software, network groups, and pairs of Ascend910C."""

from collections.abc import Sequence
from typing import Final

from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.checks.reference_fit import DeviceState, Pick, ReferenceFit
from engine.fit.judge.vendors.asking import NodeRequest, conclude, conclude_by_count, keep, refuse_all, take_in_turn
from engine.hami import vendor_annotations as keys

NETWORK: Final = "NetworkID"
HAS_NETWORKS: Final = "Ascend910"
_PAIRED: Final = "Ascend910C"
_PAIR: Final = 2
_ALL_CORES: Final = 100


def is_soft(node_request: NodeRequest) -> bool:
    """Tell whether the pod wants its share in software, not as a template."""
    return node_request.texts.get(keys.ASCEND_MODE) == keys.ASCEND_SOFT


def fit_ascend(devices: Sequence[DeviceState], node_request: NodeRequest) -> ReferenceFit:
    if is_soft(node_request):
        if not _shares_in_software(node_request):
            return refuse_all(devices, verdict_codes.MODE_NOT_FIT)
        # In software a device has a hundred percent, however many cores it registers.
        for device in devices:
            device.total_cores = _ALL_CORES
    count, word = node_request.request.count, node_request.vendor.word
    by_network = word.startswith(HAS_NETWORKS) and all(NETWORK in device.extra for device in devices)
    in_pairs = word == _PAIRED and count > 1
    fit = take_in_turn(devices, node_request, takes_all=by_network or in_pairs)
    if in_pairs:
        return _conclude_pairs(fit, devices, count)
    if by_network and len(fit.picks) > count:
        keep(fit, fit.picks[:1] if count == 1 else _choose_largest_groups(fit.picks, count))
        return conclude(fit, devices, passed=True)
    return conclude_by_count(fit, devices, node_request)


def _shares_in_software(node_request: NodeRequest) -> bool:
    named = node_request.marks.get(keys.ASCEND_NODE_SOFT)
    return node_request.vendor.chip.soft_split if named is None else named == "true"


def _conclude_pairs(fit: ReferenceFit, devices: Sequence[DeviceState], count: int) -> ReferenceFit:
    """Take both devices of a module, or none of it."""
    modules: dict[int, list[Pick]] = {}
    for pick in fit.picks:
        modules.setdefault(pick.device.index // _PAIR, []).append(pick)
    pairs: list[Pick] = []
    for module in modules.values():
        if len(module) == _PAIR and len(pairs) < count:
            pairs += module
    keep(fit, pairs)
    fit = conclude(fit, devices, passed=len(pairs) == count)
    if not fit.passed:
        # HAMi counts here out of what is requested, not out of the node's devices.
        fit.out_of = count
    return fit


def _choose_largest_groups(picks: Sequence[Pick], count: int) -> list[Pick]:
    """Choose devices of as few networks as possible: the largest group first.

    Of equal groups the first wins; in HAMi a random one.
    """
    groups: dict[int, list[Pick]] = {}
    for pick in picks:
        network = pick.device.extra.get(NETWORK)
        if isinstance(network, int | float):
            groups.setdefault(int(network), []).append(pick)
    return [pick for group in sorted(groups.values(), key=len, reverse=True) for pick in group][:count]
