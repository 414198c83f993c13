"""What vendors add to the score of a node that fits (`ScoreNode` of each), from the devices that the pod would get."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import orjson

from engine.fit.judge.checks.reference_fit import Pick
from engine.fit.judge.vendors.ascend import HAS_NETWORKS, NETWORK
from engine.fit.judge.vendors.kunlun import WING
from engine.fit.judge.vendors.metax import LINK
from engine.hami import vendor_annotations as keys
from engine.hami.go_values import parse_boolean
from engine.hami.vendors import Family, Vendor

SCORED: Final = (Family.ASCEND, Family.METAX_GPU, Family.METAX_SGPU, Family.KUNLUN)
"""Families that add to the score of a node."""
_NETWORK_WEIGHT: Final = np.float32(10)
_METAX_WEIGHT: Final = 10000
_METAX_BASE: Final = 2000
_LINK_SCORE: Final = 10
_WHOLE: Final = 100
_KUNLUN_SCORES: Final = {-1: 3000, 0: 2000, 1: 1000, 2: 0}


class Before(NamedTuple):
    """A device of the node before the pod got anything."""

    position: int
    number: int
    model: str
    used: bool
    extra: Mapping[str, Any]
    classes: Sequence[str]


class Scored(NamedTuple):
    """given: per container, in order, what it would get of the vendor. marks: annotations of the node."""

    vendor: Vendor
    given: Sequence[Sequence[Pick]]
    devices: Sequence[Before]
    texts: Mapping[str, str]
    marks: Mapping[str, str]
    policy: str


def vendor_score(scored: Scored) -> np.float32:
    """The score that one vendor adds."""
    family = scored.vendor.family
    if family is Family.ASCEND:
        return _networks(scored)
    if family is Family.METAX_GPU:
        return _losses(scored)
    if family is Family.KUNLUN:
        return np.float32(_wings(scored))
    if family is Family.METAX_SGPU:
        sign = -1 if scored.policy == "spread" else 1
        return np.float32(sign * _METAX_WEIGHT) * np.float32(_metax(scored))
    return np.float32(0)


def _networks(scored: Scored) -> np.float32:
    """The largest share of each container's devices that is in one network."""
    score = np.float32(0)
    if not scored.vendor.word.startswith(HAS_NETWORKS):
        return score
    for picks in scored.given:
        networks = [pick.device.extra.get(NETWORK) for pick in picks]
        if any(NETWORK not in pick.device.extra for pick in picks):
            return np.float32(0)
        numbers = [int(network) for network in networks if isinstance(network, int | float)]
        if numbers:
            largest = max(numbers.count(number) for number in numbers)
            score += np.float32(largest) / np.float32(len(numbers))
    return np.float32(score * _NETWORK_WEIGHT)


def _losses(scored: Scored) -> np.float32:
    key = {"binpack": keys.METAX_LOSSES, "spread": keys.METAX_SCORES}.get(scored.policy, "")
    if key not in scored.marks:
        return np.float32(0)
    count = sum(len(picks) for picks in scored.given)
    return np.float32(_METAX_BASE) - np.float32(_by_count(scored.marks[key]).get(str(count), 0))


def _by_count(text: str) -> Mapping[str, int]:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    values = found.values() if isinstance(found, dict) else ("",)
    return found if all(type(value) is int for value in values) else {}


def _wings(scored: Scored) -> int:
    """Better the more whole wings are left."""
    if any("kunlun" not in device.model for device in scored.devices):
        return 0
    before = {device.number for device in scored.devices if device.used}
    given = {pick.device.index for picks in scored.given for pick in picks}
    return _KUNLUN_SCORES.get(_bubbles(given) - _bubbles(before), 1000)


def _bubbles(indices: set[int]) -> int:
    left = sum(index < WING for index in indices)
    values = {WING: 0, 1: 2}
    return 1 if not indices else values.get(left, 1) + values.get(len(indices) - left, 1)


def _metax(scored: Scored) -> int:
    picks = [pick for given in scored.given for pick in given]
    if picks and scored.texts.get(keys.METAX_CLASS) == keys.ONLINE:
        given = {pick.device.position for pick in picks}
        return sum(_class_score(device) for device in scored.devices if device.position in given)
    is_aware = scored.vendor.chip.link_aware
    named = parse_boolean(scored.texts.get(keys.METAX_LINKS, ""))
    is_aware = is_aware if named is None else named
    return _link_score(scored, picks) if is_aware and any(pick.cores == _WHOLE for pick in picks) else 0


def _class_score(device: Before) -> int:
    online, offline = (device.classes.count(word) for word in (keys.ONLINE, keys.OFFLINE))
    return -100 * offline if offline and not online else -20 * online - 2 * offline


def _link_score(scored: Scored, picks: Sequence[Pick]) -> int:
    """Ten times what the links of the given devices are worth, less what the rest loses."""
    given = [(pick.device.position, pick.device.extra.get(LINK, 0)) for pick in picks if pick.cores == _WHOLE]
    free = [(device.position, device.extra.get(LINK, 0)) for device in scored.devices if not device.used]
    taken = {position for position, _ in given}
    rest = [item for item in free if item[0] not in taken]
    before, now, after = map(_links, (free, given, rest))
    return 10 * now - (before - now - after)


def _links(devices: Sequence[tuple[int, Any]]) -> int:
    return sum(
        _LINK_SCORE
        for place, (position, zone) in enumerate(devices)
        for other, other_zone in devices[place + 1 :]
        if position != other and zone and zone == other_zone
    )
