"""What happened in a minute, counted by hand."""

import random
from datetime import timedelta
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from schemas.codec.records import encode_value
from schemas.events import AttemptSummarized
from schemas.ids import attempt_id, microseconds
from summaries.fold import summarize
from summaries.trends import Contribution, Minute, Weight, contribution, contribution_of, records
from tests.support.builders.attempts import STARTED, a_bind, about, an_attempt

BEGAN = STARTED.replace(second=0, microsecond=0)
FULL = {"gpu-1": [["NumaNotFit", "CardCordoned"]], "gpu-2": [["CardCordoned"] * 2]}
FREE = {"gpu-1": [["picked", "CardCordoned"]], "gpu-2": [["CardCordoned"] * 2]}


def pool_of(node: str) -> str:
    return "a100" if node == "gpu-2" else ""


def an(pod: str, second: int, *, free: bool = False, bound: bool | None = None) -> AttemptSummarized:
    started = BEGAN + timedelta(seconds=second)
    common = about(pod) | {"started_at": started, "attempt_id": attempt_id("hami-scheduler", f"uid-{pod}", started)}
    events = an_attempt(FREE if free else FULL, chosen="gpu-1" if free else None, **common)
    if bound is not None:
        events.append(a_bind(bound=bound, node="gpu-1", **common))
    return summarize(events)


def counted(*summaries: AttemptSummarized) -> dict[tuple[str, ...], tuple[int, ...]]:
    minute = Minute(BEGAN, 3)
    for each in summaries:
        minute.put(contribution(each, pool_of))
    return {row.key[1:]: row[1:] for row in minute.rows()}


def test_attempts_pods_nodes_and_devices_are_counted_by_reason_pool_and_model() -> None:
    model = "NVIDIA A100-SXM4-80GB"
    assert counted(an("one", 1), an("one", 31), an("two", 2)) == {
        ("failed", "all", ""): (3, 2, 6, 12),
        ("failed", "model", model): (3, 2, 0, 12),
        ("failed", "pool", "a100"): (3, 2, 3, 0),
        ("failed", "reason", "CardCordoned"): (3, 2, 6, 9),
        ("failed", "reason", "NumaNotFit"): (3, 2, 3, 3),
    }


def test_results_are_counted_apart() -> None:
    rows = counted(an("one", 1), an("two", 2, free=True, bound=True), an("three", 3, free=True))
    assert {key: row[0] for key, row in rows.items() if key[1] == "all"} == {
        ("failed", "all", ""): 1, ("pending", "all", ""): 1, ("succeeded", "all", ""): 1,
    }  # fmt: skip


def test_an_attempt_that_is_published_again_counts_once_and_leaves_nothing_where_it_was() -> None:
    minute = Minute(BEGAN, 0)
    before, after = an("one", 1, free=True), an("one", 1, free=True, bound=True)
    minute.put(contribution(before, pool_of))
    assert [row.attempts for row in minute.rows() if row.key[2] == "all"] == [1]
    version = minute.version
    assert minute.put(contribution(after, pool_of))
    assert not minute.put(contribution(before, pool_of))
    assert {row.key[1]: row.attempts for row in minute.rows() if row.key[2] == "all"} == {"pending": 0, "succeeded": 1}
    assert minute.version > version


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.booleans()), max_size=12), st.randoms())
def test_neither_order_nor_repetition_matters(values: list[tuple[str, int, bool]], chance: random.Random) -> None:
    summaries = [an(pod, second, free=free) for pod, second, free in {each[:2]: each for each in values}.values()]
    again = [*summaries, *chance.choices(summaries, k=5)] if summaries else []
    chance.shuffle(again)
    assert counted(*summaries) == counted(*again)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 4), st.integers(1, 9), st.sampled_from(["pending", "failed"]),
            st.dictionaries(st.sampled_from([("reason", "A"), ("reason", "B"), ("all", "")]), st.integers(0, 7)),
        ),
        max_size=30,
    ),
    st.integers(0, 30),
)  # fmt: skip
def test_records_in_any_order_count_as_the_last_ones_would_alone(
    published: list[tuple[int, int, str, dict[tuple[str, str], int]]], asked_after: int
) -> None:
    minute, kept = Minute(BEGAN, 0), dict[int, tuple[int, int, str, dict[tuple[str, str], int]]]()
    for place, (number, version, result, weights) in enumerate(published):
        of_pod = {key: Weight(count, 2 * count) for key, count in weights.items()}
        put = minute.put(Contribution(str(number), f"pod-{number % 3}", version, "ml", result, of_pod))
        assert put == (number not in kept or kept[number][1] < version)
        if put:
            kept[number] = published[place]
        if place == asked_after:
            minute.rows()
    for (namespace, result, *key), *counts in minute.rows():
        having = [each for each in kept.values() if each[2] == result and tuple(key) in each[3]]
        nodes = sum(each[3][key[0], key[1]] for each in having)
        assert namespace == "ml"
        assert counts == [len(having), len({each[0] % 3 for each in having}), nodes, 2 * nodes]
    published_keys = {row.key[1:] for row in minute.rows() if row.attempts}
    assert published_keys == {(each[2], *key) for each in kept.values() for key in each[3]}
    assert minute.version == sum(each[1] - microseconds(BEGAN) for each in kept.values())


def test_what_an_attempt_contributes_comes_back_from_its_document() -> None:
    summary = an("one", 1)
    known = contribution(summary, pool_of)
    document: dict[str, Any] = {
        "attempt_id": summary.attempt_id, "pod_uid": "uid-one", "namespace": "ml", "pod": "one", "status": "failed",
        "counts": known.plain(),
    }  # fmt: skip
    assert contribution_of(orjson.loads(encode_value(document))) == known
    assert contribution_of(document | {"counts": None}) is None


def test_a_minute_of_many_namespaces_is_published_in_parts() -> None:
    minute = Minute(BEGAN, 0)
    for number in range(200):
        pod = an("one", 1).pod.model_copy(update={"namespace": f"team-{number:03}"})
        update = {"pod": pod, "attempt_id": f"{number:032}"}
        minute.put(contribution(an("one", 1).model_copy(update=update), pool_of))
    parts = list(records(minute))
    assert [(each.part, each.parts) for each in parts] == [(number, 4) for number in range(4)]
    assert sum(int(each.attempts.sum()) for each in parts if each.part >= 0) == 200 * 5
    assert all(len(encode_value(each)) < 64 * 1024 for each in parts)
