"""Vendors by the annotations of a node, and the resources that HAMi's extender counts."""

from dataclasses import astuple

import pytest

from engine.hami.vendor_catalog import METAX, is_counted_by_extender, list_vendors
from engine.hami.vendors import Family, Resources


def list_added(*annotations: str) -> list[tuple[str, Family]]:
    """List the vendors that these annotations add to those that every node may have."""
    listed = len(list_vendors(()))
    return [(vendor.word, vendor.family) for vendor in list_vendors(annotations)[listed:]]


@pytest.mark.parametrize(
    ("annotations", "added"),
    [
        (("hami.io/node-register-Ascend910B3",), [("Ascend910B3", Family.ASCEND)]),
        (("hami.io/node-MR-V100-register",), [("MR-V100", Family.CUSTOM)]),
        # Sorted, whatever order the object has: the position is the code of the vendor.
        (
            ("hami.io/node-register-Ascend310P", "hami.io/node-Z-register", "hami.io/node-A-register"),
            [("A", Family.CUSTOM), ("Z", Family.CUSTOM), ("Ascend310P", Family.ASCEND)],
        ),
        # Those of the listed vendors add none, and neither do other annotations.
        (("hami.io/node-nvidia-register", "hami.io/node-dcu-register", "hami.io/node-register-xpu"), []),
        (("hami.io/node-handshake-dcu", "example.com/node-a-register", "hami.io/node-register"), []),
    ],
)
def test_a_register_annotation_of_another_vendor_adds_it(
    annotations: tuple[str, ...], added: list[tuple[str, Family]]
) -> None:
    assert list_added(*annotations) == added


@pytest.mark.parametrize(
    ("resource", "is_counted"),
    [
        ("nvidia.com/gpumem", True),
        ("nvidia.com/gpumem-percentage", True),
        ("nvidia.com/gpucores", True),
        ("hygon.com/dcumem", True),
        ("huawei.com/Ascend910B3-memory", True),
        ("huawei.com/Ascend910B3-core", True),
        ("iluvatar.ai/MR-V100.vMem", True),
        ("iluvatar.ai/MR-V100.vCore", True),
        # Counts are offered by the node itself.
        ("nvidia.com/gpu", False),
        ("huawei.com/Ascend910B3", False),
        # Vendors without a register annotation: their device plugins offer the amounts.
        ("cambricon.com/mlu.smlu.vmemory", False),
        ("mthreads.com/sgpu-core", False),
        ("cpu", False),
        ("", False),
    ],
)
def test_amounts_of_devices_are_counted_by_the_extender(resource: str, is_counted: bool) -> None:
    assert is_counted_by_extender(resource) is is_counted


def test_a_unit_of_metax_memory_is_a_gibibyte() -> None:
    # "metax-tech.com/vmemory: 4" requests 4 GiB (HAMi's documents of Metax).
    assert METAX.amounts.memory_unit_mib == 2**10


def test_the_names_of_resources_are_all_fields_that_are_not_empty() -> None:
    everything = Resources("e.com/gpu", "e.com/memory", "e.com/share", "e.com/cores", "e.com/priority")
    assert everything.names == astuple(everything)
    assert Resources("e.com/gpu", cores="e.com/cores").names == ("e.com/gpu", "e.com/cores")
