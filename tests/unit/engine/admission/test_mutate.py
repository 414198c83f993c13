"""Containers of vendors that are described by hand in HAMi's webhook: packs of devices, parts and whole devices.

The words of refusals are those that HAMi's webhook has for its built-in vendors.
"""

from dataclasses import replace
from typing import Any

import pytest

from engine.admission.container_quantities import InvalidRequestError
from engine.admission.mutate import mutate
from engine.hami.vendor_catalog import build_custom_vendor
from engine.hami.vendors import Vendor

CUSTOM = build_custom_vendor("Example")
PLAIN = replace(CUSTOM, resources=replace(CUSTOM.resources, count="x/n", memory="x/mem", cores="x/cores"))
PACKS = replace(PLAIN, admission=replace(PLAIN.admission, count_step=4))
UNDIVIDED = replace(PLAIN, admission=replace(PLAIN.admission, several_are_whole=True))


def complete(vendor: Vendor, **resources: Any) -> Any:
    container = {"name": "c", "resources": {key: dict(amounts) for key, amounts in resources.items()}}
    mutate({"spec": {"containers": [container]}}, container, vendor)
    return container["resources"]


@pytest.mark.parametrize(("count", "completed"), [("1", "4"), ("4", "4"), ("8", "8"), ("0", "0")])
def test_devices_come_in_packs(count: str, completed: str) -> None:
    resources = complete(PACKS, limits={"x/n": count}, requests={"x/n": count})
    assert (resources["limits"]["x/n"], resources["requests"]["x/n"]) == (completed, completed)


@pytest.mark.parametrize("count", ["2", "3", "5"])
def test_a_part_of_a_pack_is_refused(count: str) -> None:
    with pytest.raises(InvalidRequestError, match=rf"Example device request must be 1 or 4\*n, got {count}$"):
        complete(PACKS, limits={"x/n": count})


@pytest.mark.parametrize(("count", "cores"), [("1", None), ("2", "200"), ("3", "300")])
def test_several_devices_are_whole_ones(count: str, cores: str | None) -> None:
    assert complete(UNDIVIDED, limits={"x/n": count})["limits"].get("x/cores") == cores
    assert "x/cores" not in complete(PLAIN, limits={"x/n": count})["limits"]
