"""Resources of shares of devices, which only HAMi's scheduler counts: no node ever offers them.

Their vendors register devices in an annotation. Of vendors whose devices are counted in `status.capacity` the shares
may stand there too.
"""

import re
from typing import Final

from engine.hami.vendor_catalog import HYGON, build_ascend, build_iluvatar
from engine.hami.vendors import NVIDIA, Vendor

_CHIP: Final = "CHIP"
"""Stands for the name of a chip: each chip of Ascend and Iluvatar has resources of its own."""


def _list_shares(vendor: Vendor) -> list[str]:
    names = vendor.resources
    return [name for name in (names.memory, names.percentage, names.cores, names.priority) if name]


def _build_pattern() -> re.Pattern[str]:
    vendors = (NVIDIA, HYGON, build_ascend(_CHIP), build_iluvatar(_CHIP))
    names = [re.escape(name) for vendor in vendors for name in _list_shares(vendor)]
    return re.compile("|".join(names).replace(_CHIP, r"[A-Za-z0-9-]{1,63}"))


_SHARES: Final = _build_pattern()


def is_share_resource(name: str) -> bool:
    """Tell whether the resource is a share of a device that only HAMi's extender counts."""
    return _SHARES.fullmatch(name) is not None
