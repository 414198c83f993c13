"""Metax (HAMi's `metax/sdevice.go`): shared devices with quality of service, classes of pods and links; whole devices.

Moore Threads' devices follow the rule of whole ones: a container gets only the device that all containers before it
got.
"""

from collections.abc import Sequence
from typing import Final

from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.checks.reference_fit import DeviceState, Pick, ReferenceFit, find_core_refusal
from engine.fit.judge.vendors.asking import (
    NodeRequest,
    conclude,
    conclude_by_count,
    find_plain_refusal,
    find_slot_refusal,
    keep,
    take_in_turn,
)
from engine.hami import vendor_annotations as keys

LINK: Final = "LinkZone"
QOS: Final = "QosPolicy"
_ALL_CORES: Final = 100


def fit_sgpu(devices: Sequence[DeviceState], node_request: NodeRequest) -> ReferenceFit:
    fit = take_in_turn(devices, node_request, _find_refusal, _pick, takes_all=True)
    if len(fit.picks) < node_request.request.count:
        return conclude(fit, devices, passed=False)
    keep(fit, _choose_best(fit.picks, node_request))
    return conclude(fit, devices, passed=True)


def read_app_class(node_request: NodeRequest) -> str:
    return node_request.texts.get(keys.METAX_CLASS, "")


def _find_refusal(device: DeviceState, node_request: NodeRequest) -> int:
    if device.gate:
        return verdict_codes.UNHEALTHY
    wanted = read_app_class(node_request)
    if not _accepts_class(device, wanted):
        return verdict_codes.APP_CLASS_MISMATCH
    if wanted != keys.ONLINE and not _accepts_qos(device, node_request):
        return verdict_codes.QOS_MISMATCH
    if code := find_slot_refusal(device, node_request):
        return code
    if device.total_memory - device.used_memory < node_request.request.resolve_memory(device.total_memory):
        return verdict_codes.INSUFFICIENT_MEMORY
    # An online pod takes cores as it needs them.
    return 0 if wanted == keys.ONLINE else find_core_refusal(device, node_request.request)


def _accepts_class(device: DeviceState, wanted: str) -> bool:
    """Tell whether the classes on the device allow the pod's.

    Online and offline pods share devices only with each other, and offline ones do not join an online one.
    """
    if device.used_slots == 0:
        return True
    online, offline = keys.ONLINE in device.classes, keys.OFFLINE in device.classes
    if (online or offline) != (wanted in (keys.ONLINE, keys.OFFLINE)):
        return False
    return not (online and wanted == keys.OFFLINE)


def _accepts_qos(device: DeviceState, node_request: NodeRequest) -> bool:
    if device.used_slots == 0 or node_request.request.cores == _ALL_CORES:
        return True
    policy = device.extra.get(QOS, "")
    return policy in ("", node_request.texts.get(keys.METAX_QOS, ""))


def _pick(device: DeviceState, node_request: NodeRequest, look: int) -> Pick:
    cores = 0 if read_app_class(node_request) == keys.ONLINE else node_request.request.cores
    return Pick(device, node_request.request.resolve_memory(device.total_memory), cores, None, look)


def _choose_best(picks: Sequence[Pick], node_request: NodeRequest) -> Sequence[Pick]:
    count = node_request.request.count
    if len(picks) > count:
        if keys.METAX_CLASS in node_request.texts:
            if read_app_class(node_request) == keys.ONLINE:
                return sorted(picks, key=_rank_busy)[:count]
        elif node_request.request.cores == _ALL_CORES:
            return _choose_linked(picks, count)
    return picks[:count]


def _rank_busy(pick: Pick) -> tuple[bool, int, int]:
    """Rank devices with fewer online pods first, and those with only offline pods last."""
    online, offline = (pick.device.classes.count(word) for word in (keys.ONLINE, keys.OFFLINE))
    return (online == 0 and offline > 0), online, offline


def _choose_linked(picks: Sequence[Pick], count: int) -> Sequence[Pick]:
    """Choose the smallest zone of linked devices that has enough, else zone after zone, then devices without links."""
    zones: dict[int, list[Pick]] = {}
    for pick in picks:
        zones.setdefault(read_zone(pick.device), []).append(pick)
    linked = sorted((zone for link, zone in zones.items() if link > 0), key=len)
    for zone in linked:
        if len(zone) >= count:
            return zone[:count]
    others = [pick for link, zone in zones.items() if link <= 0 for pick in zone]
    return [*(pick for zone in linked for pick in zone), *others][:count]


def read_zone(device: DeviceState) -> int:
    zone = device.extra.get(LINK, 0)
    return zone if isinstance(zone, int) else 0


def fit_one_device(devices: Sequence[DeviceState], node_request: NodeRequest) -> ReferenceFit:
    return conclude_by_count(take_in_turn(devices, node_request, _refuse_other_device), devices, node_request)


def _refuse_other_device(device: DeviceState, node_request: NodeRequest) -> int:
    others = any(position != device.position for held in node_request.earlier for position in held)
    return find_plain_refusal(device, node_request) or (verdict_codes.CUSTOM_RULE if others else 0)
