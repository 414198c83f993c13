"""The quick answer to "does it fit" is the answer of `decide`, for the devices of every vendor."""

from typing import Any

import numpy as np
import pytest

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, SchedulingPolicy
from engine.suggestions.ask import Ask
from engine.suggestions.trial import Trial
from tests.support.builders.nodes_to_judge import a_device, a_node
from tests.support.builders.vendor_examples import NAMES, VENDORS, read_node, read_pod

POLICY = SchedulingPolicy()


def is_chosen(columns: ClusterColumns, pod: dict[str, Any]) -> bool:
    decision = decide(columns, pod, columns.node_names, POLICY)
    return isinstance(decision, Decision) and decision.chosen is not None


def fits_by_trial(columns: ClusterColumns, pod: dict[str, Any]) -> bool:
    return Trial(columns, tuple(columns.node_names), POLICY).fits(Ask.from_pod(pod, VENDORS))


@pytest.mark.parametrize("name", NAMES)
def test_each_vendors_example_fits_among_many_nodes_as_decide_says(name: str) -> None:
    columns = ClusterColumns(VENDORS)
    for number in range(100):  # so many that nodes are ruled out before the first is evaluated
        columns.apply_node(a_node(f"other-{number}", [a_device(f"GPU-{number}")]))
    pod = read_pod(name)
    assert not is_chosen(columns, pod)
    assert not fits_by_trial(columns, pod)
    columns.apply_node(read_node(name))
    assert is_chosen(columns, pod)
    assert fits_by_trial(columns, pod)


@pytest.mark.parametrize("name", NAMES)
def test_a_cordon_counts_where_decide_counts_it(name: str) -> None:
    columns = ClusterColumns(VENDORS)
    for number in range(100):
        columns.apply_node(read_node(name, f"node-{number}"))
    columns.devices["is_cordoned"][:] = True
    pod = read_pod(name)
    assert fits_by_trial(columns, pod) == is_chosen(columns, pod)
    columns.devices["is_healthy"][:] = np.False_
    assert fits_by_trial(columns, pod) == is_chosen(columns, pod)
