"""The index of things that select nodes finds what trying each of them finds."""

from hypothesis import given
from hypothesis import strategies as st

from engine.filters.selector_index import SelectorIndex
from engine.snapshot.selectors import Requirement

values = st.sampled_from(["1", "2", "3"])
keys = st.sampled_from(["a", "b"])
requirements = st.builds(
    Requirement, keys, st.sampled_from(["In", "NotIn", "Exists"]), st.lists(values, min_size=1, max_size=2).map(tuple)
)


@given(st.lists(st.lists(requirements, max_size=2).map(tuple), max_size=6), st.dictionaries(keys, values))
def test_no_matching_item_is_left_out_and_their_order_is_kept(
    items: list[tuple[Requirement, ...]], labels: dict[str, str]
) -> None:
    candidates = list(SelectorIndex((number, item) for number, item in enumerate(items)).find_candidates(labels))
    matching = {number for number, item in enumerate(items) if all(requirement.matches(labels) for requirement in item)}
    assert matching <= set(candidates)
    assert candidates == sorted(set(candidates))


def test_items_that_require_another_value_are_not_tried() -> None:
    items = [(number, (Requirement("host", "In", (f"n{number}",)),)) for number in range(100)]
    assert list(SelectorIndex(items).find_candidates({"host": "n7"})) == [7]
