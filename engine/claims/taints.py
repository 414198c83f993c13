"""Taints of devices, and the tolerations of requests for them."""

from collections.abc import Iterable, Sequence
from typing import Final

from engine.claims.device_details import DeviceTaint
from engine.claims.requests import DeviceToleration

_PREVENTING: Final = frozenset({"NoSchedule", "NoExecute"})
"""Effects that keep a device from being allocated; others, such as None, only inform."""


def find_untolerated(taints: Iterable[DeviceTaint], tolerations: Sequence[DeviceToleration]) -> tuple[DeviceTaint, ...]:
    """Return the taints that keep a request from a device."""
    return tuple(
        taint
        for taint in taints
        if taint.effect in _PREVENTING and not any(is_tolerated(taint, toleration) for toleration in tolerations)
    )


def is_tolerated(taint: DeviceTaint, toleration: DeviceToleration) -> bool:
    """Return whether a toleration covers a taint; an empty effect or key stands for all, no operator for Equal."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"
