"""Devices of one node and requests of one container, as the rules of a vendor get them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from engine.fit.judge.checks.reference_fit import DeviceState, ReferenceFit
from engine.fit.judge.checks.verdict_codes import VERDICTS
from engine.fit.judge.request.device_request import DeviceRequest
from engine.fit.judge.request.pod_request import VendorRequest
from engine.fit.judge.vendors.asking import NodeRequest
from engine.hami.vendors import Vendor


def a_device(position: int, **fields: Any) -> DeviceState:
    device = DeviceState(position, f"D-{position}", 0, True, 0, 100, 0, 100, 0, 1000, 0, index=position)
    return replace(device, **fields)


def a_node_request(
    vendor: Vendor,
    count: int,
    *,
    memory_mib: int = 0,
    percent: int = 0,
    cores: int = 0,
    is_mutex: bool = False,
    texts: Mapping[str, str] | None = None,
    marks: Mapping[str, str] | None = None,
    earlier: Sequence[Sequence[int]] = (),
) -> NodeRequest:
    request = DeviceRequest(count, memory_mib, percent, cores, is_mutex, numa_bind=False, collects_all=False)
    raw = VendorRequest(
        "main", vendor=vendor.word, count=count, memory_mib=memory_mib, memory_percentage=percent, cores=cores
    )
    return NodeRequest(vendor, request, raw, texts or {}, marks or {}, earlier)


def list_picks(fit: ReferenceFit) -> list[int]:
    return [pick.device.position for pick in fit.picks]


def list_verdicts(fit: ReferenceFit) -> dict[int, str]:
    return {position: VERDICTS[code] for position, code in fit.looks}
