"""Lists of names in a sentence."""

from engine.diagnosis.wording import describe_devices, enumerate_names, shorten_list
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import PickedDevice


def test_names_are_listed_as_a_sentence_has_them() -> None:
    assert enumerate_names(["A40"], "or") == InBothLanguages(en="A40", zh="A40")
    assert enumerate_names(["A40", "T4"], "and") == InBothLanguages(en="A40 and T4", zh="A40 和 T4")
    assert enumerate_names(["A40", "H100", "T4"], "or") == InBothLanguages(en="A40, H100 or T4", zh="A40、H100 或 T4")


def test_only_the_first_names_are_listed_and_each_language_has_its_own_comma() -> None:
    assert shorten_list(["node1"]) == InBothLanguages(en="node1", zh="node1")
    assert shorten_list([f"node{number}" for number in range(1, 8)]) == InBothLanguages(
        en="node1, node2, node3, node4, node5, … (+2)", zh="node1、node2、node3、node4、node5、… (+2)"
    )


def pick(number: int, model: str = "H100", memory_mib: int | None = 70_000, cores_percent: int = 100) -> PickedDevice:
    return PickedDevice(
        container=0, uuid=f"GPU-{number}", model=model, memory_mib=memory_mib, cores_percent=cores_percent
    )


def test_devices_with_equal_amounts_are_described_at_once() -> None:
    assert describe_devices([pick(0)]).en == "GPU-0 (H100): 70,000 MiB, 100 % of its compute"
    two = describe_devices([pick(0, cores_percent=0), pick(1, cores_percent=0)])
    assert two == InBothLanguages(
        en="GPU-0, GPU-1 (H100): 70,000 MiB of each", zh="GPU-0、GPU-1 (H100)：每个 70,000 MiB"
    )
    unequal = describe_devices([pick(0), pick(1, memory_mib=10), pick(2)])
    assert unequal.en == (
        "GPU-0, GPU-2 (H100): 70,000 MiB and 100 % of the compute of each; GPU-1 (H100): 10 MiB, 100 % of its compute"
    )
    assert (
        describe_devices([pick(0, model="", memory_mib=None), pick(1, model="", memory_mib=None)]).en == "GPU-0, GPU-1"
    )


def test_of_more_devices_with_equal_amounts_than_a_sentence_names_their_number_is_written() -> None:
    described = describe_devices([pick(number) for number in range(8)])
    assert described.en == "8 devices (H100): 70,000 MiB and 100 % of the compute of each"
    assert described.zh == "8 个设备 (H100)：每个 70,000 MiB、算力 100 %"
    unequal = describe_devices([pick(number, memory_mib=number) for number in range(8)])
    assert unequal.en.endswith("GPU-4 (H100): 4 MiB, 100 % of its compute; … (+3)")
