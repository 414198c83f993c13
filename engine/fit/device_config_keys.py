"""Sections and keys of the device configuration: which field of a `Vendor` each key sets, and how it is read."""

from collections.abc import Callable
from typing import Any, Final

from engine.hami import vendor_catalog
from engine.hami.vendors import NVIDIA, Vendor
from runtime.files.yaml_lines import Mapping

_INT32_MAX: Final = 2**31 - 1


class ConfigMistakeError(ValueError):
    """Mistake in line `line`. The caller adds the name of the file."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(line, problem)
        self.line, self.problem = line, problem


Read = Callable[[Mapping, str], Any]
Fields = dict[str, tuple[str, str, Read]]
"""Key in the file -> the part of a Vendor, its field, and how it is read; an empty part is the Vendor itself."""


def expect_mapping(value: Any, line: int) -> Mapping:
    """Return the value if it is a mapping. Raises ConfigMistakeError."""
    if not isinstance(value, Mapping):
        raise ConfigMistakeError(line, f"is {describe_kind(value)}, write a mapping of keys to values")
    return value


def describe_kind(value: Any) -> str:
    """Describe the kind of a value, for a message."""
    names = {dict: "a mapping", Mapping: "a mapping", list: "a list", str: "a text", bool: "true or false"}
    return "nothing" if value is None else names.get(type(value), f"the number {value!r:.40}")


def read_text(section: Mapping, key: str) -> str:
    value = section[key]
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ConfigMistakeError(section.get_line(key), f"{key} is {describe_kind(value)}, write a text")
    return value


def read_amount(section: Mapping, key: str) -> int:
    value = section[key]
    # In Python true is an integer too.
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _INT32_MAX:
        raise ConfigMistakeError(
            section.get_line(key), f"{key} is {describe_kind(value)}, write a whole number from 0 to {2**31 - 1}"
        )
    return value


def read_step(section: Mapping, key: str) -> int:
    step = read_amount(section, key)
    if step < 1:
        raise ConfigMistakeError(section.get_line(key), f"{key} is {step}, write 1 or more")
    return step


def read_flag(section: Mapping, key: str) -> bool:
    """Read a boolean; HAMi's chart writes booleans as texts too."""
    value = section[key]
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise ConfigMistakeError(section.get_line(key), f"{key} is {describe_kind(value)}, write true or false")
    return value


def read_sizes(section: Mapping, key: str) -> tuple[int, ...]:
    """Read the memory of each template, ascending."""
    return tuple(size for size, _ in read_templates(section, key))


def read_templates(section: Mapping, key: str) -> tuple[tuple[int, str], ...]:
    """Read memory and name of each template, ascending."""
    value = section[key]
    if not isinstance(value, list):
        raise ConfigMistakeError(section.get_line(key), f"{key} is {describe_kind(value)}, write a list")
    items = [expect_mapping(item, section.get_line(key)) for item in value]
    for item in items:
        if "memory" not in item:
            raise ConfigMistakeError(item.line, f"{key}: memory is missing")
    return tuple(
        sorted((read_amount(item, "memory"), read_text(item, "name") if "name" in item else "") for item in items)
    )


FOR_DEVICE_PLUGINS: Final = frozenset(
    (
        *("deviceSplitCount", "deviceMemoryScaling", "deviceCoreScaling", "preConfiguredDeviceMemory"),
        *("enableNumaTopology", "libCudaLogLevel", "migProfileAllowlist", "knownMigGeometries", "migstrategy"),
        *("disablecorelimit", "chipName", "aiCore", "aiCPU"),
    )
)
"""Keys of HAMi's file for device plugins and for rules of single vendors."""

ANNOTATIONS: Final[Fields] = {
    "register": ("node", "register", read_text),
    "handshake": ("node", "handshake", read_text),
    "toAllocate": ("pod", "to_allocate", read_text),
    "allocated": ("pod", "allocated", read_text),
    "useType": ("pod", "use_type", read_text),
    "noUseType": ("pod", "no_use_type", read_text),
    "useUUID": ("pod", "use_uuid", read_text),
    "noUseUUID": ("pod", "no_use_uuid", read_text),
    "numaBind": ("pod", "numa_bind", read_text),
    "mode": ("pod", "mode", read_text),
}
_COMMON: Final[Fields] = {
    "resourceCountName": ("resources", "count", read_text),
    "resourceMemoryName": ("resources", "memory", read_text),
    "resourceMemoryPercentageName": ("resources", "percentage", read_text),
    "resourceCoreName": ("resources", "cores", read_text),
    "resourcePriorityName": ("resources", "priority", read_text),
    "memoryFactor": ("amounts", "memory_unit_mib", read_amount),
    "defaultMemory": ("amounts", "default_memory_mib", read_amount),
    "defaultCores": ("amounts", "default_cores", read_amount),
    "defaultGPUNum": ("amounts", "default_count", read_amount),
    "overwriteEnv": ("admission", "overwrites_env", read_flag),
    "gpuCorePolicy": ("admission", "core_policy", read_text),
    "runtimeClassName": ("admission", "runtime_class", read_text),
    "typeWord": ("", "model_word", read_text),
    "countStep": ("admission", "count_step", read_step),
    "sharesStandAlone": ("admission", "shares_stand_alone", read_flag),
    "severalAreWhole": ("admission", "several_are_whole", read_flag),
    "templates": ("amounts", "shares_mib", read_sizes),
    "superPod": ("chip", "super_pod", read_flag),
    "hamiVnpuCore": ("chip", "soft_split", read_flag),
    "sgpuTopologyAware": ("chip", "link_aware", read_flag),
    "memoryAllocatable": ("amounts", "whole_mib", read_amount),
    "memoryCapacity": ("amounts", "capacity_mib", read_amount),
}
_CHIP: Final[Fields] = {
    **_COMMON,
    "templates": ("chip", "templates", read_templates),
    "commonWord": ("", "", read_text),
    "resourceName": ("resources", "count", read_text),
}
_METAX: Final[Fields] = {
    **_COMMON,
    "resourceCountName": ("", "", read_text),  # of whole devices, `_METAX_GPU`
    "resourceVCountName": ("resources", "count", read_text),
    "resourceVMemoryName": ("resources", "memory", read_text),
    "resourceVCoreName": ("resources", "cores", read_text),
}


def _ignore_keys(fields: Fields) -> Fields:
    """Return the keys as ignored ones: they belong to another vendor of the same section."""
    return {key: ("", "", read_value) for key, (_, _, read_value) in fields.items()}


_KUNLUN: Final[Fields] = {"resourceCountName": ("resources", "count", read_text)}
_XPU: Final[Fields] = {
    "resourceVCountName": ("resources", "count", read_text),
    "resourceVMemoryName": ("resources", "memory", read_text),
}
_GCU: Final[Fields] = {"resourceNameGCU": ("resources", "count", read_text)}
_DRS: Final[Fields] = {
    "resourceNameVGCU": ("", "", read_text),
    "resourceNameVGCUPercentage": ("", "", read_text),
    "resourceNameDRSGCU": ("resources", "count", read_text),
    "resourceNameGCUMemory": ("resources", "memory", read_text),
    "resourceNameGCUCore": ("resources", "cores", read_text),
}
SINGLE: Final[dict[str, tuple[tuple[Vendor, Fields], ...]]] = {
    "nvidia": ((NVIDIA, _COMMON),),
    "hygon": ((vendor_catalog.HYGON, _COMMON),),
    "cambricon": ((vendor_catalog.CAMBRICON, _COMMON),),
    "metax": ((vendor_catalog.METAX, _METAX), (vendor_catalog.METAX_GPU, {**_ignore_keys(_METAX), **_KUNLUN})),
    "mthreads": ((vendor_catalog.MTHREADS, _COMMON),),
    "kunlun": (
        (vendor_catalog.KUNLUN, {**_ignore_keys(_XPU), **_KUNLUN}),
        (vendor_catalog.XPU, {**_ignore_keys(_KUNLUN), **_XPU}),
    ),
    "enflame": (
        (vendor_catalog.ENFLAME, {**_ignore_keys(_GCU), **_DRS}),
        (vendor_catalog.GCU, {**_ignore_keys(_DRS), **_GCU}),
    ),
    "awsneuron": ((vendor_catalog.NEURON, _COMMON),),
    "amd": ((vendor_catalog.AMD, _COMMON),),
    "biren": ((vendor_catalog.BIREN, _COMMON),),
    "vastai": ((vendor_catalog.VASTAI, _COMMON),),
}
"""Vendors of a section, each with the keys that it reads."""

LISTED: Final[dict[str, tuple[str, Callable[[str], Vendor], Fields]]] = {
    "iluvatars": ("commonWord", vendor_catalog.build_iluvatar, _CHIP),
    "vnpus": ("commonWord", vendor_catalog.build_ascend, _CHIP),
    "vendors": ("word", vendor_catalog.build_custom_vendor, {**_COMMON, "word": ("", "", read_text)}),
}
