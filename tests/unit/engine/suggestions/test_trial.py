"""Questions about a cluster whose two nodes refuse a pod for different reasons; after each it is as before."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.pod_usage import PodUse, read_pod_use
from engine.fit.devices.quota import Quotas
from engine.fit.judge.decision import SchedulingPolicy
from engine.hami.vendors import ONLY_NVIDIA
from engine.suggestions.ask import Ask, Constraint
from engine.suggestions.trial import FLAGS, Trial, find_rows
from tests.support.builders.nodes_to_judge import a_cluster, a_device, a_node, a_pod, a_quota, a_running_pod, ask_for

CONSTRAINTS: tuple[Constraint, ...] = ("nodes", "quota", "cordon", "health", "use")
HOLDER = a_running_pod("b-0,NVIDIA,20000,10:;", "b", "holder", namespace="other")


def build_columns() -> ClusterColumns:
    """Build node a with a cordoned and an unhealthy device, and node b with 4,576 MiB left on its device."""
    devices = [a_device("a-0"), a_device("a-1", health=False)]
    return a_cluster(a_node("a", devices, device_cordon="a-0"), a_node("b", [a_device("b-0")]), pods=[HOLDER])


def a_trial(columns: ClusterColumns, *offered: str) -> Trial:
    return Trial(columns, offered or columns.node_names, SchedulingPolicy())


def an_ask(memory_mib: int = 20_000, count: int = 1, **annotations: str) -> Ask:
    marks = {f"nvidia.com/{name.replace('_', '-')}": text for name, text in annotations.items()}
    return Ask.from_pod(a_pod(ask_for(count, gpumem=memory_mib), annotations=marks), ONLY_NVIDIA)


def read_use(pod: dict[str, Any]) -> PodUse:
    use = read_pod_use(pod, ONLY_NVIDIA, is_first_sight=True)
    assert use
    return use


@contextmanager
def keeping(columns: ClusterColumns) -> Iterator[None]:
    """Assert that the columns of devices and nodes, and the quotas, are afterwards as before."""

    def copy() -> dict[str, Any]:
        return {
            f"{table}.{name}": column.copy()
            for table, block in (("devices", columns.devices), ("nodes", columns.nodes))
            for name, column in block.column.items()
        }

    before, quotas = copy(), columns.quotas
    yield
    assert columns.quotas is quotas
    for name, column in copy().items():
        np.testing.assert_array_equal(column, before[name], name)


@pytest.mark.parametrize(
    ("lifted", "ask", "node"),
    [
        ((), an_ask(), None),
        ((), an_ask(4000), "b"),
        (("cordon",), an_ask(), "a"),
        (("health",), an_ask(), "a"),
        (("use",), an_ask(), "b"),
        (("cordon",), an_ask(count=2), None),
        (("cordon", "health"), an_ask(count=2), "a"),
        (("quota",), an_ask(), None),
        (("use",), an_ask(24_577), None),
    ],
)
def test_a_lifted_constraint_keeps_no_pod_from_a_node(
    lifted: tuple[Constraint, ...], ask: Ask, node: str | None
) -> None:
    columns = build_columns()
    trial = a_trial(columns)
    with keeping(columns):
        decision = trial.decide(ask, lifted)
        assert (decision.chosen if decision else None) == node
        assert trial.fits(ask, lifted) is (node is not None)
        assert trial.list_candidates(ask, lifted) == ([node] if node else [])


def test_answers_are_those_of_the_columns_as_they_are_lifted() -> None:
    """Devices that were judged once are remembered for the constraints that were lifted, and only for these."""
    columns, ask = build_columns(), an_ask()
    trial = a_trial(columns)
    for _ in range(2):
        assert [trial.fits(ask, [constraint]) for constraint in CONSTRAINTS] == [False, False, True, True, True]
        assert not trial.fits(ask)


@pytest.mark.parametrize(
    ("offered", "lifted", "names", "expected"),
    [
        (("a",), (), None, []),
        (("a",), ("nodes",), None, ["b"]),
        (("a", "b"), (), None, ["b"]),
        (("a",), (), ["b"], ["b"]),
        (("b", "unknown"), (), None, ["b"]),
        (("b",), (), [], []),
    ],
)
def test_nodes_are_the_offered_ones_unless_others_are_named(
    offered: tuple[str, ...], lifted: tuple[Constraint, ...], names: list[str] | None, expected: list[str]
) -> None:
    trial, ask = a_trial(build_columns(), *offered), an_ask(4000)
    decision = trial.decide(ask, lifted, names)
    assert ([decision.chosen] if decision else []) == expected
    assert trial.fits(ask, lifted, names) is bool(expected)
    if names is None:
        assert trial.list_candidates(ask, lifted) == expected


def test_a_quota_that_is_lifted_keeps_nothing() -> None:
    columns = build_columns()
    columns.apply_quota(a_quota(gpumem=3000))
    with keeping(columns):
        trial = a_trial(columns)
        assert not trial.fits(an_ask(4000))
        assert trial.fits(an_ask(4000), ["quota"])
        assert trial.decide_without(an_ask(4000), "quota")
        with trial.with_quotas(Quotas()):
            assert trial.fits(an_ask(4000))


def test_constraints_are_in_force_where_the_cluster_has_them() -> None:
    columns, ask = build_columns(), an_ask()
    trial = a_trial(columns)
    in_force = {constraint for constraint in CONSTRAINTS if trial.is_in_force(ask, constraint)}
    assert in_force == {"cordon", "health", "use"}
    columns.apply_quota(a_quota(gpumem=3000))
    assert a_trial(columns).is_in_force(ask, "quota")
    other = Ask.from_pod(a_pod(ask_for(), namespace="other"), ONLY_NVIDIA)
    assert not trial.is_in_force(other, "quota")
    assert a_trial(columns, "a").is_in_force(ask, "nodes")
    assert not a_trial(columns, "a", "b", "c").is_in_force(ask, "nodes")
    healthy = a_trial(a_cluster(a_node("a", [a_device("a-0")])))
    assert [healthy.is_in_force(ask, constraint) for constraint in CONSTRAINTS] == [False] * 4 + [True]


def test_a_constraint_that_is_not_in_force_changes_no_decision() -> None:
    trial = a_trial(build_columns())
    assert trial.decide_without(an_ask(4000), "quota") is None
    decision = trial.decide_without(an_ask(), "use")
    assert decision
    assert decision.chosen == "b"
    assert trial.decide_without(an_ask(24_577), "use") is None


def test_pods_whose_annotations_cannot_be_read_or_that_request_no_device_fit_nowhere() -> None:
    trial = a_trial(build_columns())
    weights = {"hami.io/device-scoring-weights": "slot=x"}
    unreadable = Ask.from_pod(a_pod(ask_for(1, gpumem=1), annotations=weights), ONLY_NVIDIA)
    for ask in (unreadable, Ask.from_pod(a_pod({"name": "main"}), ONLY_NVIDIA)):
        assert not trial.fits(ask)
        assert trial.list_candidates(ask) == []
        assert trial.decide(ask) is None
    assert trial.find_max_left(unreadable, "memory_mib", [0]) is None


def test_a_pod_that_leaves_gives_its_devices_back() -> None:
    columns = build_columns()
    trial, use = a_trial(columns), read_use(HOLDER)
    elsewhere = read_use(a_running_pod("x-0,NVIDIA,1,1:;", "unknown", "other"))
    assert not trial.fits(an_ask())
    with keeping(columns):
        with trial.without_pods([use, elsewhere]):
            assert trial.fits(an_ask())
            assert columns.devices["used_memory"][find_rows(columns, "b", "is_healthy", value=True)].tolist() == [0]
        assert not trial.fits(an_ask())
        with pytest.raises(RuntimeError), trial.without_pods([use]):
            raise RuntimeError
    assert not trial.fits(an_ask())


def test_a_flag_may_be_changed_for_some_devices() -> None:
    columns = build_columns()
    trial = a_trial(columns)
    with keeping(columns):
        rows = find_rows(columns, "a", "is_cordoned", value=True)
        with trial.with_flags("is_cordoned", rows, value=False):
            assert trial.list_candidates(an_ask()) == ["a"]
            assert find_rows(columns, "a", "is_cordoned", value=True) == []
        with trial.with_flags("is_healthy", find_rows(columns, "b", "is_healthy", value=True), value=False):
            assert not trial.fits(an_ask(4000))
        with pytest.raises(RuntimeError), trial.with_flags("is_cordoned", rows, value=False):
            raise RuntimeError
        assert trial.list_candidates(an_ask(4000)) == ["b"]


def test_rows_are_those_of_the_node_with_the_value() -> None:
    columns = build_columns()
    entry = columns.get_entry("a")
    assert entry
    assert find_rows(columns, "a", "is_cordoned", value=True) == [entry.start]
    first, second, third = (
        *find_rows(columns, "a", "is_cordoned", value=True),
        *find_rows(columns, "a", "is_cordoned", value=False),
        *find_rows(columns, "b", "is_cordoned", value=False),
    )
    assert find_rows(columns, "a", "is_healthy", value=False) == [second]
    assert find_rows(columns, "a", "is_healthy", value=True) == [first]
    assert find_rows(columns, "b", "is_healthy", value=True) == [third]
    assert len({first, second, third}) == 3
    assert find_rows(columns, "unknown", "is_cordoned", value=True) == []


def test_the_largest_amount_is_what_the_offered_nodes_have_left() -> None:
    columns = build_columns()
    assert a_trial(columns).find_max_left(an_ask(1), "memory_mib", [0]) == 24_576 - 20_000
    assert a_trial(columns, "a").find_max_left(an_ask(1), "memory_mib", [0]) is None


def test_flags_are_cordon_and_health() -> None:
    assert [(flag.constraint, flag.column, flag.value, flag.word) for flag in FLAGS] == [
        ("cordon", "is_cordoned", True, "cordoned"),
        ("health", "is_healthy", False, "unhealthy"),
    ]


def test_answers_are_not_remembered_over_changes_of_some_devices() -> None:
    columns = build_columns()
    trial = a_trial(columns)
    (row,) = find_rows(columns, "a", "is_cordoned", value=True)
    for is_cordoned in (True, False, True):
        with trial.with_flags("is_cordoned", [row], value=is_cordoned):
            assert trial.list_candidates(an_ask()) == ([] if is_cordoned else ["a"])


def test_a_copy_of_a_trial_answers_for_columns_that_changed() -> None:
    columns = build_columns()
    trial = a_trial(columns)
    assert trial.list_candidates(an_ask()) == []
    columns.delete_pod("holder")
    assert replace(trial).list_candidates(an_ask()) == ["b"]
