"""The LRU store against a slow and obvious model of it."""

from threading import Thread
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from api.memory.lru import Lru
from tests.support.stress import count_examples

MAX_COUNT, MAX_BYTES = 4, 100
KEYS = st.sampled_from("abcdefgh")
SIZES = st.integers(0, 120)


class LruModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.lru: Lru[str, int] = Lru(MAX_COUNT, MAX_BYTES)
        self.model: dict[str, tuple[int, int, float]] = {}
        self.clock = 1000.0

    def tick(self) -> float:
        self.clock += 1
        return self.clock

    @rule(key=KEYS, size=SIZES, ago=st.integers(0, 500))
    def put(self, key: str, size: int, ago: int) -> None:
        # Unique times: which of two entries used at the same time is evicted first is not defined.
        used = self.tick() - ago + self.clock * 1e-6
        value = int(self.clock)
        self.lru.put(key, value, size, used)
        before = self.model.get(key)
        self.model[key] = (value, size, max(used, before[2]) if before else used)
        if size > MAX_BYTES:
            del self.model[key]
        while len(self.model) > MAX_COUNT or sum(entry[1] for entry in self.model.values()) > MAX_BYTES:
            del self.model[min(self.model, key=lambda name: self.model[name][2])]

    @rule(key=KEYS)
    def get(self, key: str) -> None:
        now = self.tick()
        entry = self.model.get(key)
        assert self.lru.get(key, now) == (entry[0] if entry else None)
        if entry:
            self.model[key] = (entry[0], entry[1], max(now, entry[2]))

    @rule(key=KEYS)
    def peek(self, key: str) -> None:
        entry = self.model.get(key)
        assert self.lru.peek(key) == (entry[0] if entry else None)

    @rule(key=KEYS)
    def remove(self, key: str) -> None:
        self.lru.remove(key)
        self.model.pop(key, None)

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        assert {key: self.lru.peek(key) for key in "abcdefgh" if self.lru.peek(key) is not None} == {
            key: entry[0] for key, entry in self.model.items()
        }
        assert len(self.lru) == len(self.model)
        assert self.lru.size_bytes == sum(entry[1] for entry in self.model.values())


TestLruModel = LruModel.TestCase
TestLruModel.settings = settings(max_examples=count_examples(13), stateful_step_count=40)


def test_a_value_larger_than_the_bound_evicts_only_its_own_key() -> None:
    lru: Lru[str, str] = Lru(10, 100)
    lru.put("other", "kept", 50, 1)
    lru.put("big", "small once", 10, 2)
    lru.put("big", "too big", 101, 3)
    assert lru.peek("other") == "kept"
    assert lru.peek("big") is None


def test_a_value_that_was_read_is_kept_and_one_used_long_ago_is_evicted() -> None:
    lru: Lru[str, int] = Lru(2, 100)
    lru.put("a", 1, 1, used_at=10)
    lru.put("b", 2, 1, used_at=20)
    lru.get("a", now=30)
    lru.put("c", 3, 1, used_at=25)
    assert [lru.peek(key) for key in "abc"] == [1, None, 3]


def test_the_queue_does_not_grow_with_removed_keys() -> None:
    lru: Lru[int, int] = Lru(1000, 10**9)
    for key in range(10_000):
        lru.put(key, key, 1, key)
        lru.remove(key)
    assert len(lru._queue) < 200


def test_many_threads_leave_it_consistent() -> None:
    lru: Lru[int, int] = Lru(50, 5_000)
    failures: list[Any] = []

    def work(seed: int) -> None:
        try:
            for step in range(2_000):
                key = (seed * 7919 + step * 31) % 200
                lru.put(key, key, key % 150, step)
                value = lru.get((key + 1) % 200, step)
                assert value is None or value == (key + 1) % 200
                if step % 17 == 0:
                    lru.remove(key)
        except Exception as error:  # noqa: BLE001 - shown by the test itself
            failures.append(error)

    threads = [Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    keys = [key for key in range(200) if lru.peek(key) is not None]
    assert not failures
    assert len(lru) == len(keys) <= 50
    assert lru.size_bytes == sum(key % 150 for key in keys) <= 5_000
