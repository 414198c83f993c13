"""Annotations of a pod that the vendors' device plugins read besides HAMi's lists (`PatchAnnotations` of each)."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import orjson

from engine.fit.judge.decision import Grant
from engine.hami import vendor_annotations as keys
from engine.hami.go_values import to_mapping
from engine.hami.vendors import Family, Vendor

_MLU_UNIT: Final = 256
_NEVER: Final = "false"


class VendorAllocation(NamedTuple):
    """Devices of one vendor that a pod gets, per container, init containers first.

    containers: as the Pod names them.
    """

    vendor: Vendor
    grants: Sequence[Sequence[Grant]]
    containers: Sequence[Mapping[str, Any]]
    texts: Mapping[str, str]
    node: str


def build_plugin_annotations(allocation: VendorAllocation) -> dict[str, str]:
    """Build all annotations of the vendor but those that hold the time of the call."""
    write = _WRITERS.get(allocation.vendor.family)
    return write(allocation) if write else {}


def build_plugin_times(families: Sequence[Family], now: datetime) -> dict[str, str]:
    """Build the annotations with the time of the call, in the units of each vendor whose devices a pod gets."""
    seconds = int(now.timestamp())
    nanoseconds = str(seconds * 10**9 + now.microsecond * 1000)
    written = {_TIMES[family]: nanoseconds for family in families if family in _TIMES}
    return written | ({keys.PREDICATE_TIME: str(seconds)} if Family.ASCEND in families else {})


def _list_grants(allocation: VendorAllocation) -> list[Grant]:
    return [grant for grants in allocation.grants for grant in grants]


def _encode(value: object) -> str:
    return orjson.dumps(value).decode()


def _omit_empty(**fields: object) -> dict[str, object]:
    """Omit empty fields, as Go's `omitempty`."""
    return {key: value for key, value in fields.items() if value}


def _write_ascend(allocation: VendorAllocation) -> dict[str, str]:
    is_soft = allocation.texts.get(keys.ASCEND_MODE) == keys.ASCEND_SOFT
    rows = [
        {
            "UUID": grant.uuid,
            **_omit_empty(
                temp="" if is_soft else allocation.vendor.chip.choose_template(grant.memory_mib),
                memory=grant.memory_mib,
                core=grant.cores,
            ),
        }
        for grant in _list_grants(allocation)
    ]
    return {f"huawei.com/{allocation.vendor.word}": _encode(rows)}


def _write_cambricon(allocation: VendorAllocation) -> dict[str, str]:
    first = _list_grants(allocation)[0]
    profile = f"{first.index}_{first.cores}_{first.memory_mib // _MLU_UNIT}"
    return {keys.MLU_ASSIGNED: _NEVER, keys.MLU_PROFILE: profile}


def _write_metax(allocation: VendorAllocation) -> dict[str, str]:
    rows = [
        [{"uuid": grant.uuid, **_omit_empty(compute=grant.cores, vRam=grant.memory_mib)} for grant in grants]
        for grants in allocation.grants
    ]
    return {keys.METAX_DEVICES: _encode(rows)}


def _join_last_indices(allocation: VendorAllocation) -> str:
    """Join the indices of the last container that gets any device."""
    last = [grants for grants in allocation.grants if grants][-1]
    return ",".join(str(grant.index) for grant in last)


def _write_mthreads(allocation: VendorAllocation) -> dict[str, str]:
    return {keys.MTHREADS_INDEX: _join_last_indices(allocation), keys.MTHREADS_NODE: allocation.node}


def _write_kunlun(allocation: VendorAllocation) -> dict[str, str]:
    return {keys.KUNLUN_INDEX: _join_last_indices(allocation)}


def _write_enflame(allocation: VendorAllocation) -> dict[str, str]:
    chosen = [
        (container, grants[0])
        for container, grants in zip(allocation.containers, allocation.grants, strict=True)
        if grants
    ]
    first = chosen[0][1]
    assigned = {
        str(container.get("name", "")): {
            "allocated": False,
            "request": grant.slots,
            **_omit_empty(profileID=grant.profile[1], profileName=grant.profile[0]),
        }
        for container, grant in chosen
    }
    return {
        keys.ENFLAME_ASSIGNED: _NEVER,
        keys.ENFLAME_INDEX: str(first.index),
        keys.ENFLAME_ID: str(first.index),
        keys.ENFLAME_MINOR: first.minor,
        keys.ENFLAME_SIZE: str(first.slots),
        keys.ENFLAME_CONTAINERS: _encode(dict(sorted(assigned.items()))),
    }


def _write_neuron(allocation: VendorAllocation) -> dict[str, str]:
    device_cores = allocation.vendor.amounts.default_cores
    numbers: list[int] = []
    by_core = False
    for container, grants in zip(allocation.containers, allocation.grants, strict=True):
        limits = to_mapping(to_mapping(container.get("resources")).get("limits"))
        if allocation.vendor.resources.count in limits:
            numbers += [grant.index for grant in grants]
            continue
        cores = [device_cores * grant.index + bit for grant in grants for bit in (0, 1) if grant.cores & (1 << bit)]
        by_core |= bool(cores)
        numbers += cores
    kind = {keys.NEURON_TYPE: allocation.vendor.resources.cores} if by_core else {}
    if not numbers:
        return kind
    ids = ",".join(map(str, numbers))
    return {keys.NEURON_IDS: ids, keys.NEURON_ALLOCATED: _NEVER, keys.NEURON_NODE: allocation.node, **kind}


_WRITERS: Final[Mapping[Family, Callable[[VendorAllocation], dict[str, str]]]] = {
    Family.ASCEND: _write_ascend,
    Family.CAMBRICON: _write_cambricon,
    Family.METAX_SGPU: _write_metax,
    Family.MTHREADS: _write_mthreads,
    Family.KUNLUN: _write_kunlun,
    Family.ENFLAME: _write_enflame,
    Family.NEURON: _write_neuron,
}
_TIMES: Final[Mapping[Family, str]] = {
    Family.METAX_SGPU: keys.METAX_TIME,
    Family.MTHREADS: keys.MTHREADS_TIME,
    Family.ENFLAME: keys.ENFLAME_TIME,
    Family.NEURON: keys.NEURON_TIME,
}
