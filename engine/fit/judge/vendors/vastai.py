"""Biren and Vastai (HAMi's `biren` and `vastai`): whole devices, of which only slots count.

A Vastai node may list the dies of its boards as devices. Then a container's dies come from as few boards as possible,
and under the policy mutex a board belongs to one pod.
"""

from collections.abc import Sequence
from typing import Final

from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.checks.reference_fit import DeviceState, Pick, ReferenceFit
from engine.fit.judge.vendors.asking import (
    NodeRequest,
    conclude_by_count,
    find_slot_refusal,
    keep,
    take_in_turn,
)

STRATEGY: Final = "DeviceStrategy"
DIE: Final = "die"
BOARD: Final = "AIC"
"""Fields that a node registers next to a device: how it lists its devices, and the board of a die."""


def fit_biren(devices: Sequence[DeviceState], node_request: NodeRequest) -> ReferenceFit:
    return conclude_by_count(take_in_turn(devices, node_request, find_slot_refusal, _pick), devices, node_request)


def fit_vastai(devices: Sequence[DeviceState], node_request: NodeRequest) -> ReferenceFit:
    # HAMi looks at the first of its list, which is tried last.
    if not devices or devices[-1].extra.get(STRATEGY) != DIE:
        return fit_biren(devices, node_request)
    occupied = {device.extra.get(BOARD) for device in devices if device.used_slots > 0} - {None}

    def find_refusal(device: DeviceState, _: NodeRequest) -> int:
        if code := find_slot_refusal(device, node_request):
            return code
        is_taken = node_request.request.is_mutex and device.extra.get(BOARD) in occupied
        return verdict_codes.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT if is_taken else 0

    fit = take_in_turn(devices, node_request, find_refusal, _pick, takes_all=True)
    fit = conclude_by_count(fit, devices, node_request)
    if fit.passed and len(fit.picks) > node_request.request.count:
        keep(fit, _choose_dies(fit.picks, node_request.request.count))
    return fit


def _pick(device: DeviceState, _: NodeRequest, look: int) -> Pick:
    return Pick(device, 0, 0, None, look)


def _choose_dies(picks: Sequence[Pick], count: int) -> Sequence[Pick]:
    """Choose the dies of the boards with the most of them; devices without a board are none of several."""
    if count == 1:
        return picks[:1]
    boards: dict[str, list[Pick]] = {}
    for pick in picks:
        board = pick.device.extra.get(BOARD)
        if isinstance(board, str):
            boards.setdefault(board, []).append(pick)
    largest_first = sorted(boards.values(), key=len, reverse=True)
    return [pick for dies in largest_first for pick in dies][:count]
