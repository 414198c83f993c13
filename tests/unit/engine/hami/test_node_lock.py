"""The node lock is read and written as HAMi v2.10.0 does (`cases/node_lock_cases.jsonl` was recorded from it)."""

import contextlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from engine.hami import node_lock
from engine.hami.node_lock import NodeLockError, Step

CASES = Path(__file__).parent / "cases"
LOCKS = [json.loads(line) for line in (CASES / "node_lock_cases.jsonl").read_text().splitlines()]
NOON = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
TIMEOUT = timedelta(minutes=5)


@pytest.mark.parametrize("case", LOCKS, ids=[repr(case["in"]) for case in LOCKS])
def test_a_lock_is_read_as_hami_reads_it(case: Mapping[str, Any]) -> None:
    if case["error"]:
        with pytest.raises(NodeLockError) as refused:
            node_lock.parse_lock(case["in"])
        assert str(refused.value) == case["error"]
    else:
        lock = node_lock.parse_lock(case["in"])
        assert lock.owner == (case["out"]["namespace"], case["out"]["name"])
        assert lock.since == datetime.fromisoformat(case["out"]["time"])


@given(st.text(max_size=60))
def test_no_lock_annotation_makes_it_fail_otherwise_than_with_its_own_error(value: str) -> None:
    with contextlib.suppress(NodeLockError):
        node_lock.choose_step(value, ("ns", "pod"), NOON, TIMEOUT)
    node_lock.is_ours_to_release(value, ("ns", "pod"))


names = st.text("abcdefghijklmnopqrstuvwxyz0123456789-.", min_size=1, max_size=20)


@given(names, names, st.datetimes(datetime(1970, 1, 2), datetime(9000, 1, 1)))  # noqa: DTZ001 - zone added below
def test_a_lock_that_was_written_is_ours(namespace: str, name: str, since: datetime) -> None:
    moment = since.replace(tzinfo=UTC)
    value = node_lock.format_lock(moment, (namespace, name))
    assert node_lock.parse_lock(value).owner == (namespace, name)
    assert node_lock.choose_step(value, (namespace, name), moment, TIMEOUT) is Step.KEEP
    assert node_lock.choose_step(value, ("other", name), moment, TIMEOUT) is Step.CHECK_OWNER
    assert node_lock.choose_step(value, ("other", name), moment + timedelta(seconds=302), TIMEOUT) is Step.TAKE
    assert node_lock.is_ours_to_release(value, (namespace, name))
    assert not node_lock.is_ours_to_release(value, ("other", name))


HELD = "2026-11-21T12:00:00Z,ns,pod"


@pytest.mark.parametrize(
    ("value", "seconds", "step"),
    [
        (None, 0, Step.TAKE),
        # Valid up to and including the timeout; then anybody may take it, its owner too.
        (HELD, 300, Step.KEEP),
        (HELD, 301, Step.TAKE),
        (HELD.replace("pod", "other"), 300, Step.CHECK_OWNER),
        (HELD.replace("pod", "other"), 301, Step.TAKE),
        # The old form names nobody.
        ("2026-11-21T12:00:00Z", 300, Step.CONTENDED),
    ],
)
def test_a_lock_holds_until_the_timeout_has_passed(value: str | None, seconds: int, step: Step) -> None:
    assert node_lock.choose_step(value, ("ns", "pod"), NOON + timedelta(seconds=seconds), TIMEOUT) is step


@pytest.mark.parametrize(
    ("value", "is_ours"),
    [(None, False), (HELD, True), (HELD.replace("ns", "other"), False), ("2026-11-21T12:00:00Z", True), ("?", True)],
)
def test_a_lock_without_an_owner_may_be_removed_by_anybody(value: str | None, is_ours: bool) -> None:
    assert node_lock.is_ours_to_release(value, ("ns", "pod")) is is_ours


@pytest.mark.parametrize(
    ("error", "node"),
    [
        ("node node1 has been locked within 5 minutes", "node1"),
        ("node node1 has been locked within 5m0s", "node1"),
        (node_lock.describe_contention("node1", TIMEOUT), "node1"),
        (node_lock.describe_wait("node2", TIMEOUT), "node2"),
        ("timed out after 1m0s waiting for node node2 to be unlocked", "node2"),
        ('pods "p" not found', ""),
    ],
)
def test_the_locked_node_is_read_from_every_spelling_of_the_error(error: str, node: str) -> None:
    assert node_lock.find_locked_node(error) == node
    assert node_lock.is_contention(error) is bool(node)


def test_the_reason_alone_is_contention_without_a_node() -> None:
    assert node_lock.is_contention(f"bind failed: {node_lock.CONTENTION}")
    assert node_lock.find_locked_node(node_lock.CONTENTION) == ""
