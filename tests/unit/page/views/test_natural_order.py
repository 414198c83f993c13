from hypothesis import given
from hypothesis import strategies as st

from page.views.amounts import choose_name_key, to_natural_order


def test_runs_of_digits_count_as_numbers() -> None:
    names = ["node10", "node2", "gpu-a100-9", "node1", "gpu-a100-10", "gpu-a20-1", "node"]
    assert sorted(names, key=to_natural_order) == [
        "gpu-a20-1", "gpu-a100-9", "gpu-a100-10", "node", "node1", "node2", "node10",
    ]  # fmt: skip


def test_addresses_are_in_the_order_of_their_numbers() -> None:
    names = ["10.0.0.10", "10.0.0.9", "9.0.0.1"]
    assert sorted(names, key=to_natural_order) == ["9.0.0.1", "10.0.0.9", "10.0.0.10"]


@given(st.lists(st.text("aA0129-.٣²", max_size=8)))
def test_the_order_does_not_depend_on_the_order_before(names: list[str]) -> None:
    backwards = list(reversed(names))
    assert sorted(names, key=to_natural_order) == sorted(backwards, key=to_natural_order)


@given(st.lists(st.integers(0, 10**9), min_size=1))
def test_numbered_names_are_in_the_order_of_their_numbers(numbers: list[int]) -> None:
    names = [f"node{number}" for number in numbers]
    assert sorted(names, key=to_natural_order) == [f"node{number}" for number in sorted(numbers)]


@given(st.lists(st.text("aA0129-.٣²", max_size=8)), st.lists(st.integers(0, 999), min_size=1))
def test_names_with_digits_at_the_same_places_are_sorted_by_less_work_into_the_same_order(
    names: list[str], numbers: list[int]
) -> None:
    alike = [f"gpu-{number:03}.rack{number % 7}" for number in numbers]
    assert choose_name_key(alike) is str
    for listed in (names, alike):
        assert sorted(listed, key=choose_name_key(listed)) == sorted(listed, key=to_natural_order)


def test_a_name_of_any_length_has_its_place() -> None:
    assert sorted(["n" + "9" * 5_000, "n1"], key=to_natural_order)[0] == "n1"
