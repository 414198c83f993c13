"""Metax' whole devices and Moore Threads: a container gets only the device that all containers before it got."""

from collections.abc import Sequence

from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.checks.reference_fit import DeviceState, ReferenceFit
from engine.fit.judge.vendors.asking import NodeRequest, enough, plain_refusal, take_in_turn


def fit_one_device(devices: Sequence[DeviceState], asked: NodeRequest) -> ReferenceFit:
    return enough(take_in_turn(devices, asked, _refusal), devices, asked)


def _refusal(device: DeviceState, asked: NodeRequest) -> int:
    others = any(position != device.position for held in asked.earlier for position in held)
    return plain_refusal(device, asked) or (verdict_codes.CUSTOM_RULE if others else 0)
