"""The annotations of a pod that the vendors' device plugins read besides HAMi's lists (`PatchAnnotations` of each)."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import orjson

from engine.fit.judge.decision import Grant
from engine.hami import vendor_annotations as keys
from engine.hami.json_values import to_mapping
from engine.hami.vendors import Family, Vendor

_MLU_UNIT: Final = 256
_NEVER: Final = "false"


class Given(NamedTuple):
    """What a pod gets of one vendor, per container, init containers first; containers: as the Pod names them."""

    vendor: Vendor
    grants: Sequence[Sequence[Grant]]
    containers: Sequence[Mapping[str, Any]]
    texts: Mapping[str, str]
    node: str


def plugin_annotations(given: Given) -> dict[str, str]:
    """All but those that hold the time of the call."""
    write = _WRITERS.get(given.vendor.family)
    return write(given) if write else {}


def plugin_times(families: Sequence[Family], now: datetime) -> dict[str, str]:
    """The time of the call, in the units of each vendor whose devices a pod gets."""
    seconds = int(now.timestamp())
    nanoseconds = str(seconds * 10**9 + now.microsecond * 1000)
    written = {_TIMES[family]: nanoseconds for family in families if family in _TIMES}
    return written | ({keys.PREDICATE_TIME: str(seconds)} if Family.ASCEND in families else {})


def _all(given: Given) -> list[Grant]:
    return [grant for grants in given.grants for grant in grants]


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


def _but_empty(**fields: object) -> dict[str, object]:
    """As Go's `omitempty`."""
    return {key: value for key, value in fields.items() if value}


def _ascend(given: Given) -> dict[str, str]:
    is_soft = given.texts.get(keys.ASCEND_MODE) == keys.ASCEND_SOFT
    rows = [
        {
            "UUID": grant.uuid,
            **_but_empty(
                temp="" if is_soft else given.vendor.chip.choose_template(grant.memory_mib),
                memory=grant.memory_mib,
                core=grant.cores,
            ),
        }
        for grant in _all(given)
    ]
    return {f"huawei.com/{given.vendor.word}": _json(rows)}


def _cambricon(given: Given) -> dict[str, str]:
    first = _all(given)[0]
    profile = f"{first.index}_{first.cores}_{first.memory_mib // _MLU_UNIT}"
    return {keys.MLU_ASSIGNED: _NEVER, keys.MLU_PROFILE: profile}


def _metax(given: Given) -> dict[str, str]:
    rows = [
        [{"uuid": grant.uuid, **_but_empty(compute=grant.cores, vRam=grant.memory_mib)} for grant in grants]
        for grants in given.grants
    ]
    return {keys.METAX_DEVICES: _json(rows)}


def _last_indices(given: Given) -> str:
    """The indices of the last container that gets any."""
    last = [grants for grants in given.grants if grants][-1]
    return ",".join(str(grant.index) for grant in last)


def _mthreads(given: Given) -> dict[str, str]:
    return {keys.MTHREADS_INDEX: _last_indices(given), keys.MTHREADS_NODE: given.node}


def _kunlun(given: Given) -> dict[str, str]:
    return {keys.KUNLUN_INDEX: _last_indices(given)}


def _enflame(given: Given) -> dict[str, str]:
    chosen = [
        (container, grants[0]) for container, grants in zip(given.containers, given.grants, strict=True) if grants
    ]
    first = chosen[0][1]
    assigned = {
        str(container.get("name", "")): {
            "allocated": False,
            "request": grant.slots,
            **_but_empty(profileID=grant.profile[1], profileName=grant.profile[0]),
        }
        for container, grant in chosen
    }
    return {
        keys.ENFLAME_ASSIGNED: _NEVER,
        keys.ENFLAME_INDEX: str(first.index),
        keys.ENFLAME_ID: str(first.index),
        keys.ENFLAME_MINOR: first.minor,
        keys.ENFLAME_SIZE: str(first.slots),
        keys.ENFLAME_CONTAINERS: _json(dict(sorted(assigned.items()))),
    }


def _neuron(given: Given) -> dict[str, str]:
    device_cores = given.vendor.amounts.default_cores
    numbers: list[int] = []
    by_core = False
    for container, grants in zip(given.containers, given.grants, strict=True):
        limits = to_mapping(to_mapping(container.get("resources")).get("limits"))
        if given.vendor.resources.count in limits:
            numbers += [grant.index for grant in grants]
            continue
        cores = [device_cores * grant.index + bit for grant in grants for bit in (0, 1) if grant.cores & (1 << bit)]
        by_core |= bool(cores)
        numbers += cores
    kind = {keys.NEURON_TYPE: given.vendor.resources.cores} if by_core else {}
    if not numbers:
        return kind
    ids = ",".join(map(str, numbers))
    return {keys.NEURON_IDS: ids, keys.NEURON_ALLOCATED: _NEVER, keys.NEURON_NODE: given.node, **kind}


_WRITERS: Final[Mapping[Family, Callable[[Given], dict[str, str]]]] = {
    Family.ASCEND: _ascend,
    Family.CAMBRICON: _cambricon,
    Family.METAX_SGPU: _metax,
    Family.MTHREADS: _mthreads,
    Family.KUNLUN: _kunlun,
    Family.ENFLAME: _enflame,
    Family.NEURON: _neuron,
}
_TIMES: Final[Mapping[Family, str]] = {
    Family.METAX_SGPU: keys.METAX_TIME,
    Family.MTHREADS: keys.MTHREADS_TIME,
    Family.ENFLAME: keys.ENFLAME_TIME,
    Family.NEURON: keys.NEURON_TIME,
}
