"""The device configuration (`--device-config-file`): HAMi's own file, and what it does not have words for.

Sections are HAMi's (`nvidia`, `hygon`, `cambricon`, `metax`, lists of chips under `iluvatars` and `vnpus`), in its
spelling; a cluster's ConfigMap can be given as it is. Beyond HAMi, every section may name `annotations`, `typeWord` and
limits, and `vendors` is a list of vendors that HAMi does not know. What stands in a file is the whole table.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from hami import vendor_catalog
from hami.vendors import NVIDIA, Vendor, Vendors
from scheduler.cluster.yaml_lines import Mapping, YamlError, documents

SHIPPED: Final = Path(__file__).with_name("device-config.yaml")
"""HAMi's chart defaults for the vendors that we serve."""


class DeviceConfigError(ValueError):
    """The file has a mistake: where, what, and what to write instead."""

    def __init__(self, file: str, line: int | None, problem: str) -> None:
        super().__init__(f"{file}, line {line}: {problem}" if line else f"{file} {problem}")


class _WrongError(ValueError):
    """Carries line and problem up to where the file's name is known."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(line, problem)
        self.line, self.problem = line, problem


def read(path: Path) -> Vendors:
    """Raises DeviceConfigError."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise DeviceConfigError(str(path), None, f"can't be read: {error.strerror or error}") from None
    return parse(text, str(path))


def parse(text: bytes, file: str) -> Vendors:
    """The table of vendors that a configuration describes. Raises DeviceConfigError."""
    try:
        vendors = tuple(_vendors(text))
        _check_words(vendors)
    except (_WrongError, YamlError) as error:
        raise DeviceConfigError(file, error.line, error.problem) from None
    return vendors


def _vendors(text: bytes) -> Iterator[Vendor]:
    found = [value for _, value in documents(text) if value is not None]
    if len(found) != 1:
        raise _WrongError(1, f"holds {len(found)} documents, write one")
    sections = _a_mapping(found[0], 1)
    if "device-config.yaml" in _a_mapping(sections.get("data", Mapping(1)), 1):
        # The ConfigMap of HAMi's chart, as `kubectl get configmap -o yaml` prints it.
        yield from _vendors(_text(sections["data"], "device-config.yaml").encode())
        return
    for name in sections:
        yield from _section(name, sections)


def _section(name: str, sections: Mapping) -> Iterator[Vendor]:
    line = sections.line_of(name)
    if name in _SINGLE:
        base, fields = _SINGLE[name]
        yield _vendor(base, _a_mapping(sections[name], line), fields)
    elif name in _LISTED:
        word, base_of, fields = _LISTED[name]
        for chip in _chips(name, sections):
            yield _vendor(base_of(_word(chip, word)), chip, fields)
    elif name not in _NOT_SERVED:
        names = ", ".join([*_SINGLE, *_LISTED])
        raise _WrongError(
            line, f"{name} is no vendor that is known, write one of {names}; any other goes under vendors"
        )


def _chips(name: str, sections: Mapping) -> Iterator[Mapping]:
    value, line = sections[name], sections.line_of(name)
    if isinstance(value, dict):
        # HAMi's vnpus: the list stands under configs, beside what is for all chips.
        mapping = _a_mapping(value, line)
        value, line = mapping.get("configs"), mapping.line_of("configs")
    if not isinstance(value, list):
        raise _WrongError(line, f"{name} is {_kind(value)}, write a list")
    for item in value:
        yield _a_mapping(item, line)


def _word(chip: Mapping, key: str) -> str:
    if not chip.get(key):
        raise _WrongError(chip.line, f"{key} is missing, write the vendor's word")
    return _text(chip, key)


Read = Callable[[Mapping, str], Any]
Fields = dict[str, tuple[str, str, Read]]
"""Key in the file -> the part of a Vendor, its field, and how it is read; an empty part is the Vendor itself."""


def _vendor(base: Vendor, said: Mapping, fields: Fields) -> Vendor:
    vendor = base
    for key, value in said.items():
        if key == "annotations":
            vendor = _vendor(vendor, _a_mapping(value, said.line_of(key)), _ANNOTATIONS)
        elif key in fields:
            part, field, read_value = fields[key]
            vendor = _with(vendor, part, field, read_value(said, key))
        elif key not in _FOR_DEVICE_PLUGINS:
            raise _WrongError(said.line_of(key), f"{key} is not known here, write one of {', '.join(fields)}")
    if not vendor.resources.count:
        raise _WrongError(said.line, f"resourceCountName is missing for {vendor.word}")
    return vendor


def _with(vendor: Vendor, part: str, field: str, value: Any) -> Vendor:
    if not field:
        return vendor
    if not part:
        return replace(vendor, **{field: value})
    return replace(vendor, **{part: replace(getattr(vendor, part), **{field: value})})


def _check_words(vendors: Vendors) -> None:
    seen: set[str] = set()
    for vendor in vendors:
        for name in (vendor.word, vendor.resources.count):
            if name in seen:
                raise _WrongError(1, f"{name} stands for two vendors, keep one of them")
            seen.add(name)


def _a_mapping(value: Any, line: int) -> Mapping:
    if not isinstance(value, Mapping):
        raise _WrongError(line, f"is {_kind(value)}, write a mapping of keys to values")
    return value


def _kind(value: Any) -> str:
    names = {dict: "a mapping", Mapping: "a mapping", list: "a list", str: "a text", bool: "true or false"}
    return "nothing" if value is None else names.get(type(value), f"the number {value!r:.40}")


def _text(said: Mapping, key: str) -> str:
    value = said[key]
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _WrongError(said.line_of(key), f"{key} is {_kind(value)}, write a text")
    return value


def _amount(said: Mapping, key: str) -> int:
    value = said[key]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise _WrongError(said.line_of(key), f"{key} is {_kind(value)}, write a whole number from 0 to {2**31 - 1}")
    return value


def _step(said: Mapping, key: str) -> int:
    step = _amount(said, key)
    if step < 1:
        raise _WrongError(said.line_of(key), f"{key} is {step}, write 1 or more")
    return step


def _flag(said: Mapping, key: str) -> bool:
    """HAMi's chart writes booleans as texts too."""
    value = said[key]
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise _WrongError(said.line_of(key), f"{key} is {_kind(value)}, write true or false")
    return value


def _sizes(said: Mapping, key: str) -> tuple[int, ...]:
    """The memory of each template, ascending."""
    value = said[key]
    if not isinstance(value, list):
        raise _WrongError(said.line_of(key), f"{key} is {_kind(value)}, write a list")
    items = [_a_mapping(item, said.line_of(key)) for item in value]
    for item in items:
        if "memory" not in item:
            raise _WrongError(item.line, f"{key}: memory is missing")
    return tuple(sorted(_amount(item, "memory") for item in items))


_FOR_DEVICE_PLUGINS: Final = frozenset(
    (
        *("deviceSplitCount", "deviceMemoryScaling", "deviceCoreScaling", "preConfiguredDeviceMemory"),
        *("enableNumaTopology", "libCudaLogLevel", "migProfileAllowlist", "knownMigGeometries", "migstrategy"),
        *("disablecorelimit", "chipName", "aiCore", "aiCPU", "superPod", "sgpuTopologyAware", "hamiVnpuCore"),
    )
)
"""What HAMi's file holds for device plugins and for rules of single vendors."""

_NOT_SERVED: Final = frozenset(("enflame", "mthreads", "kunlun", "kunlunxin", "awsneuron", "amd", "vastai", "biren"))
"""Vendors of HAMi's file that we do not serve; their resources are left to others."""

_ANNOTATIONS: Final[Fields] = {
    "register": ("node", "register", _text),
    "handshake": ("node", "handshake", _text),
    "toAllocate": ("pod", "to_allocate", _text),
    "allocated": ("pod", "allocated", _text),
    "useType": ("pod", "use_type", _text),
    "noUseType": ("pod", "no_use_type", _text),
    "useUUID": ("pod", "use_uuid", _text),
    "noUseUUID": ("pod", "no_use_uuid", _text),
    "numaBind": ("pod", "numa_bind", _text),
    "mode": ("pod", "mode", _text),
}
_COMMON: Final[Fields] = {
    "resourceCountName": ("resources", "count", _text),
    "resourceMemoryName": ("resources", "memory", _text),
    "resourceMemoryPercentageName": ("resources", "percentage", _text),
    "resourceCoreName": ("resources", "cores", _text),
    "resourcePriorityName": ("resources", "priority", _text),
    "memoryFactor": ("amounts", "memory_unit_mib", _amount),
    "defaultMemory": ("amounts", "default_memory_mib", _amount),
    "defaultCores": ("amounts", "default_cores", _amount),
    "defaultGPUNum": ("amounts", "default_count", _amount),
    "overwriteEnv": ("admission", "overwrites_env", _flag),
    "gpuCorePolicy": ("admission", "core_policy", _text),
    "runtimeClassName": ("admission", "runtime_class", _text),
    "countStep": ("admission", "count_step", _step),
    "sharesStandAlone": ("admission", "shares_stand_alone", _flag),
    "severalAreWhole": ("admission", "several_are_whole", _flag),
    "typeWord": ("", "model_word", _text),
    "templates": ("amounts", "shares_mib", _sizes),
    "memoryAllocatable": ("amounts", "whole_mib", _amount),
    "memoryCapacity": ("amounts", "capacity_mib", _amount),
}
_CHIP: Final[Fields] = {**_COMMON, "commonWord": ("", "", _text), "resourceName": ("resources", "count", _text)}
_METAX: Final[Fields] = {
    **_COMMON,
    "resourceCountName": ("", "", _text),  # whole cards, which HAMi leaves to Metax' own device plugin
    "resourceVCountName": ("resources", "count", _text),
    "resourceVMemoryName": ("resources", "memory", _text),
    "resourceVCoreName": ("resources", "cores", _text),
}
_SINGLE: Final = {
    "nvidia": (NVIDIA, _COMMON),
    "hygon": (vendor_catalog.HYGON, _COMMON),
    "cambricon": (vendor_catalog.CAMBRICON, _COMMON),
    "metax": (vendor_catalog.METAX, _METAX),
}
_LISTED: Final[dict[str, tuple[str, Callable[[str], Vendor], Fields]]] = {
    "iluvatars": ("commonWord", vendor_catalog.iluvatar, _CHIP),
    "vnpus": ("commonWord", vendor_catalog.ascend, _CHIP),
    "vendors": ("word", vendor_catalog.custom_vendor, {**_COMMON, "word": ("", "", _text)}),
}
