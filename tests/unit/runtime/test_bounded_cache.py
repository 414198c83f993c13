"""A bounded cache keeps what was put last, as a list of puts would."""

from hypothesis import given
from hypothesis import strategies as st

from runtime.bounded_cache import BoundedCache


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 20))),
    st.one_of(st.none(), st.integers(1, 5)),
    st.one_of(st.none(), st.integers(0, 40)),
)
def test_it_holds_the_youngest_entries_that_fit(
    puts: list[tuple[int, int]], max_entries: int | None, max_bytes: int | None
) -> None:
    cache = BoundedCache[int, int](max_entries, max_bytes, size_of=lambda value: value)
    model: list[tuple[int, int]] = []
    for key, value in puts:
        cache.put(key, value)
        model = [entry for entry in model if entry[0] != key] + [(key, value)]
        while (max_entries is not None and len(model) > max_entries) or (
            max_bytes is not None and sum(size for _, size in model) > max_bytes
        ):
            model.pop(0)
        assert list(cache) == [entry[0] for entry in model]
        assert [cache.get(key) for key in cache] == [entry[1] for entry in model]
        assert cache.bytes == sum(size for _, size in model)


def test_reading_makes_nothing_younger_and_putting_does() -> None:
    cache = BoundedCache[str, int](max_entries=2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert "a" not in cache
    cache.put("b", 4)
    cache.put("d", 5)
    assert list(cache) == ["b", "d"]


def test_what_is_popped_or_cleared_takes_no_space() -> None:
    cache = BoundedCache[str, int](max_bytes=10, size_of=lambda value: value)
    cache.put("a", 6)
    assert (cache.pop("a"), cache.pop("a"), cache.bytes) == (6, None, 0)
    cache.put("b", 6)
    cache.clear()
    assert (len(cache), cache.bytes) == (0, 0)
