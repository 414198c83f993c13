"""Registered nodes of a few devices: what fits into no column."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.fit.devices.node_entry import (
    NodeEntry,
    NodeFragment,
    RegisteredKind,
    build_fragment,
    build_pair_matrix,
    select_marks,
)
from engine.fit.devices.pod_usage import DeviceUse, PodUse
from engine.hami.mig import MigProfile, Placement
from engine.hami.node_registration import NodeDevices
from engine.hami.registration import Device, Registration

LIMIT = 2**40
PROFILE = MigProfile("1g.5gb", 4864, 14, 1, (Placement(0, 1), Placement(1, 1)))
FIRST, SECOND = Placement(0, 1), Placement(1, 1)


def a_device(uuid: str, mode: str = "hami-core", **fields: Any) -> Device:
    return Device(uuid, mode=mode, model="A100", **fields)


def an_entry(*devices: Device, start: int = 10, scores: Mapping[str, Mapping[str, int]] | None = None) -> NodeEntry:
    """A node whose devices have the rows from ``start`` on."""
    registration = Registration(devices, "json")
    rows: dict[str, list[int]] = {}
    for row, device in enumerate(devices, start):
        rows.setdefault(device.uuid, []).append(row)
    return NodeEntry(0, start, NodeDevices(registration, scores or {}), build_fragment("n1", registration), rows)


def a_share(*placements: Placement, slots: int = 1) -> DeviceUse:
    return DeviceUse(1000, 10, slots, tuple(("1g.5gb", placement) for placement in placements))


def a_pod(shares: Mapping[str, DeviceUse]) -> PodUse:
    return PodUse("n1", "ml", shares)


def test_pairs_without_a_score_have_0_and_a_device_may_have_one_with_itself() -> None:
    scores = {"a": {"a": 9, "b": 5}, "b": {"a": -5, "x": 7}, "x": {"a": 1}}
    assert build_pair_matrix(["a", "b", "c"], scores).tolist() == [[9, 5, 0], [-5, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("score", "counted"),
    [(LIMIT, LIMIT), (LIMIT + 1, LIMIT), (-LIMIT - 1, -LIMIT), (2**63, LIMIT), (10**30, LIMIT), (-(10**30), -LIMIT)],
)
def test_scores_are_bounded(score: int, counted: int) -> None:
    matrix = build_pair_matrix(["a", "b"], {"a": {"b": score}, "b": {"a": -7}})
    assert matrix.tolist() == [[0, counted], [-7, 0]]
    assert matrix.dtype == np.int64


def test_pairs_are_none_where_the_node_reports_no_scores() -> None:
    assert an_entry(a_device("a")).pairs is None
    entry = an_entry(a_device("a"), a_device("b"), scores={"b": {"a": 3}})
    assert entry.pairs is not None
    assert entry.pairs.tolist() == [[0, 0], [3, 0]]
    assert entry.pairs is entry.pairs


def test_the_block_of_a_node_begins_at_its_first_row() -> None:
    entry = an_entry(a_device("a"), a_device("b"), a_device("c"))
    assert (entry.size, entry.block, entry.rows_slice) == (3, range(10, 13), slice(10, 13))


def test_the_fragment_has_the_uuids_in_the_order_of_the_registration() -> None:
    registration = Registration((a_device("GPU-b"), a_device('G"a')), "json")
    assert build_fragment("n1", registration) == NodeFragment("n1", ("GPU-b", 'G"a'), b'["GPU-b","G\\"a"]')


def test_a_kind_has_what_type_filters_read() -> None:
    device = Device("a", 3, 10, 40960, 100, "A100", 1, "mig", True, (PROFILE,), (("NetworkID", 1),))
    assert RegisteredKind.classify(device, "NVIDIA") == ("A100", "NVIDIA", "mig", 40960, 100, 10, (PROFILE,))


CUTS = [a_device("a", "mig", mig_profiles=(PROFILE,)), a_device("b")]


@pytest.mark.parametrize(
    ("devices", "is_equal"),
    [
        ([replace(CUTS[0], uuid="x", index=7), replace(CUTS[1], memory_mib=5)], True),
        ([CUTS[0], replace(CUTS[1], mode="")], True),
        ([CUTS[1], CUTS[0]], False),
        ([CUTS[0], replace(CUTS[1], mode="mig")], False),
        ([replace(CUTS[0], mig_profiles=(PROFILE._replace(cores=15),)), CUTS[1]], False),
        ([CUTS[0]], False),
    ],
)
def test_nodes_are_cut_alike_where_the_profiles_of_their_devices_are_equal(
    devices: Sequence[Device], *, is_equal: bool
) -> None:
    assert (an_entry(*devices).cuts == an_entry(*CUTS).cuts) is is_equal
    assert len(an_entry(*devices).cuts) == 16


@pytest.mark.parametrize(
    ("changes", "is_equal"),
    [
        ({"uuid": "b", "memory_mib": 1, "mode": "mig"}, True),
        ({"index": 1}, False),
        ({"model": "H100"}, False),
        ({"extra": (("NetworkID", 2),)}, False),
    ],
)
def test_nodes_are_peculiar_alike_where_what_vendors_read_is_equal(changes: dict[str, Any], *, is_equal: bool) -> None:
    device = a_device("a", extra=(("NetworkID", 1),))
    other = an_entry(replace(device, **changes)).peculiar
    assert (other == an_entry(device).peculiar) is is_equal
    assert len(other) == 16


def test_digests_and_peculiar_devices_are_made_once() -> None:
    entry = an_entry(a_device("a"), a_device("b", extra=(("NetworkID", 1), ("Links", (("c", 2),)))))
    assert entry.peculiar_devices == ((1, {"NetworkID": 1, "Links": {"c": 2}}),)
    assert entry.peculiar_devices is entry.peculiar_devices
    assert entry.cuts is entry.cuts
    assert entry.peculiar is entry.peculiar
    assert an_entry(a_device("a")).peculiar_devices == ()


def test_mode_and_profiles_are_those_of_the_row() -> None:
    entry = an_entry(a_device("a"), a_device("b", "mig", mig_profiles=(PROFILE,)))
    assert [entry.is_mig(row) for row in entry.block] == [False, True]
    assert [entry.get_profiles(row) for row in entry.block] == [(), (PROFILE,)]
    assert entry.get_device(11).uuid == "b"


def test_the_classes_of_a_device_are_those_of_its_pods() -> None:
    entry = an_entry(a_device("a"), a_device("b"))
    for app_class in ("online", "offline", "online", ""):
        entry.update_classes(11, app_class, 1)
    entry.update_classes(11, "online", -1)
    assert entry.classes == {11: ["offline", "online"]}
    entry.update_classes(11, "never seen", -1)
    entry.update_classes(11, "offline", -1)
    assert entry.classes == {11: ["online"]}


def test_the_instances_of_a_device_are_those_of_its_pods() -> None:
    entry = an_entry(a_device("a", "mig"), a_device("b", "mig"))
    entry.update_instances(10, a_share(), 1)
    assert entry.held == {}
    entry.update_instances(10, a_share(FIRST, SECOND), 1)
    entry.update_instances(10, a_share(FIRST), 1)
    entry.update_instances(11, a_share(SECOND), 1)
    assert entry.held == {10: [FIRST, SECOND, FIRST], 11: [SECOND]}
    entry.update_instances(10, a_share(FIRST, Placement(5, 1)), -1)
    assert entry.held == {10: [SECOND, FIRST], 11: [SECOND]}


@pytest.mark.parametrize(
    ("mode", "share", "is_unsound"),
    [
        # A share of a MIG device has its instance.
        ("mig", a_share(FIRST), False),
        ("mig", a_share(FIRST, SECOND), False),
        ("mig", a_share(), True),
        # A device that is shared by HAMi-core has none.
        ("hami-core", a_share(), False),
        ("hami-core", a_share(FIRST), True),
        # Of another mode, the share takes up the first instance.
        ("mps", a_share(), False),
        ("mps", a_share(FIRST), False),
        ("mps", a_share(FIRST, SECOND), True),
        ("mps", a_share(FIRST, slots=0), True),
    ],
)
def test_a_share_that_contradicts_the_mode_makes_the_device_unsound(
    mode: str, share: DeviceUse, *, is_unsound: bool
) -> None:
    rows = an_entry(a_device("other"), a_device("a", mode)).find_unsound_rows(a_pod({"a": share}))
    assert rows == ([11] if is_unsound else [])


def test_an_instance_on_an_unknown_device_makes_all_mig_devices_unsound() -> None:
    entry = an_entry(a_device("a"), a_device("b", "mig"), a_device("c", "mig"))
    assert entry.find_unsound_rows(a_pod({"x": a_share(FIRST)})) == [11, 12]
    assert entry.find_unsound_rows(a_pod({"x": a_share(), "b": a_share(FIRST)})) == []
    assert entry.find_unsound_rows(a_pod({"b": a_share(), "x": a_share(FIRST)})) == [11, 11, 12]


def test_a_uuid_that_a_node_lists_twice_has_two_rows() -> None:
    assert an_entry(a_device("a", "mig"), a_device("a", "mig")).find_unsound_rows(a_pod({"a": a_share()})) == [10, 11]


def test_marks_are_the_annotations_that_single_vendors_read() -> None:
    """Soft partition of Ascend, and Metax' topology; the keys are those of HAMi's sources."""
    marks = {
        "hami-vnpu-core": "true",
        "metax-tech.com/gpu.topology.losses": "{}",
        "metax-tech.com/gpu.topology.scores": "{}",
    }
    assert select_marks({**marks, "hami.io/node-nvidia-register": "[]"}) == marks
    assert select_marks({"hami-vnpu-core": True}) == {}
