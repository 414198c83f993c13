"""Events of a minute, counted by hand."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.hami.reason_codes import ReasonCode
from engine.summaries.fold import summarize
from engine.summaries.trends import Minute, Weight, build_records, derive_contribution, list_weights
from schemas.codec.records import encode_value
from schemas.documents.attempts import list_node_reasons, list_reasons
from schemas.events import AttemptSummarized, Contribution, LockHolder, Owner, PodDescription
from schemas.ids import derive_attempt_id
from tests.support.builders.attempts import STARTED, a_bind, an_attempt, build_common

BEGAN = STARTED.replace(second=0, microsecond=0)
FULL = {"gpu-1": [["NumaNotFit", "CardCordoned"]], "gpu-2": [["CardCordoned"] * 2]}
FREE = {"gpu-1": [["picked", "CardCordoned"]], "gpu-2": [["CardCordoned"] * 2]}


def get_pool(node: str) -> str:
    return "a100" if node == "gpu-2" else ""


def build_attempt(pod: str, second: int, *, free: bool = False, bound: bool | None = None) -> AttemptSummarized:
    started = BEGAN + timedelta(seconds=second)
    common = build_common(pod) | {
        "started_at": started,
        "attempt_id": derive_attempt_id("default", "hami-scheduler", f"uid-{pod}", started),
    }
    events = an_attempt(FREE if free else FULL, chosen="gpu-1" if free else None, **common)
    if bound is not None:
        events.append(a_bind(bound=bound, node="gpu-1", **common))
    return summarize(events)


def a_minute() -> Minute:
    return Minute("default", BEGAN, 3, BEGAN + timedelta(minutes=4))


def put(minute: Minute, summary: AttemptSummarized, replaced: AttemptSummarized | None = None) -> None:
    taken_back = list_weights("ml", derive_contribution(replaced, get_pool)) if replaced else ()
    minute.put(summary.pod.uid, list_weights("ml", derive_contribution(summary, get_pool)), taken_back)


def count_rows(*summaries: AttemptSummarized) -> dict[tuple[str, ...], tuple[int, ...]]:
    minute = a_minute()
    for summary in summaries:
        put(minute, summary)
    return {row.key[1:]: row[1:] for row in minute.list_rows()}


def test_an_attempt_adds_a_row_for_all_and_for_each_reason_model_and_pool() -> None:
    contribution = derive_contribution(build_attempt("one", 1), get_pool)
    assert (contribution.version, contribution.status) == (build_attempt("one", 1).version, "failed")
    assert list(
        zip(
            contribution.dimension,
            contribution.value,
            contribution.nodes.tolist(),
            contribution.devices.tolist(),
            strict=True,
        )
    ) == [
        ("all", "", 2, 4),
        ("reason", "CardCordoned", 2, 3),
        ("reason", "NumaNotFit", 1, 1),
        ("model", "NVIDIA A100-SXM4-80GB", 0, 4),
        ("pool", "a100", 1, 0),
    ]
    assert "pool" not in derive_contribution(build_attempt("one", 1), None).dimension


def test_a_device_that_was_passed_over_on_a_node_that_fits_is_no_reason_of_the_attempt() -> None:
    verdicts = {"gpu-1": [["picked", "NumaNotFit"]], "gpu-2": [["CardCordoned"] * 2]}
    summary = summarize(an_attempt(verdicts, chosen="gpu-1"))
    contribution = derive_contribution(summary, None)
    reasons = [
        value for name, value in zip(contribution.dimension, contribution.value, strict=True) if name == "reason"
    ]
    # What a search by reason finds the attempt by.
    assert reasons == list_reasons(summary) == ["CardCordoned"]


@pytest.mark.parametrize(
    ("error", "holder", "code"),
    [
        ('pods "one" is forbidden: no', None, ReasonCode.BINDING_FAILED),
        ("node gpu-1 has been locked within 5m0s", LockHolder(), ReasonCode.NODE_LOCK_CONTENTION),
    ],
)
def test_a_bind_that_failed_is_a_reason_of_one_node_and_no_device(
    error: str, holder: LockHolder | None, code: str
) -> None:
    summary = build_attempt("one", 1, free=True, bound=False)
    assert summary.bind
    summary = summary.model_copy(
        update={"bind": summary.bind.model_copy(update={"error": error, "lock_holder": holder})}
    )
    contribution = derive_contribution(summary, None)
    columns = zip(
        contribution.dimension,
        contribution.value,
        contribution.nodes.tolist(),
        contribution.devices.tolist(),
        strict=True,
    )
    assert [row[1:] for row in columns if row[0] == "reason"] == [("CardCordoned", 1, 3), (code, 1, 0)]
    assert set(list_reasons(summary)) == {"CardCordoned", code}
    assert list_node_reasons(summary) == ["gpu-2|CardCordoned", f"gpu-1|{code}"]
    assert summary.status == "failed"


def test_a_bind_that_succeeded_is_no_reason() -> None:
    assert list_reasons(build_attempt("one", 1, free=True, bound=True)) == ["CardCordoned"]


def test_an_attempt_of_a_described_pod_adds_rows_for_its_workload_and_its_queue() -> None:
    described = PodDescription(owners=[Owner(kind="ReplicaSet", name="a-7c"), Owner(kind="Deployment", name="a")])
    full_summary = build_attempt("one", 1)
    contribution = derive_contribution(full_summary.model_copy(update={"description": described}), None)
    assert (contribution.dimension[-1], contribution.value[-1]) == ("workload", "Deployment/a")
    assert (contribution.nodes[-1], contribution.devices[-1]) == (2, 4)
    queued = PodDescription(queue="team-a")
    contribution = derive_contribution(full_summary.model_copy(update={"description": queued}), None)
    assert [
        (name, value) for name, value in zip(contribution.dimension, contribution.value, strict=True) if name == "queue"
    ] == [("queue", "team-a")]
    assert "workload" not in contribution.dimension


def test_attempts_pods_nodes_and_devices_are_counted_by_reason_pool_and_model() -> None:
    model = "NVIDIA A100-SXM4-80GB"
    assert count_rows(build_attempt("one", 1), build_attempt("one", 31), build_attempt("two", 2)) == {
        ("failed", "all", ""): (3, 2, 6, 12),
        ("failed", "model", model): (3, 2, 0, 12),
        ("failed", "pool", "a100"): (3, 2, 3, 0),
        ("failed", "reason", "CardCordoned"): (3, 2, 6, 9),
        ("failed", "reason", "NumaNotFit"): (3, 2, 3, 3),
    }


def test_results_are_counted_apart() -> None:
    rows = count_rows(
        build_attempt("one", 1), build_attempt("two", 2, free=True, bound=True), build_attempt("three", 3, free=True)
    )
    assert {key: row[0] for key, row in rows.items() if key[1] == "all"} == {
        ("failed", "all", ""): 1, ("pending", "all", ""): 1, ("succeeded", "all", ""): 1,
    }  # fmt: skip


def test_an_attempt_of_which_more_becomes_known_moves_to_its_new_result() -> None:
    minute = a_minute()
    before, after = build_attempt("one", 1, free=True), build_attempt("one", 1, free=True, bound=True)
    put(minute, before)
    assert [row.attempts for row in minute.list_rows() if row.key[2] == "all"] == [1]
    put(minute, after, replaced=before)
    assert {row.key[1]: row.attempts for row in minute.list_rows() if row.key[2] == "all"} == {
        "pending": 0,
        "succeeded": 1,
    }
    assert minute.version == 2


def test_what_was_counted_under_another_time_is_taken_back_below_zero() -> None:
    minute = a_minute()
    put(minute, build_attempt("one", 1, free=True, bound=True), replaced=build_attempt("one", 1, free=True))
    put(minute, build_attempt("two", 1, free=True, bound=True), replaced=build_attempt("two", 1, free=True))
    rows = {row.key[1]: row[1:] for row in minute.list_rows() if row.key[2] == "all"}
    assert rows == {"pending": (-2, -2, -4, -8), "succeeded": (2, 2, 4, 8)}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["pod-0", "pod-1", "pod-2"]), st.sampled_from(["pending", "failed"]),
            st.dictionaries(st.sampled_from([("reason", "A"), ("reason", "B"), ("all", "")]), st.integers(0, 7)),
            st.booleans(),
        ),
        max_size=30,
    ),
)  # fmt: skip
def test_rows_are_what_is_added_less_what_is_taken_back(
    changes: list[tuple[str, str, dict[tuple[str, str], int], bool]],
) -> None:
    minute = a_minute()
    for pod, status, counts, is_added in changes:
        weights = tuple(Weight(("ml", status, *key), count, 2 * count) for key, count in counts.items())
        minute.put(pod, weights if is_added else (), () if is_added else weights)
    assert minute.version == len(changes)
    for (namespace, result, *key), *contribution in minute.list_rows():
        assert namespace == "ml"
        having = [change for change in changes if change[1] == result and tuple(key) in change[2]]
        assert having
        signs = [(pod, 1 if is_added else -1, counts[key[0], key[1]]) for pod, _, counts, is_added in having]
        left = {name: sum(sign for pod, sign, _ in signs if pod == name) for name in ("pod-0", "pod-1", "pod-2")}
        pods = sum(count > 0 for count in left.values()) - sum(count < 0 for count in left.values())
        nodes = sum(sign * count for _, sign, count in signs)
        assert contribution == [sum(left.values()), pods, nodes, 2 * nodes]
    keys = {(status, *key) for _, status, counts, _ in changes for key in counts}
    assert {row.key[1:] for row in minute.list_rows()} == keys


def test_a_minute_of_many_namespaces_is_published_in_parts() -> None:
    minute = a_minute()
    adds = derive_contribution(build_attempt("one", 1), get_pool)
    for number in range(200):
        minute.put(f"uid-{number}", list_weights(f"team-{number:03}", adds), ())
    parts = list(build_records(minute))
    assert [(part.part, part.parts) for part in parts] == [(number, 4) for number in range(4)]
    assert {(part.started_at, part.partition, part.recorded_at, part.version) for part in parts} == {
        (BEGAN, 3, BEGAN + timedelta(minutes=4), 200)
    }
    assert sum(int(part.attempts.sum()) for part in parts) == 200 * 5
    assert all(len(encode_value(part)) < 64 * 1024 for part in parts)


def test_a_contribution_travels_unchanged() -> None:
    contribution = derive_contribution(build_attempt("one", 1), get_pool)
    read = Contribution.model_validate_json(encode_value(contribution))
    assert list_weights("ml", read) == list_weights("ml", contribution)
    assert (read.version, read.status) == (contribution.version, contribution.status)
