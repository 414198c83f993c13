"""Table of vendors: under which names each vendor's devices appear in Kubernetes objects, and its own rules.

All vendors' devices are judged by the same rules (count, memory, cores, type, UUID, health); a `Vendor` holds the names
to read and write. NVIDIA's row is complete as HAMi v2.10.0 has it, the others are in `engine/hami/vendor_catalog.py`.
Memory is in MiB, cores in percent of one device.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from engine.hami import annotations
from engine.hami.releases import RULES_OF_2_10, ReleaseRules

BY_SPECIFICATION: Final = -1
"""`MemPercentagereq` of an Enflame container that names memory or cores instead of slices."""
_MAX_SLICES: Final = 64
"""Limit of the slices of an Enflame device."""


class Form(Enum):
    """Form in which a node lists its devices."""

    HAMI = "hami"
    """A register annotation: JSON (HAMi >= v2.8) or `uuid,count,…:` (HAMi <= v2.7)."""
    JSON = "json"
    """A register annotation of which only the form in JSON is read (Ascend, Kunlun XPU)."""
    COLON = "colon"
    """A register annotation of which only the form `uuid,count,…:` is read (Hygon, Iluvatar)."""
    METAX = "metax"
    """Metax' own JSON annotation of shared devices."""
    DRS = "drs"
    """Enflame's JSON annotation of devices and the profiles that they can be cut into."""
    CAPACITY = "capacity"
    """No annotation: `status.capacity` says how many devices there are (`engine/hami/vendor_registrations.py`)."""


class Family(Enum):
    """Vendors with the same rules; most have a module in `engine/fit/judge/vendors`."""

    NVIDIA = "nvidia"
    HYGON = "hygon"
    CAMBRICON = "cambricon"
    ILUVATAR = "iluvatar"
    ASCEND = "ascend"
    METAX_GPU = "metax-gpu"
    METAX_SGPU = "metax-sgpu"
    MTHREADS = "mthreads"
    KUNLUN = "kunlun"
    XPU = "xpu"
    ENFLAME = "enflame"
    GCU = "gcu"
    NEURON = "neuron"
    AMD = "amd"
    BIREN = "biren"
    VASTAI = "vastai"
    CUSTOM = "custom"
    """Vendor that HAMi does not know: NVIDIA's rules."""


ASKS_QUOTA: Final = (Family.NVIDIA, Family.CAMBRICON, Family.CUSTOM)
"""Families for which HAMi checks a namespace's quota in the filter; for the others only the webhook does."""
CORDONS: Final = (Family.NVIDIA, Family.CUSTOM)
"""Families for which `hami.io/device-cordon` counts."""
NO_HANDSHAKE: Final = (
    *(Family.CAMBRICON, Family.METAX_GPU, Family.METAX_SGPU, Family.MTHREADS),
    *(Family.KUNLUN, Family.ENFLAME, Family.GCU, Family.NEURON, Family.AMD),
)
"""Families whose devices are read at every look at the node."""


@dataclass(frozen=True, slots=True)
class Resources:
    """Names in `resources.limits` and `resources.requests`; empty where the vendor has none."""

    count: str
    memory: str = ""
    percentage: str = ""
    cores: str = ""
    priority: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names that the vendor has."""
        return tuple(filter(None, (self.count, self.memory, self.percentage, self.cores, self.priority)))


@dataclass(frozen=True, slots=True)
class NodeKeys:
    """Annotations of a node: the list of its devices, the list's form, and the handshake (empty for none)."""

    register: str
    form: Form = Form.HAMI
    handshake: str = ""


@dataclass(frozen=True, slots=True)
class PodKeys:
    """Annotations of a pod: the devices that it got, and its requirements of them; empty where the vendor has none."""

    to_allocate: str
    allocated: str
    use_type: str = ""
    no_use_type: str = ""
    use_uuid: str = ""
    no_use_uuid: str = ""
    numa_bind: str = ""
    mode: str = ""


@dataclass(frozen=True, slots=True)
class Amounts:
    """Rules that turn the quantities of a container into a request.

    memory_unit_mib: MiB of one unit of the memory resource; reads_bytes: a quantity with a suffix is in bytes instead.
    default_count: added by the webhook to a container with memory or cores and no count; 0 adds nothing. shares_mib:
    the sizes into which a device can be cut, ascending; a request is rounded up to one of them. A request above the
    last one and up to `capacity_mib` gets the whole device, which offers `whole_mib`; nothing larger exists.
    """

    default_memory_mib: int = 0
    default_cores: int = 0
    default_count: int = 0
    memory_unit_mib: int = 1
    reads_bytes: bool = False
    shares_mib: tuple[int, ...] = ()
    whole_mib: int = 0
    capacity_mib: int = 0

    def round_up(self, memory_mib: int) -> int:
        """Round a request up to the size that is cut for it.

        It stays as it is where sizes are free, and is 0 where no size is large enough.
        """
        if not self.shares_mib:
            return memory_mib
        largest = self.whole_mib if memory_mib <= self.capacity_mib else 0
        return next((size for size in self.shares_mib if memory_mib <= size), largest)


@dataclass(frozen=True, slots=True)
class Admission:
    """Rules of the webhook for a container of this vendor.

    fills_whole_cores: a container with a whole device's memory and no cores gets all cores. count_step: devices come in
    packs; one is rounded up to a pack, other odd counts are refused. shares_stand_alone: a part of a device can only be
    requested with a count of one. several_are_whole: more than one device means whole devices. hides_devices_by: where
    `overwrites_env`, this variable is set to `hidden_value` in containers without the resource, so that they see no
    device. core_policy: the value of GPU_CORE_UTILIZATION_POLICY.
    """

    fills_whole_cores: bool = False
    count_step: int = 1
    shares_stand_alone: bool = False
    several_are_whole: bool = False
    overwrites_env: bool = False
    hides_devices_by: str = ""
    hidden_value: str = ""
    core_policy: str = ""
    runtime_class: str = ""


@dataclass(frozen=True, slots=True)
class Chip:
    """Properties that only single vendors have.

    templates: memory in MiB and name of the parts into which a device can be cut, ascending. soft_split: nodes share
    devices in software unless they say otherwise (Ascend). super_pod: devices come in pairs (Ascend910C). link_aware:
    whole devices are given by their links (Metax).
    """

    templates: tuple[tuple[int, str], ...] = ()
    soft_split: bool = False
    super_pod: bool = False
    link_aware: bool = False

    def choose_template(self, memory_mib: int) -> str:
        """Choose the smallest part with at least this much memory, by name; "" where only the whole device has it."""
        return next((name for size, name in self.templates if memory_mib <= size), "")


@dataclass(frozen=True, slots=True)
class Vendor:
    """Vendor, or one chip of a vendor whose chips have resources of their own (Ascend, Iluvatar).

    word: the vendor's name in requests and in device annotations. model_word: what a device's model must contain, in
    any case, to be the vendor's; empty takes every device that its annotation lists. rules: those of HAMi's release.
    """

    word: str
    resources: Resources
    node: NodeKeys
    pod: PodKeys
    amounts: Amounts = Amounts()
    admission: Admission = Admission()
    model_word: str = ""
    family: Family = Family.CUSTOM
    chip: Chip = Chip()
    rules: ReleaseRules = RULES_OF_2_10

    def matches(self, model: str, registered_by: str) -> bool:
        """Tell whether a device is judged for this vendor: by its model, whichever vendor's annotation lists it."""
        if not self.model_word:
            return registered_by == self.word
        # HAMi compares the same way: a substring in any case, so ``NVIDIA-A100`` and ``nvidia a100`` are NVIDIA's.
        return self.model_word.upper() in model.upper()


NVIDIA: Final = Vendor(
    "NVIDIA",
    Resources(
        annotations.GPU_COUNT,
        annotations.GPU_MEMORY,
        annotations.GPU_MEMORY_PERCENT,
        annotations.GPU_CORES,
        annotations.GPU_PRIORITY,
    ),
    NodeKeys(annotations.REGISTER, Form.HAMI, annotations.HANDSHAKE),
    PodKeys(
        annotations.DEVICES_TO_ALLOCATE,
        annotations.DEVICES_ALLOCATED,
        annotations.USE_TYPE,
        annotations.NO_USE_TYPE,
        annotations.USE_UUID,
        annotations.NO_USE_UUID,
        annotations.NUMA_BIND,
        annotations.SHARING_MODE,
    ),
    # HAMi's ``defaultGPUNum``: gpumem or gpucores without a count asks for one device.
    Amounts(default_count=1),
    # Images with NVIDIA_VISIBLE_DEVICES=all would show every device to a container that requested none.
    Admission(fills_whole_cores=True, hides_devices_by="NVIDIA_VISIBLE_DEVICES", hidden_value="none"),
    model_word="NVIDIA",
    family=Family.NVIDIA,
)

Vendors = tuple[Vendor, ...]
"""Table of vendors. The code of a vendor is its position in it, counted from 1; 0 stands for no vendor."""

ONLY_NVIDIA: Final[Vendors] = (NVIDIA,)


def get_rules(vendors: Vendors) -> ReleaseRules:
    """Get the rules of the release that the table follows: all of its vendors have the same."""
    return vendors[0].rules if vendors else RULES_OF_2_10


def asks_slices(memory_mib: int, cores: int) -> bool:
    """Tell whether an Enflame request as an event has it is one of slices, which an event has as the memory.

    A container that names memory has thousands of MiB there, or names cores next to it.
    """
    return not cores and 0 < memory_mib <= _MAX_SLICES


def find_code(vendors: Vendors, word: str) -> int:
    """Find the code of the vendor with this word; 0 for none."""
    return next((code for code, vendor in enumerate(vendors, 1) if vendor.word == word), 0)


def find_vendor(vendors: Iterable[Vendor], word: str) -> Vendor | None:
    """Find the vendor with this word; None for none."""
    return next((vendor for vendor in vendors if vendor.word == word), None)
