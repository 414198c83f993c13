"""Texts about devices in the words of the vendor that the pod asks for, and of the scheduler that shares them.

The texts are written with NVIDIA's resources, annotations and tool as HAMi reads them; every vendor of the device table
has its own, and KAI takes shares of a device from annotations.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts
from engine.hami import annotations
from engine.hami.vendor_annotations import ASCEND_MODE
from engine.hami.vendor_catalog import build_ascend, list_vendors
from engine.hami.vendors import NVIDIA, Family, Form, Vendor, Vendors, find_vendor
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import Request

_TOOLS: Final[Mapping[Family, str]] = {
    Family.ASCEND: "npu-smi info",
    Family.HYGON: "hy-smi",
    Family.CAMBRICON: "cnmon",
    Family.ILUVATAR: "ixsmi",
    Family.METAX_GPU: "mx-smi",
    Family.METAX_SGPU: "mx-smi",
    Family.MTHREADS: "mthreads-gmi",
    Family.KUNLUN: "xpu-smi",
    Family.XPU: "xpu-smi",
    Family.ENFLAME: "efsmi",
    Family.GCU: "efsmi",
    Family.NEURON: "neuron-ls",
    Family.AMD: "rocm-smi",
    Family.BIREN: "brsmi",
    Family.VASTAI: "vasmi",
}
"""Command that lists a vendor's devices on their node."""
_OR_PERCENTAGE: Final = (f" or `{annotations.GPU_MEMORY_PERCENT}`", f"或 `{annotations.GPU_MEMORY_PERCENT}`")
_UNIT: Final = ("(MiB a device)", "（每个设备 MiB）")
_UNIT_OF_VENDOR: Final = ("(a device, in units of {unit:,} MiB)", "（每个设备，以 {unit:,} MiB 为单位）")
_REGISTERED: Final = (f"annotation `{annotations.REGISTER}`", f"注解 `{annotations.REGISTER}`")
_CAPACITY: Final = "status.capacity"
"""Field of a node that has the number of its devices, for vendors that register none in an annotation."""
_UNREAD: Final = ("an annotation that HAMi does not read for {vendor}", "HAMi 不为 {vendor} 读取的注解")
KAI_FRACTION: Final = "gpu-fraction"
"""Annotation of a pod that asks KAI for a part of a device."""
KAI_MEMORY: Final = "gpu-memory"
"""Annotation with the MiB of a share. A pod with ``gpu-fraction`` names no amount."""
KAI: Final = "kai-scheduler"
"""The usual name of KAI's scheduler."""
_NAMES_OF_KAI: Final = ((annotations.GPU_MEMORY, KAI_MEMORY), (annotations.GPU_MEMORY_PERCENT, KAI_FRACTION))


def is_of_kai(facts: DiagnosisFacts) -> bool:
    """Tell whether KAI decided the attempt: by its usual name, its log, or what is observed of the scheduler."""
    attempt = facts.attempt
    if attempt is None:
        return False
    observed = {state.name for state in facts.schedulers or () if state.implementation == "KAI"}
    return attempt.scheduler in {KAI, *observed} or attempt.reader == "kai-log"


def write_for_kai(text: InBothLanguages) -> InBothLanguages:
    """Write a text with the annotations by which KAI takes shares of a device."""
    en, zh = text.en, text.zh
    for name, instead in _NAMES_OF_KAI:
        en, zh = en.replace(f"`{name}`", f"`{instead}`"), zh.replace(f"`{name}`", f"`{instead}`")
    return InBothLanguages(en=en, zh=zh)


def find_requested_vendor(requests: Sequence[Request], vendors: Vendors = ()) -> Vendor | None:
    """Find the one vendor other than NVIDIA that all requests are for; None for several, and for NVIDIA.

    vendors: the device table; without it, HAMi's own names count.
    """
    words = {request.vendor for request in requests if request.count}
    if len(words) != 1 or words == {NVIDIA.word}:
        return None
    (word,) = words
    vendor = find_vendor(vendors, word) or find_vendor(list_vendors(()), word)
    return vendor or (build_ascend(word) if word.startswith("Ascend") else None)


def write_for_vendor(text: InBothLanguages, vendor: Vendor | None) -> InBothLanguages:
    """Write a text with the names of the vendor; unchanged without one."""
    if vendor is None:
        return text
    en, zh = (_replace_names(getattr(text, language), vendor, index) for index, language in enumerate(("en", "zh")))
    return InBothLanguages(en=en, zh=zh)


def _replace_names(text: str, vendor: Vendor, language: int) -> str:
    if not vendor.resources.percentage:
        text = text.replace(_OR_PERCENTAGE[language], "")
    if (unit := vendor.amounts.memory_unit_mib) != 1:
        text = text.replace(_UNIT[language], _UNIT_OF_VENDOR[language].format(unit=unit))
    if vendor.node.form is Form.CAPACITY:
        text = text.replace(_REGISTERED[language], f"`{annotations.REGISTER}`")
    for name, instead in _list_names(vendor):
        # Whole names only: `nvidia.com/gpu` begins those of memory and cores.
        for opening in ("`", "`limits."):
            written = f"{opening}{instead}" if instead else _UNREAD[language].format(vendor=vendor.word)
            text = text.replace(f"{opening}{name}`", f"{written}`" if instead else written)
            text = text.replace(f"{opening}{name}:", f"{written}:")
    tool = _TOOLS.get(vendor.family, "")
    for command in ("`nvidia-smi -L`", "`nvidia-smi`"):
        text = text.replace(command, f"`{tool}`") if tool else text
    return text


def _list_names(vendor: Vendor) -> list[tuple[str, str]]:
    resources, pod, node = vendor.resources, vendor.pod, vendor.node
    mode = ASCEND_MODE if vendor.family is Family.ASCEND else pod.mode
    return [
        (annotations.GPU_COUNT, resources.count),
        (annotations.GPU_MEMORY, resources.memory or resources.count),
        (annotations.GPU_MEMORY_PERCENT, resources.percentage or resources.memory or resources.count),
        (annotations.GPU_CORES, resources.cores or resources.count),
        (annotations.USE_TYPE, pod.use_type),
        (annotations.NO_USE_TYPE, pod.no_use_type),
        (annotations.USE_UUID, pod.use_uuid),
        (annotations.NO_USE_UUID, pod.no_use_uuid),
        (annotations.NUMA_BIND, pod.numa_bind),
        (annotations.SHARING_MODE, mode),
        (annotations.REGISTER, _CAPACITY if node.form is Form.CAPACITY else node.register),
        (annotations.HANDSHAKE, node.handshake),
    ]
