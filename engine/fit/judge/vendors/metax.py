"""Metax' shared devices (HAMi's `metax/sdevice.go`): quality of service, online and offline pods, links."""

from collections.abc import Sequence
from typing import Final

from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.checks.reference_fit import DeviceState, Pick, ReferenceFit, core_refusal
from engine.fit.judge.vendors.asking import NodeRequest, conclude, keep, slot_refusal, take_in_turn
from engine.hami import vendor_annotations as keys

LINK: Final = "LinkZone"
QOS: Final = "QosPolicy"
_WHOLE: Final = 100


def fit_sgpu(devices: Sequence[DeviceState], asked: NodeRequest) -> ReferenceFit:
    fit = take_in_turn(devices, asked, _refusal, _pick, takes_all=True)
    if len(fit.picks) < asked.request.count:
        return conclude(fit, devices, passed=False)
    keep(fit, _best(fit.picks, asked))
    return conclude(fit, devices, passed=True)


def app_class(asked: NodeRequest) -> str:
    return asked.texts.get(keys.METAX_CLASS, "")


def _refusal(device: DeviceState, asked: NodeRequest) -> int:
    if device.gate:
        return verdict_codes.UNHEALTHY
    wanted = app_class(asked)
    if not _accepts_class(device, wanted):
        return verdict_codes.APP_CLASS_MISMATCH
    if wanted != keys.ONLINE and not _accepts_qos(device, asked):
        return verdict_codes.QOS_MISMATCH
    if code := slot_refusal(device, asked):
        return code
    if device.total_memory - device.used_memory < asked.request.memory_of(device.total_memory):
        return verdict_codes.INSUFFICIENT_MEMORY
    # An online pod takes cores as it needs them.
    return 0 if wanted == keys.ONLINE else core_refusal(device, asked.request)


def _accepts_class(device: DeviceState, wanted: str) -> bool:
    """Online and offline pods share devices with each other only, and offline ones do not join an online one."""
    if device.used_slots == 0:
        return True
    online, offline = keys.ONLINE in device.classes, keys.OFFLINE in device.classes
    if (online or offline) != (wanted in (keys.ONLINE, keys.OFFLINE)):
        return False
    return not (online and wanted == keys.OFFLINE)


def _accepts_qos(device: DeviceState, asked: NodeRequest) -> bool:
    if device.used_slots == 0 or asked.request.cores == _WHOLE:
        return True
    policy = device.extra.get(QOS, "")
    return policy in ("", asked.texts.get(keys.METAX_QOS, ""))


def _pick(device: DeviceState, asked: NodeRequest, look: int) -> Pick:
    cores = 0 if app_class(asked) == keys.ONLINE else asked.request.cores
    return Pick(device, asked.request.memory_of(device.total_memory), cores, None, look)


def _best(picks: Sequence[Pick], asked: NodeRequest) -> Sequence[Pick]:
    count = asked.request.count
    if len(picks) > count:
        if keys.METAX_CLASS in asked.texts:
            if app_class(asked) == keys.ONLINE:
                return sorted(picks, key=_busy)[:count]
        elif asked.request.cores == _WHOLE:
            return _linked(picks, count)
    return picks[:count]


def _busy(pick: Pick) -> tuple[bool, int, int]:
    """Devices with fewer online pods first; those with offline pods alone last."""
    online, offline = (pick.device.classes.count(word) for word in (keys.ONLINE, keys.OFFLINE))
    return (online == 0 and offline > 0), online, offline


def _linked(picks: Sequence[Pick], count: int) -> Sequence[Pick]:
    """The smallest zone of linked devices that has enough, else zone after zone, then devices without links."""
    zones: dict[int, list[Pick]] = {}
    for pick in picks:
        zones.setdefault(zone_of(pick.device), []).append(pick)
    linked = sorted((zone for link, zone in zones.items() if link > 0), key=len)
    for zone in linked:
        if len(zone) >= count:
            return zone[:count]
    others = [pick for link, zone in zones.items() if link <= 0 for pick in zone]
    return [*(pick for zone in linked for pick in zone), *others][:count]


def zone_of(device: DeviceState) -> int:
    zone = device.extra.get(LINK, 0)
    return zone if isinstance(zone, int) else 0
