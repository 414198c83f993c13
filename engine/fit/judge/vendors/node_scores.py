"""Additions of vendors to the score of a node that fits (`ScoreNode` of each), by the devices the pod would get."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import orjson

from engine.fit.judge.checks.reference_fit import Pick
from engine.fit.judge.vendors.ascend import HAS_NETWORKS, NETWORK
from engine.fit.judge.vendors.kunlun import WING
from engine.fit.judge.vendors.metax import LINK
from engine.fit.judge.vendors.vastai import BOARD, DIE, STRATEGY
from engine.hami import vendor_annotations as keys
from engine.hami.go_values import parse_boolean
from engine.hami.vendors import Family, Vendor

SCORED: Final = (Family.ASCEND, Family.METAX_GPU, Family.METAX_SGPU, Family.KUNLUN, Family.VASTAI)
"""Families that add to the score of a node."""
_NETWORK_WEIGHT: Final = np.float32(10)
_METAX_WEIGHT: Final = 10000
_METAX_BASE: Final = 2000
_LINK_SCORE: Final = 10
_ALL_CORES: Final = 100
_KUNLUN_SCORES: Final = {-1: 3000, 0: 2000, 1: 1000, 2: 0}


class DeviceBefore(NamedTuple):
    """Device of the node before the pod got anything."""

    position: int
    number: int
    model: str
    used: bool
    extra: Mapping[str, Any]
    classes: Sequence[str]


class ScoredNode(NamedTuple):
    """Node that fits.

    picks: per container, in order, what it would get of the vendor. marks: annotations of the node.
    """

    vendor: Vendor
    picks: Sequence[Sequence[Pick]]
    devices: Sequence[DeviceBefore]
    texts: Mapping[str, str]
    marks: Mapping[str, str]
    policy: str


def score_vendor(scored: ScoredNode) -> np.float32:
    """Score a node by what one vendor adds."""
    family = scored.vendor.family
    if family is Family.ASCEND:
        return _score_networks(scored)
    if family is Family.METAX_GPU:
        return _score_losses(scored)
    if family is Family.VASTAI:
        return _score_boards(scored)
    if family is Family.KUNLUN:
        return np.float32(_score_wings(scored))
    if family is Family.METAX_SGPU:
        sign = -1 if scored.policy == "spread" else 1
        return np.float32(sign * _METAX_WEIGHT) * np.float32(_score_metax(scored))
    return np.float32(0)


def _score_networks(scored: ScoredNode) -> np.float32:
    """Score the largest share of each container's devices that is in one network."""
    score = np.float32(0)
    if not scored.vendor.word.startswith(HAS_NETWORKS):
        return score
    for picks in scored.picks:
        networks = [pick.device.extra.get(NETWORK) for pick in picks]
        if any(NETWORK not in pick.device.extra for pick in picks):
            return np.float32(0)
        numbers = [int(network) for network in networks if isinstance(network, int | float)]
        if numbers:
            largest = max(numbers.count(number) for number in numbers)
            score += np.float32(largest) / np.float32(len(numbers))
    return np.float32(score * _NETWORK_WEIGHT)


def _score_boards(scored: ScoredNode) -> np.float32:
    """Score the largest share of each container's dies that is on one board."""
    score = np.float32(0)
    for picks in filter(None, scored.picks):
        extras = [pick.device.extra for pick in picks]
        if any(BOARD not in extra or extra.get(STRATEGY, DIE) != DIE for extra in extras):
            return np.float32(0)
        boards = [extra[BOARD] for extra in extras if isinstance(extra[BOARD], str)]
        if boards:
            score += np.float32(max(map(boards.count, boards))) / np.float32(len(boards))
    return score


def _score_losses(scored: ScoredNode) -> np.float32:
    key = {"binpack": keys.METAX_LOSSES, "spread": keys.METAX_SCORES}.get(scored.policy, "")
    if key not in scored.marks:
        return np.float32(0)
    count = sum(len(picks) for picks in scored.picks)
    return np.float32(_METAX_BASE) - np.float32(_parse_losses(scored.marks[key]).get(str(count), 0))


def _parse_losses(text: str) -> Mapping[str, int]:
    try:
        losses = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    values = losses.values() if isinstance(losses, dict) else ("",)
    return losses if all(type(value) is int for value in values) else {}


def _score_wings(scored: ScoredNode) -> int:
    """Score the node better the more whole wings are left."""
    if any("kunlun" not in device.model for device in scored.devices):
        return 0
    before = {device.number for device in scored.devices if device.used}
    taken = {pick.device.index for picks in scored.picks for pick in picks}
    return _KUNLUN_SCORES.get(_count_bubbles(taken) - _count_bubbles(before), 1000)


def _count_bubbles(indices: set[int]) -> int:
    left = sum(index < WING for index in indices)
    values = {WING: 0, 1: 2}
    return 1 if not indices else values.get(left, 1) + values.get(len(indices) - left, 1)


def _score_metax(scored: ScoredNode) -> int:
    picks = [pick for container in scored.picks for pick in container]
    if picks and scored.texts.get(keys.METAX_CLASS) == keys.ONLINE:
        taken = {pick.device.position for pick in picks}
        return sum(_score_class(device) for device in scored.devices if device.position in taken)
    is_aware = scored.vendor.chip.link_aware
    named = parse_boolean(scored.texts.get(keys.METAX_LINKS, ""))
    is_aware = is_aware if named is None else named
    return _score_links(scored, picks) if is_aware and any(pick.cores == _ALL_CORES for pick in picks) else 0


def _score_class(device: DeviceBefore) -> int:
    online, offline = (device.classes.count(word) for word in (keys.ONLINE, keys.OFFLINE))
    return -100 * offline if offline and not online else -20 * online - 2 * offline


def _score_links(scored: ScoredNode, picks: Sequence[Pick]) -> int:
    """Score ten times what the links of the given devices are worth, less what the others lose."""
    granted = [(pick.device.position, pick.device.extra.get(LINK, 0)) for pick in picks if pick.cores == _ALL_CORES]
    free = [(device.position, device.extra.get(LINK, 0)) for device in scored.devices if not device.used]
    taken = {position for position, _ in granted}
    remaining = [item for item in free if item[0] not in taken]
    before, now, after = map(_sum_links, (free, granted, remaining))
    return 10 * now - (before - now - after)


def _sum_links(devices: Sequence[tuple[int, Any]]) -> int:
    return sum(
        _LINK_SCORE
        for index, (position, zone) in enumerate(devices)
        for other, other_zone in devices[index + 1 :]
        if position != other and zone and zone == other_zone
    )
