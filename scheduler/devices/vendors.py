"""The vendor table: what each vendor's cards are called in Kubernetes objects, and which rules are its own.

The rules of judging are the same for all (count, memory, cores, type, UUID, health); a `Vendor` says where its words
stand. NVIDIA's row is complete as HAMi v2.10.0 has it; the others' follow HAMi's public documentation and charts.
Memory is in MiB, cores in percent of one card.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Form(Enum):
    """How a node says which cards it has."""

    HAMI = "hami"
    """A register annotation: JSON (HAMi >= v2.8) or `uuid,count,…:` (HAMi <= v2.7, and some vendors still)."""
    METAX = "metax"
    """Metax' own JSON annotation of shared cards."""
    CAPACITY = "capacity"
    """No annotation: as many cards as `status.capacity` holds hundreds of the cores resource, memory shared equally."""


@dataclass(frozen=True, slots=True)
class Resources:
    """Names in `resources.limits` and `resources.requests`; empty where the vendor has none."""

    count: str
    memory: str = ""
    percentage: str = ""
    cores: str = ""
    priority: str = ""


@dataclass(frozen=True, slots=True)
class NodeKeys:
    """What a node says: the annotation that lists its cards, in which form, and the one that is shaken hands with."""

    register: str
    form: Form = Form.HAMI
    handshake: str = ""


@dataclass(frozen=True, slots=True)
class PodKeys:
    """Annotations of a pod: what it was given, and what it wishes; empty where the vendor has no such wish."""

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
    """How what a container says becomes what it asks for.

    memory_unit_mib: what one of the memory resource is; reads_bytes: a quantity with a suffix is bytes all the same.
    default_count: added by the webhook where memory or cores are asked for without a count; 0 adds nothing. shares_mib:
    the sizes a card can be cut into, ascending; a request is rounded up to one. Above the last and up to `capacity_mib`
    it is for the whole card, of which `whole_mib` can be given; beyond that there is no such size.
    """

    default_memory_mib: int = 0
    default_cores: int = 0
    default_count: int = 0
    memory_unit_mib: int = 1
    reads_bytes: bool = False
    shares_mib: tuple[int, ...] = ()
    whole_mib: int = 0
    capacity_mib: int = 0

    def rounded(self, memory_mib: int) -> int:
        """The size that is really cut; as asked where a card can be cut anywhere, 0 where none is large enough."""
        if not self.shares_mib:
            return memory_mib
        whole = self.whole_mib if memory_mib <= self.capacity_mib else 0
        return next((size for size in self.shares_mib if memory_mib <= size), whole)


@dataclass(frozen=True, slots=True)
class Admission:
    """What the webhook does with a container of this vendor.

    fills_whole_cores: a container with a whole card's memory and no cores gets all cores. count_step: cards come in
    packs; one is rounded up to a pack, other odd counts are refused. shares_stand_alone: a part of a card can only be
    asked for with a count of one. several_are_whole: more than one card is whole cards. hides_cards_from: where
    `overwrites_env`, this variable keeps containers without the resource from seeing cards, by `hidden_value`.
    core_policy goes into GPU_CORE_UTILIZATION_POLICY.
    """

    fills_whole_cores: bool = False
    count_step: int = 1
    shares_stand_alone: bool = False
    several_are_whole: bool = False
    overwrites_env: bool = False
    hides_cards_from: str = ""
    hidden_value: str = ""
    core_policy: str = ""
    runtime_class: str = ""


@dataclass(frozen=True, slots=True)
class Vendor:
    """One vendor, or one chip of a vendor whose chips have resources of their own (Ascend, Iluvatar).

    word: stands in requests and in device annotations. model_word: what a card's model must contain, in any case, to
    be the vendor's; empty takes every card that its annotation lists.
    """

    word: str
    resources: Resources
    node: NodeKeys
    pod: PodKeys
    amounts: Amounts = Amounts()
    admission: Admission = Admission()
    model_word: str = ""

    def owns(self, model: str) -> bool:
        return self.model_word.upper() in model.upper()


NVIDIA: Final = Vendor(
    "NVIDIA",
    Resources(
        "nvidia.com/gpu",
        "nvidia.com/gpumem",
        "nvidia.com/gpumem-percentage",
        "nvidia.com/gpucores",
        "nvidia.com/priority",
    ),
    NodeKeys("hami.io/node-nvidia-register", Form.HAMI, "hami.io/node-handshake"),
    PodKeys(
        "hami.io/vgpu-devices-to-allocate",
        "hami.io/vgpu-devices-allocated",
        "nvidia.com/use-gputype",
        "nvidia.com/nouse-gputype",
        "nvidia.com/use-gpuuuid",
        "nvidia.com/nouse-gpuuuid",
        "nvidia.com/numa-bind",
        "nvidia.com/vgpu-mode",
    ),
    Amounts(default_count=1),
    Admission(fills_whole_cores=True, hides_cards_from="NVIDIA_VISIBLE_DEVICES", hidden_value="none"),
    model_word="NVIDIA",
)

Vendors = tuple[Vendor, ...]
"""In a table of vendors, the code of a vendor is its place counted from 1; 0 is nobody's."""

ONLY_NVIDIA: Final[Vendors] = (NVIDIA,)


def code_of(vendors: Vendors, word: str) -> int:
    """0 where no vendor has this word."""
    return next((code for code, vendor in enumerate(vendors, 1) if vendor.word == word), 0)


def named(vendors: Iterable[Vendor], word: str) -> Vendor | None:
    """The vendor whose word this is."""
    return next((vendor for vendor in vendors if vendor.word == word), None)
