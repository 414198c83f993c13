"""Vendors that HAMi supports besides NVIDIA: their words, annotations, resources and units.

Sources: HAMi's chart (`device-configmap.yaml`), its documents on each vendor, and its docs/develop/protocol.md.
Resource names are those of the chart; a device configuration changes them.
"""

import re
from collections.abc import Iterable
from typing import Final

from engine.hami.vendors import NVIDIA, Admission, Amounts, Family, Form, NodeKeys, PodKeys, Resources, Vendor, Vendors

# Iluvatar and Cambricon count their memory resource in such units.
_UNIT_OF_256_MIB: Final = 256
_CHIP: Final = "CHIP"
"""Stands for the name of a chip: each chip of Ascend and Iluvatar has resources of its own."""


def build_ascend(word: str) -> Vendor:
    """Build an Ascend chip, `Ascend910B3`.

    Devices are cut into fixed sizes, and only for containers with one device.
    """
    return Vendor(
        word,
        Resources(f"huawei.com/{word}", f"huawei.com/{word}-memory", cores=f"huawei.com/{word}-core"),
        NodeKeys(f"hami.io/node-register-{word}", Form.JSON, f"hami.io/node-handshake-{word}"),
        _build_chip_keys(word),
        model_word=word,
        family=Family.ASCEND,
        admission=Admission(
            hides_devices_by="ASCEND_VISIBLE_DEVICES",
        ),
    )


def build_iluvatar(word: str) -> Vendor:
    """Build an Iluvatar chip, `MR-V100`.

    Memory is requested in units of 256 MiB; several devices are whole devices.
    """
    return Vendor(
        word,
        Resources(f"iluvatar.ai/{word}-vgpu", f"iluvatar.ai/{word}.vMem", cores=f"iluvatar.ai/{word}.vCore"),
        NodeKeys(f"hami.io/node-{word}-register", Form.COLON, f"hami.io/node-handshake-{word}"),
        _build_chip_keys(word),
        Amounts(memory_unit_mib=_UNIT_OF_256_MIB),
        model_word=word,
        family=Family.ILUVATAR,
    )


def _build_chip_keys(word: str) -> PodKeys:
    return PodKeys(
        f"hami.io/{word}-devices-to-allocate",
        f"hami.io/{word}-devices-allocated",
        use_uuid=f"hami.io/use-{word}-uuid",
        no_use_uuid=f"hami.io/no-use-{word}-uuid",
    )


HYGON: Final = Vendor(
    "DCU",
    Resources("hygon.com/dcunum", "hygon.com/dcumem", cores="hygon.com/dcucores"),
    NodeKeys("hami.io/node-dcu-register", Form.COLON, "hami.io/node-handshake-dcu"),
    PodKeys(
        "hami.io/dcu-devices-to-allocate",
        "hami.io/dcu-devices-allocated",
        "hygon.com/use-dcutype",
        "hygon.com/nouse-dcutype",
        "hygon.com/use-gpuuuid",
        "hygon.com/nouse-gpuuuid",
    ),
    Amounts(default_cores=100),
    model_word="DCU",
    family=Family.HYGON,
)

CAMBRICON: Final = Vendor(
    "MLU",
    Resources("cambricon.com/vmlu", "cambricon.com/mlu.smlu.vmemory", cores="cambricon.com/mlu.smlu.vcore"),
    NodeKeys("cambricon-mlu", Form.CAPACITY),
    PodKeys(
        "hami.io/cambricon-mlu-devices-to-allocate",
        "hami.io/cambricon-mlu-devices-allocated",
        # HAMi reads no lists of types for it.
        use_uuid="cambricon.com/use-gpuuuid",
        no_use_uuid="cambricon.com/nouse-gpuuuid",
    ),
    Amounts(default_cores=100, memory_unit_mib=_UNIT_OF_256_MIB),
    model_word="MLU",
    family=Family.CAMBRICON,
)

METAX: Final = Vendor(
    "Metax-SGPU",
    Resources("metax-tech.com/sgpu", "metax-tech.com/vmemory", cores="metax-tech.com/vcore"),
    NodeKeys("metax-tech.com/node-gpu-devices", Form.METAX),
    PodKeys(
        "hami.io/metax-sgpu-devices-to-allocate",
        "hami.io/metax-sgpu-devices-allocated",
        use_uuid="metax-tech.com/use-gpuuuid",
        no_use_uuid="metax-tech.com/nouse-gpuuuid",
    ),
    Amounts(default_cores=100, memory_unit_mib=1024, reads_bytes=True),
    model_word="Metax-SGPU",
    family=Family.METAX_SGPU,
)

METAX_GPU: Final = Vendor(
    "Metax-GPU",
    Resources("metax-tech.com/gpu"),
    NodeKeys("metax", Form.CAPACITY),
    PodKeys("hami.io/metax-gpu-devices-to-allocate", "hami.io/metax-gpu-devices-allocated"),
    model_word="Metax-GPU",
    family=Family.METAX_GPU,
)

MTHREADS: Final = Vendor(
    "Mthreads",
    Resources("mthreads.com/vgpu", "mthreads.com/sgpu-memory", cores="mthreads.com/sgpu-core"),
    NodeKeys("mthreads", Form.CAPACITY),
    PodKeys(
        "",
        "hami.io/mthreads-vgpu-devices-allocated",
        use_uuid="mthreads.ai/use-gpuuuid",
        no_use_uuid="mthreads.ai/nouse-gpuuuid",
    ),
    Amounts(memory_unit_mib=512),
    model_word="Mthreads",
    family=Family.MTHREADS,
)

KUNLUN: Final = Vendor(
    "kunlun",
    Resources("kunlunxin.com/xpu"),
    NodeKeys("kunlun", Form.CAPACITY),
    PodKeys(
        "",
        "hami.io/kunlun-allocated",
        use_uuid="baidu.com/use-gpuuuid",
        no_use_uuid="baidu.com/nouse-gpuuuid",
    ),
    model_word="kunlun",
    family=Family.KUNLUN,
)

XPU: Final = Vendor(
    "XPU",
    Resources("kunlunxin.com/vxpu", "kunlunxin.com/vxpu-memory"),
    NodeKeys("hami.io/node-register-xpu", Form.JSON, "hami.io/node-handshake-xpu"),
    PodKeys(
        "hami.io/xpu-devices-to-allocate",
        "hami.io/xpu-devices-allocated",
        use_uuid="baidu.com/use-gpuuuid",
        no_use_uuid="baidu.com/nouse-gpuuuid",
    ),
    model_word="XPU",
    family=Family.XPU,
)

ENFLAME: Final = Vendor(
    "Enflame",
    Resources("enflame.com/drs-gcu", "enflame.com/gcu-memory", cores="enflame.com/gcu-core"),
    NodeKeys("enflame.com/gcu-drs-capacity", Form.DRS),
    PodKeys(
        "",
        "hami.io/enflame-vgpu-devices-allocated",
        use_uuid="enflame.com/use-gpuuuid",
        no_use_uuid="enflame.com/nouse-gpuuuid",
    ),
    model_word="Enflame",
    family=Family.ENFLAME,
)

GCU: Final = Vendor(
    "GCU",
    Resources("enflame.com/gcu"),
    NodeKeys("GCU", Form.CAPACITY),
    PodKeys("hami.io/enflame-gcu-devices-to-allocate", "hami.io/enflame-gcu-devices-allocated"),
    model_word="GCU",
    family=Family.GCU,
)

NEURON: Final = Vendor(
    "AWSNeuron",
    Resources("aws.amazon.com/neuron", cores="aws.amazon.com/neuroncore"),
    NodeKeys("AWSNeuron", Form.CAPACITY),
    PodKeys(
        "",
        "hami.io/aws-neuron-devices-allocated",
        use_uuid="aws.amazon.com/use-neuron-uuid",
        no_use_uuid="aws.amazon.com/nouse-neuron-uuid",
    ),
    model_word="AWSNeuron",
    family=Family.NEURON,
)


AMD: Final = Vendor(
    "AMD",
    Resources("amd.com/gpu", "amd.com/gpumem", cores="amd.com/gpucores"),
    NodeKeys("hami.io/node-amd-register", Form.JSON),
    PodKeys(
        "hami.io/amd-devices-to-allocate",
        "hami.io/amd-devices-allocated",
        "amd.com/use-gputype",
        "amd.com/nouse-gputype",
        "amd.com/use-gpu-uuid",
        "amd.com/nouse-gpu-uuid",
    ),
    Amounts(default_cores=100),
    model_word="AMD",
    family=Family.AMD,
)

BIREN: Final = Vendor(
    "Biren",
    Resources("birentech.com/gpu"),
    NodeKeys("hami.io/node-biren-register", Form.JSON, "hami.io/node-handshake-biren"),
    PodKeys(
        "hami.io/Biren-devices-to-allocate",
        "hami.io/Biren-devices-allocated",
        # HAMi names lists of types for Biren and Vastai, and reads none.
        use_uuid="birentech.com/use-gpuuuid",
        no_use_uuid="birentech.com/nouse-gpuuuid",
    ),
    model_word="Biren",
    family=Family.BIREN,
)

VASTAI: Final = Vendor(
    "Vastai",
    Resources("vastaitech.com/va"),
    NodeKeys("hami.io/node-va-register", Form.JSON, "hami.io/node-handshake-va"),
    PodKeys(
        "hami.io/Vastai-devices-to-allocate",
        "hami.io/Vastai-devices-allocated",
        use_uuid="vastaitech.com/use-gpuuuid",
        no_use_uuid="vastaitech.com/nouse-gpuuuid",
    ),
    model_word="Vastai",
    family=Family.VASTAI,
)


def build_custom_vendor(word: str) -> Vendor:
    """Build a vendor that HAMi does not support.

    Its names have HAMi's style; the device configuration may change them.
    """
    return Vendor(
        word,
        Resources(""),
        NodeKeys(f"hami.io/node-{word}-register", handshake=f"hami.io/node-handshake-{word}"),
        PodKeys(
            f"hami.io/{word}-devices-to-allocate",
            f"hami.io/{word}-devices-allocated",
            f"hami.io/use-{word}-type",
            f"hami.io/no-use-{word}-type",
            f"hami.io/use-{word}-uuid",
            f"hami.io/no-use-{word}-uuid",
        ),
    )


_LISTED: Final = (
    NVIDIA,
    HYGON,
    CAMBRICON,
    METAX,
    METAX_GPU,
    MTHREADS,
    KUNLUN,
    XPU,
    ENFLAME,
    GCU,
    NEURON,
    AMD,
    BIREN,
    VASTAI,
)
_REGISTER: Final = re.compile(r"hami\.io/node-(?P<word>[\w.-]+)-register")
_ASCEND_REGISTER: Final = re.compile(r"hami\.io/node-register-(?P<word>[\w.-]+)")
_CHIP_AMOUNT: Final = re.compile(r"huawei\.com/Ascend[\w-]+-(?:memory|core)|iluvatar\.ai/[\w-]+\.(?:vMem|vCore)")
"""Amounts of vendors whose resources have the chip's name."""
_CHIP_COUNT: Final = re.compile(
    r"huawei\.com/(?P<ascend>Ascend(?!.*-(?:memory|core)$)[\w-]+)|iluvatar\.ai/(?P<iluvatar>[\w-]+)-vgpu")  # fmt: skip
"""Number of devices of such a vendor."""


def list_vendors(annotations: Iterable[str]) -> Vendors:
    """List the vendors whose devices a node with these annotations may list.

    For readers without a device configuration.
    """
    registers = {vendor.node.register for vendor in _LISTED}
    vendors = list(_LISTED)
    # Sorted, because the place in the table is the vendor's code, and the same node must give the same codes.
    for name in sorted(set(annotations) - registers):
        # Ascend turns the name around (``node-register-<chip>``), and each chip has resources of its own.
        if chip := _ASCEND_REGISTER.fullmatch(name):
            vendors.append(build_ascend(chip["word"]))
        elif other := _REGISTER.fullmatch(name):
            vendors.append(build_custom_vendor(other["word"]))
    return tuple(vendors)


def list_requested_vendors(resources: Iterable[str]) -> Vendors:
    """List the vendors whose devices a pod with limits of these resources may request, for readers without nodes."""
    chips = [match for name in sorted(resources) if (match := _CHIP_COUNT.fullmatch(name))]
    built = (build_ascend(chip["ascend"]) if chip["ascend"] else build_iluvatar(chip["iluvatar"]) for chip in chips)
    return (*_LISTED, *built)


def is_counted_by_extender(resource: str) -> bool:
    """Tell whether HAMi's extender counts the resource: memory and cores of devices, which no node offers."""
    if _CHIP_AMOUNT.fullmatch(resource):
        return True
    # Device plugins of vendors without a register annotation offer the amounts themselves.
    names = (
        name
        for vendor in _LISTED
        if vendor.node.form is not Form.CAPACITY
        for name in (vendor.resources.memory, vendor.resources.percentage, vendor.resources.cores)
    )
    return bool(resource) and resource in names


def _list_shares(vendor: Vendor) -> list[str]:
    names = vendor.resources
    return [name for name in (names.memory, names.percentage, names.cores, names.priority) if name]


def _build_pattern() -> re.Pattern[str]:
    vendors = (NVIDIA, HYGON, build_ascend(_CHIP), build_iluvatar(_CHIP))
    names = [re.escape(name) for vendor in vendors for name in _list_shares(vendor)]
    return re.compile("|".join(names).replace(_CHIP, r"[A-Za-z0-9-]{1,63}"))


_SHARES: Final = _build_pattern()


def is_share_resource(name: str) -> bool:
    """Tell whether the resource is a share of a device that only HAMi's extender counts: no node ever offers it.

    The vendors of these resources register devices in an annotation. A vendor whose devices are counted in
    `status.capacity` may offer shares there too.
    """
    return _SHARES.fullmatch(name) is not None
