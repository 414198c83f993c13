"""Amounts that HAMi does not count as they are written, by the rules that its recorded answers follow."""

from dataclasses import replace
from typing import Any

import pytest

from engine.hami.vendor_catalog import CAMBRICON, METAX
from engine.hami.vendors import NVIDIA, Vendor
from engine.simulation.requests import describe_uncounted

COUNTED = replace(NVIDIA, amounts=replace(NVIDIA.amounts, default_count=0))
INT32_MAX = 2**31 - 1


def describe(resources: dict[str, Any], vendor: Vendor = NVIDIA, field: str = "containers") -> list[tuple[str, str]]:
    pod = {"spec": {field: [{"name": "c", "resources": resources}]}}
    return [(note.code, note.text.en) for note in describe_uncounted(pod, (vendor,))]


def list_codes(vendor: Vendor = NVIDIA, **limits: Any) -> list[str]:
    named = {getattr(vendor.resources, part): amount for part, amount in limits.items()}
    return [code for code, _ in describe({"limits": named}, vendor)]


@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_amounts_in_requests_only_are_named(field: str) -> None:
    limits, requests = {"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "100", "cpu": "1"}
    ((code, text),) = describe({"limits": limits, "requests": requests}, field=field)
    assert code == "RequestsOnly"
    assert text.startswith("Container c names nvidia.com/gpumem under requests only")


@pytest.mark.parametrize(
    ("memory", "codes"),
    [
        ("8192", []), (8192, []), (INT32_MAX, []), ("1", []), ("8000", []),
        (INT32_MAX + 1, ["MemoryNotCounted"]), ("-1", ["MemoryNotCounted"]), ("1500m", ["MemoryNotCounted"]),
        ("x", ["MemoryNotCounted"]), ("8Gi", ["MemoryNotCounted"]),
        ("8k", ["MemoryUnit"]), ("8Ki", ["MemoryUnit"]),
        ("0", ["MemoryZero"]), (0, ["MemoryZero"]),
    ],
)  # fmt: skip
def test_memory_is_a_whole_number_of_mib_of_32_bits(memory: Any, codes: list[str]) -> None:
    assert list_codes(count="1", memory=memory) == codes


@pytest.mark.parametrize(
    ("memory", "instead"),
    [
        # What the owner meant: bytes of a suffix as MiB, and a number as MiB.
        ("8Gi", "8192"), ("16G", "15258"), ("1500m", "a number such as 8192"), ("3.5Gi", "3584"),
        ("x", "a number such as 8192"), ("-1", "a number such as 8192"), (INT32_MAX + 1, "a number such as 8192"),
        ("2.5", "3"),
    ],
)  # fmt: skip
def test_the_note_has_the_number_to_write(memory: Any, instead: str) -> None:
    ((_, text),) = describe({"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory}})
    assert text.endswith(f"Write nvidia.com/gpumem: {instead}.")


def test_units_of_a_vendor_count_in_its_limit() -> None:
    # A unit of Cambricon is 256 MiB; MetaX reads a suffix as bytes.
    assert list_codes(CAMBRICON, count="1", memory=INT32_MAX // 256) == []
    assert list_codes(CAMBRICON, count="1", memory=INT32_MAX // 256 + 1) == ["MemoryNotCounted"]
    ((code, text),) = describe(
        {"limits": {CAMBRICON.resources.count: "1", CAMBRICON.resources.memory: "2k"}}, CAMBRICON
    )
    assert (code, "counts as 512,000 MiB" in text) == ("MemoryUnit", True)
    ((_, text),) = describe({"limits": {CAMBRICON.resources.count: "1", CAMBRICON.resources.memory: "8Gi"}}, CAMBRICON)
    assert text.endswith(f"Write {CAMBRICON.resources.memory}: 32.")
    assert list_codes(METAX, count="1", memory="8Gi") == []


@pytest.mark.parametrize(("count", "codes"), [("1", []), ("0", ["NoDevices"]), ("-1", ["NoDevices"]), ("x", [])])
def test_a_count_of_nothing_asks_for_no_device(count: str, codes: list[str]) -> None:
    assert list_codes(count=count) == codes


@pytest.mark.parametrize("part", ["memory", "percentage", "cores"])
def test_an_amount_without_a_count_is_named_where_the_webhook_adds_none(part: str) -> None:
    assert list_codes(COUNTED, **{part: "10"}) == ["NoCount"]
    assert list_codes(COUNTED, count="1", **{part: "10"}) == []
    assert list_codes(NVIDIA, **{part: "10"}) == []


def test_other_resources_are_no_matter_of_hami() -> None:
    assert describe({"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}}) == []
