"""Requests of other vendors, in the units that HAMi documents for their resources."""

from dataclasses import replace
from typing import Any

import pytest

from engine.fit.judge.request.vendor_requests import RequestedAmounts, read_vendor_request, split_cores
from engine.hami import vendor_catalog as catalog
from engine.hami.vendors import BY_SPECIFICATION, Vendor

INT32_MAX = 2**31 - 1
ASCEND = catalog.build_ascend("Ascend910B")
ILUVATAR = catalog.build_iluvatar("BI-V100")


def read_limits(vendor: Vendor, **amounts: Any) -> RequestedAmounts | None:
    """Read limits by the parts of their names: devices, MiB, percentage of the memory, and cores; None if dropped."""
    limits = {getattr(vendor.resources, part): amount for part, amount in amounts.items()}
    return read_vendor_request(limits, {}, vendor)


@pytest.mark.parametrize(
    ("vendor", "amounts", "request_read"),
    [
        # DCU: MiB, and all cores unless fewer are named.
        (catalog.HYGON, {"count": 2, "memory": 2000, "cores": 60}, (2, 2000, 0, 60)),
        (catalog.HYGON, {"count": 1}, (1, 0, 100, 100)),
        (catalog.HYGON, {"count": 1, "memory": "1500m"}, (1, 0, 100, 100)),
        (catalog.HYGON, {"count": 0}, None),
        (catalog.HYGON, {"count": 1, "cores": -1}, None),
        (catalog.HYGON, {"count": 1, "cores": 0}, (1, 0, 100, 0)),
        (catalog.HYGON, {"count": 1, "memory": -1}, None),
        (catalog.HYGON, {"count": 1, "memory": INT32_MAX}, (1, INT32_MAX, 0, 100)),
        (catalog.HYGON, {"count": 1, "memory": INT32_MAX + 1}, None),
        (catalog.HYGON, {"count": INT32_MAX}, (INT32_MAX, 0, 100, 100)),
        (catalog.HYGON, {"count": INT32_MAX + 1}, None),
        (ASCEND, {"count": 1, "memory": 2000}, (1, 2000, 0, 0)),
        (ASCEND, {"count": 1, "memory": "-1500m"}, None),
        (ASCEND, {"memory": 2000}, None),
        # MLU: a unit of memory is 256 MiB.
        (catalog.CAMBRICON, {"count": 1, "memory": 20, "cores": 10}, (1, 5120, 0, 10)),
        (catalog.CAMBRICON, {"count": 1}, (1, 0, 100, 100)),
        (catalog.CAMBRICON, {"count": 1, "memory": INT32_MAX // 256}, (1, INT32_MAX // 256 * 256, 0, 100)),
        (catalog.CAMBRICON, {"count": 1, "memory": INT32_MAX // 256 + 1}, None),
        (catalog.CAMBRICON, {"count": 1, "memory": "1500m"}, None),
        (catalog.CAMBRICON, {"memory": 20}, None),
        # Iluvatar: a unit of memory is 256 MiB.
        (ILUVATAR, {"count": 1, "memory": 64, "cores": 50}, (1, 16_384, 0, 50)),
        # Moore Threads: a unit is 512 MiB; memory and cores are those of all devices together.
        (catalog.MTHREADS, {"count": 1, "memory": 32, "cores": 8}, (1, 16_384, 0, 8)),
        (catalog.MTHREADS, {"count": 2, "memory": 192, "cores": 32}, (2, 49_152, 0, 16)),
        (catalog.MTHREADS, {"count": 2, "cores": 5}, (2, 0, 100, 2)),
        (catalog.MTHREADS, {"count": 2, "cores": -5}, (2, 0, 100, -2)),
        (catalog.MTHREADS, {"memory": 32}, None),
        (catalog.MTHREADS, {"count": 1, "memory": -1}, None),
        # MetaX sGPU: GiB without a unit, bytes with one.
        (catalog.METAX, {"count": 1, "memory": 4, "cores": 60}, (1, 4096, 0, 60)),
        (catalog.METAX, {"count": 1, "memory": "4Gi"}, (1, 4096, 0, 100)),
        (catalog.METAX, {"count": 1, "memory": "-4Gi"}, None),
        (catalog.METAX, {"count": 1, "memory": INT32_MAX // 1024 + 1}, None),
        (catalog.METAX, {"count": 1, "cores": -1}, None),
        (catalog.METAX, {"memory": 4}, None),
        # Whole devices.
        (catalog.METAX_GPU, {"count": 2}, (2, 0, 100, 100)),
        (catalog.KUNLUN, {"count": 2}, (2, 0, 100, 0)),
        (catalog.BIREN, {"count": 2}, (2, 0, 100, 0)),
        (catalog.VASTAI, {"count": 2}, (2, 0, 100, 0)),
        (catalog.GCU, {"count": 2}, (2, 100, 100, 100)),
        (catalog.GCU, {}, None),
        # vXPU: parts of 24,576 and 49,152 MiB of 98,304.
        (catalog.XPU, {"count": 1}, (1, 98_304, 100, 100)),
        (catalog.XPU, {"count": 1, "memory": 24_576}, (1, 24_576, 0, 25)),
        (catalog.XPU, {"count": 1, "memory": 24_577}, (1, 49_152, 0, 50)),
        (catalog.XPU, {"count": 1, "memory": 49_153}, (1, 98_304, 0, 100)),
        (catalog.XPU, {"memory": 24_576}, None),
        # Enflame: slices of one device, or memory and cores.
        (catalog.ENFLAME, {"count": 3}, (1, 3, 0, 0)),
        (catalog.ENFLAME, {"count": INT32_MAX}, (1, INT32_MAX, 0, 0)),
        (catalog.ENFLAME, {"count": INT32_MAX + 1}, None),
        (catalog.ENFLAME, {"memory": 8}, (1, 8, BY_SPECIFICATION, 0)),
        (catalog.ENFLAME, {"cores": 50}, (1, 0, BY_SPECIFICATION, 50)),
        (catalog.ENFLAME, {"count": 0, "memory": 8, "cores": 50}, (1, 8, BY_SPECIFICATION, 50)),
        (catalog.ENFLAME, {"memory": INT32_MAX}, (1, INT32_MAX, BY_SPECIFICATION, 0)),
        (catalog.ENFLAME, {"memory": INT32_MAX + 1}, None),
        (catalog.ENFLAME, {"count": 0}, None),
        # Neuron: devices, or cores of which each device has two.
        (catalog.NEURON, {"count": 2}, (2, 0, 0, 0)),
        (catalog.NEURON, {"count": 0}, None),
        (catalog.NEURON, {"cores": 1}, (1, 0, 0, 1)),
        (catalog.NEURON, {"cores": 2}, (1, 0, 0, 2)),
        (catalog.NEURON, {"cores": 3}, None),
        (catalog.NEURON, {"cores": 4}, (2, 0, 0, 2)),
        (catalog.NEURON, {"cores": 0}, None),
        (catalog.NEURON, {"cores": 2 * INT32_MAX}, (INT32_MAX, 0, 0, 2)),
        (catalog.NEURON, {"cores": 2 * INT32_MAX + 2}, None),
        (catalog.NEURON, {}, None),
        # AMD: MiB and percent, all of both where none is named.
        (catalog.AMD, {"count": 1, "memory": 4000, "cores": 50}, (1, 4000, 0, 50)),
        (catalog.AMD, {"count": 1}, (1, 0, 0, 100)),
        (catalog.AMD, {"count": 1, "cores": 1}, (1, 0, 0, 1)),
        (catalog.AMD, {"count": 1, "cores": 0}, None),
        (catalog.AMD, {"count": 1, "cores": 100}, (1, 0, 0, 100)),
        (catalog.AMD, {"count": 1, "cores": 101}, None),
        (catalog.AMD, {"count": 1, "memory": -1}, None),
        (catalog.AMD, {"count": 1, "memory": "1500m"}, None),
        (catalog.AMD, {"cores": 50}, None),
    ],
)
def test_a_request_is_in_the_units_of_its_vendor(
    vendor: Vendor, amounts: dict[str, Any], request_read: tuple[int, int, int, int] | None
) -> None:
    assert read_limits(vendor, **amounts) == request_read


@pytest.mark.parametrize(
    ("vendor", "is_read"),
    [(catalog.HYGON, True), (catalog.CAMBRICON, True), (catalog.METAX, False), (catalog.AMD, False)],
)
def test_amounts_of_requests_count_for_vendors_that_read_them(vendor: Vendor, is_read: bool) -> None:
    request = read_vendor_request({}, {vendor.resources.count: "1"}, vendor)
    assert (request is not None) is is_read


def test_limits_count_before_requests() -> None:
    name = catalog.KUNLUN.resources.count
    request = read_vendor_request({name: "1"}, {name: "2"}, catalog.KUNLUN)
    assert request is not None
    assert request.devices == 1


@pytest.mark.parametrize(
    ("device_cores", "cores", "split"),
    [
        (2, 1, (1, 1)),
        (2, 2, (1, 2)),
        (2, 6, (3, 2)),
        (2, 3, None),
        (4, 4, (2, 2)),
        (0, 4, (2, 2)),
        (1, INT32_MAX + 1, None),
    ],
)
def test_neuron_cores_fill_devices_of_the_size_that_nodes_have(
    device_cores: int, cores: int, split: tuple[int, int] | None
) -> None:
    """Expected: the table of HAMi 2.10's own `Test_splitCoreRequest`; 0 is the size before a node is registered."""
    amounts = replace(catalog.NEURON.amounts, default_cores=device_cores)
    assert split_cores(cores, replace(catalog.NEURON, amounts=amounts)) == split
