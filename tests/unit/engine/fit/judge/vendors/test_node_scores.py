"""Additions of each vendor to the score of a node, worked out by hand by the steps of HAMi's ``ScoreNode``.

Ascend: ten times the share of a container's devices in one network. Vastai: the share of its dies on one board. Metax:
2000 less the losses that the node's annotation has for as many devices; for shared devices 10,000 times their links or
classes. Kunlun: 2000 less 1000 for each step by which the devices taken count more than those in use, down to 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from engine.fit.judge.checks.reference_fit import DeviceState, Pick
from engine.fit.judge.vendors.node_scores import DeviceBefore, ScoredNode, score_vendor
from engine.hami.vendor_catalog import HYGON, KUNLUN, METAX, METAX_GPU, VASTAI, build_ascend
from engine.hami.vendors import Vendor

ASCEND = build_ascend("Ascend910B3")
CLASS, LINKS = "metax-tech.com/sgpu-app-class", "metax-tech.com/sgpu-topology-aware"


def a_pick(position: int, cores: int = 0, **extra: Any) -> Pick:
    device = DeviceState(position, f"D-{position}", 0, True, 0, 100, 0, 100, 0, 1000, 0, index=position, extra=extra)
    return Pick(device, 0, cores, None, 0)


def a_device(position: int, *classes: str, used: bool = False, model: str = "", **extra: Any) -> DeviceBefore:
    return DeviceBefore(position, position, model, used, extra, classes)


def score(
    vendor: Vendor,
    *picks: Sequence[Pick],
    devices: Sequence[DeviceBefore] = (),
    texts: Mapping[str, str] | None = None,
    marks: Mapping[str, str] | None = None,
    policy: str = "binpack",
) -> float:
    return float(score_vendor(ScoredNode(vendor, picks, devices, texts or {}, marks or {}, policy)))


def pick_connected(*networks: Any) -> list[Pick]:
    return [a_pick(position, NetworkID=network) for position, network in enumerate(networks)]


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([], 0),
        ([[]], 0),
        ([pick_connected(1)], 10),
        ([pick_connected(1, 1, 2, 1)], 7.5),
        ([pick_connected(1, 2)], 5),
        # A container by itself, and their sum.
        ([pick_connected(1, 1), pick_connected(1, 2)], 15),
        # A number is a network by its whole part; a text is none.
        ([pick_connected(1.9, 1)], 10),
        ([pick_connected(1, "a")], 10),
        # One device without a network, and the node gets nothing.
        ([pick_connected(1, 1), [a_pick(2), *pick_connected(1)]], 0),
        ([[a_pick(2)], pick_connected(1, 1)], 0),
    ],
)
def test_ascend_scores_devices_of_one_network(containers: list[list[Pick]], expected: float) -> None:
    assert score(ASCEND, *containers) == pytest.approx(expected)
    # Only chips of the 910 line are connected.
    assert score(build_ascend("Ascend310P"), *containers) == 0


def pick_dies(*boards: Any, strategy: str | None = "die") -> list[Pick]:
    fields: dict[str, Any] = {} if strategy is None else {"DeviceStrategy": strategy}
    return [a_pick(position, AIC=board, **fields) for position, board in enumerate(boards)]


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([], 0),
        ([[], pick_dies("A")], 1),
        ([pick_dies("A", "B", "A", "A")], 0.75),
        ([pick_dies("A", "B"), pick_dies("A", "A")], 1.5),
        ([pick_dies("A", strategy=None)], 1),
        # Whole devices are not scored, and neither is a node with a die of no board.
        ([pick_dies("A", "A", strategy="card")], 0),
        ([pick_dies("A", "A"), [a_pick(3, DeviceStrategy="die")]], 0),
        ([pick_dies("A", "A"), pick_dies("B", strategy="card")], 0),
        ([pick_dies(7)], 0),
        ([pick_dies(7, "A")], 1),
    ],
)
def test_vastai_scores_dies_of_one_board(containers: list[list[Pick]], expected: float) -> None:
    assert score(VASTAI, *containers) == pytest.approx(expected)


LOSSES, SCORES = "metax-tech.com/gpu.topology.losses", "metax-tech.com/gpu.topology.scores"


@pytest.mark.parametrize(
    ("policy", "marks", "devices", "expected"),
    [
        ("binpack", {LOSSES: '{"1": 100, "2": 300}'}, [[0]], 1900),
        ("binpack", {LOSSES: '{"1": 100, "2": 300}'}, [[0], [1]], 1700),
        ("binpack", {LOSSES: '{"1": 100, "2": 300}'}, [[0, 1, 2]], 2000),
        ("spread", {SCORES: '{"1": 40}'}, [[0]], 1960),
        # Each policy has its annotation.
        ("binpack", {SCORES: '{"1": 40}'}, [[0]], 0),
        ("spread", {LOSSES: '{"1": 40}'}, [[0]], 0),
        ("", {LOSSES: '{"1": 40}', SCORES: '{"1": 40}'}, [[0]], 0),
        # What Go cannot read into a map of integers has no losses.
        *(
            ("binpack", {LOSSES: text}, [[0]], 2000)
            for text in ("", "{", "[100]", '{"1": "100"}', '{"1": 100, "2": 1.5}', '{"1": true}')
        ),
    ],
)
def test_metax_takes_the_losses_of_as_many_devices(
    policy: str, marks: dict[str, str], devices: list[list[int]], expected: float
) -> None:
    picks = [[a_pick(position) for position in container] for container in devices]
    assert score(METAX_GPU, *picks, marks=marks, policy=policy) == expected


def list_kunlun_devices(*used: int) -> list[DeviceBefore]:
    return [a_device(number, used=number in used, model="kunlun-p800") for number in range(8)]


@pytest.mark.parametrize(
    ("used", "taken", "expected"),
    [
        # A wing counts 2 with one device, 1 with none, two or three, and 0 with all; a node without any counts 1.
        ([], [], 2000),
        ([], [0], 0),
        ([], [3, 4], 1000),
        ([], [0, 1], 1000),
        ([], [0, 1, 2], 1000),
        ([], [0, 1, 2, 3], 2000),
        ([], list(range(8)), 3000),
        # What is taken alone against what was in use before: three steps or more are as one.
        ([0], [0, 1, 2, 3], 1000),
        ([0, 1, 2, 3], [4], 0),
        ([0, 1], [0, 4, 5], 1000),
        ([0, 4], [4], 3000),
        ([0, 1, 2, 4], [1, 2, 3], 3000),
    ],
)
def test_kunlun_scores_how_many_wings_are_broken(used: list[int], taken: list[int], expected: float) -> None:
    picks = [a_pick(position) for position in taken]
    assert score(KUNLUN, picks, devices=list_kunlun_devices(*used)) == expected


def test_a_node_with_a_device_that_is_no_kunlun_gets_nothing() -> None:
    devices = [*list_kunlun_devices(), a_device(8, model="other")]
    assert score(KUNLUN, [a_pick(0)], devices=devices) == 0


@pytest.mark.parametrize(
    ("classes", "taken", "expected"),
    [
        ([[], []], [0], 0),
        # Offline pods only, then 100 for each; next to an online one 2, and 20 for each online one.
        ([["offline", "offline"], []], [0], -200),
        ([["online"], []], [0], -20),
        ([["online", "online", "offline"], []], [0], -42),
        ([["online"], ["offline"]], [0, 1], -120),
        ([["online"], ["offline"]], [1], -100),
    ],
)
def test_metax_scores_the_classes_on_the_devices_of_an_online_pod(
    classes: list[list[str]], taken: list[int], expected: int
) -> None:
    devices = [a_device(position, *words) for position, words in enumerate(classes)]
    picks = [a_pick(position) for position in taken]
    # A node that binpack fills is one that spread avoids.
    for policy, sign in (("binpack", 1), ("spread", -1), ("", 1)):
        assert score(METAX, picks, devices=devices, texts={CLASS: "online"}, policy=policy) == sign * 10_000 * expected
    for other in ("offline", ""):
        assert score(METAX, picks, devices=devices, texts={CLASS: other}) == 0
    assert score(METAX, devices=devices, texts={CLASS: "online"}) == 0


ZONES = [a_device(0, LinkZone=1), a_device(1, LinkZone=1), a_device(2, LinkZone=2), a_device(3, LinkZone=2)]
AWARE = {LINKS: "true"}


def pick_completely(*positions: int) -> list[Pick]:
    return [a_pick(position, 100, LinkZone=1 + position // 2) for position in positions]


@pytest.mark.parametrize(
    ("picks", "devices", "expected"),
    [
        # Before: a link in each zone, 20. Given: one of them, 10. The others: 10. 10·10 − (20 − 10 − 10) = 100.
        (pick_completely(0, 1), ZONES, 100),
        # Given: no link, and each zone loses its own: 0 − (20 − 0 − 0).
        (pick_completely(0, 2), ZONES, -20),
        (pick_completely(0), ZONES, -10),
        # Three devices of one zone have three links: 30·10 − (30 − 30 − 0).
        (
            [a_pick(position, 100, LinkZone=1) for position in range(3)],
            [a_device(position, LinkZone=1) for position in range(3)], 300,
        ),
        # Devices outside of all zones have no links.
        ([a_pick(0, 100), a_pick(1, 100)], [a_device(0), a_device(1)], 0),
        ([a_pick(0, 100, LinkZone=0), a_pick(1, 100, LinkZone=0)], [], 0),
        # A part of a device keeps its link: only whole ones count.
        ([*pick_completely(0), a_pick(1, 50, LinkZone=1)], ZONES, -10),
        ([a_pick(0, 50, LinkZone=1)], ZONES, 0),
        ([], ZONES, 0),
    ],
)  # fmt: skip
def test_metax_scores_the_links_of_whole_devices(picks: list[Pick], devices: list[DeviceBefore], expected: int) -> None:
    assert score(METAX, picks, devices=devices, texts=AWARE) == 10_000 * expected


def test_a_device_in_use_has_no_link_to_lose() -> None:
    devices = [a_device(0, LinkZone=1), a_device(1, used=True, LinkZone=1)]
    assert score(METAX, pick_completely(0), devices=devices, texts=AWARE) == 0


@pytest.mark.parametrize(
    ("setting", "text", "counts"),
    [
        (False, None, False),
        (True, None, True),
        (False, "true", True),
        (True, "false", False),
        (True, "perhaps", True),
        (False, "perhaps", False),
    ],
)
def test_a_pod_may_choose_whether_links_count(setting: bool, text: str | None, counts: bool) -> None:
    vendor = replace(METAX, chip=replace(METAX.chip, link_aware=setting))
    texts = {} if text is None else {LINKS: text}
    assert score(vendor, pick_completely(0, 1), devices=ZONES, texts=texts) == (1_000_000 if counts else 0)


def test_other_vendors_add_nothing() -> None:
    assert score(HYGON, pick_completely(0, 1), devices=ZONES, texts=AWARE) == 0
