"""Metax' whole devices and Moore Threads: a container gets only the device that all containers before it got."""

from collections.abc import Sequence

from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.checks.reference_fit import DeviceState, ReferenceFit
from engine.fit.judge.vendors.asking import NodeRequest, conclude_by_count, find_plain_refusal, take_in_turn


def fit_one_device(devices: Sequence[DeviceState], node_request: NodeRequest) -> ReferenceFit:
    return conclude_by_count(take_in_turn(devices, node_request, _find_refusal), devices, node_request)


def _find_refusal(device: DeviceState, node_request: NodeRequest) -> int:
    others = any(position != device.position for held in node_request.earlier for position in held)
    return find_plain_refusal(device, node_request) or (verdict_codes.CUSTOM_RULE if others else 0)
