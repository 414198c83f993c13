"""Devices and memory that nodes lack for a request at present. Each device has 81920 MiB and 100 % of cores."""

import numpy as np

from api.memory.nearest_node import Lack, find_least_lacking
from engine.fit.devices.as_of import rebuild_columns
from schemas.events import Request
from tests.support.builders.node_states import a_node_state

FREE = [20_000, 50_000, 10_000, 30_000]
STATE = a_node_state("node1", 4, memory_used_mib=[81_920 - free for free in FREE], cores_used_percent=[90, 10, 50, 70])


def a_request(**fields: object) -> Request:
    return Request.model_validate({"container": "main", "vendor": "NVIDIA", "count": 2, "memory_mib": 40_000} | fields)


def test_the_freest_devices_are_summed_up() -> None:
    # Free are 50,000 and 30,000: the second has 10,000 less than asked. Of the cores 90 % and 50 % are free.
    assert find_least_lacking(rebuild_columns([STATE]), ["node1"], a_request(cores_percent=60)) == Lack(
        10_000, 10, "node1"
    )
    assert find_least_lacking(rebuild_columns([STATE]), ["node1"], a_request(count=4)) == Lack(
        10_000 + 20_000 + 30_000, 0, "node1"
    )


def test_without_an_amount_a_share_of_the_device_or_all_of_it_is_asked_for() -> None:
    half = a_request(count=1, memory_mib=None, memory_percent=50)
    assert find_least_lacking(rebuild_columns([STATE]), ["node1"], half) == Lack(0, 0, "node1")
    assert find_least_lacking(rebuild_columns([STATE]), ["node1"], a_request(count=1, memory_mib=None)) == Lack(
        31_920, 0, "node1"
    )


def test_devices_that_are_cordoned_or_broken_do_not_count() -> None:
    worn = STATE.model_copy(update={"cordoned": np.array([False, True, False, False])})
    assert find_least_lacking(rebuild_columns([worn]), ["node1"], a_request(count=1)) == Lack(10_000, 0, "node1")
    broken = STATE.model_copy(update={"healthy": np.zeros(4, bool)})
    assert find_least_lacking(rebuild_columns([broken]), ["node1"], a_request()) is None


def test_a_node_without_devices_of_the_vendor_is_not_known_to_be_near() -> None:
    assert find_least_lacking(rebuild_columns([STATE]), ["node2"], a_request()) is None
    assert find_least_lacking(rebuild_columns([STATE]), ["node1"], a_request(vendor="DCU")) is None


def test_the_node_that_lacks_the_least_memory_is_the_nearest() -> None:
    emptier = a_node_state("node2", 4, memory_used_mib=[81_920 - 35_000] * 4)
    columns = rebuild_columns([STATE, emptier])
    assert find_least_lacking(columns, ["node1", "node2", "gone"], a_request(count=1)) == Lack(0, 0, "node1")
    assert find_least_lacking(columns, ["node1", "node2"], a_request(count=3)) == Lack(15_000, 0, "node2")
    assert find_least_lacking(columns, ["gone"], a_request()) is None
    assert find_least_lacking(columns, [], a_request()) is None


def test_a_node_with_fewer_devices_lacks_what_those_lack_that_it_has() -> None:
    small = a_node_state("small", 1, memory_used_mib=[81_920 - 39_000])
    assert find_least_lacking(rebuild_columns([STATE, small]), ["node1", "small"], a_request()) == Lack(
        1_000, 0, "small"
    )
