"""The quick answer to "does it fit" is the answer of `decide`, for the devices of every vendor."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from diagnosis.suggestions.ask import Ask
from diagnosis.suggestions.trial import Trial
from fit import device_config
from fit.devices.cluster_state import ClusterColumns
from fit.judge.decide import decide
from fit.judge.decision import Decision, SchedulingPolicy
from tests.support.builders.nodes_to_judge import a_device, a_node

EXAMPLES = Path(__file__).parents[4] / "examples" / "vendors"
VENDORS = device_config.read(device_config.SHIPPED)
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.yaml"))
POLICY = SchedulingPolicy()


def a_pod(name: str) -> dict[str, Any]:
    pod: dict[str, Any] = yaml.safe_load((EXAMPLES / "pods" / f"{name}.yaml").read_text())
    return pod


def example_node(name: str) -> dict[str, Any]:
    node: dict[str, Any] = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    return node


def is_chosen(columns: ClusterColumns, pod: dict[str, Any]) -> bool:
    found = decide(columns, pod, columns.node_names, POLICY)
    return isinstance(found, Decision) and found.chosen is not None


def fits_by_trial(columns: ClusterColumns, pod: dict[str, Any]) -> bool:
    return Trial(columns, tuple(columns.node_names), POLICY).fits(Ask.of_pod(pod, VENDORS))


@pytest.mark.parametrize("name", NAMES)
def test_each_vendors_example_fits_among_many_nodes_as_decide_says(name: str) -> None:
    columns = ClusterColumns(VENDORS)
    for number in range(100):  # so many that nodes are ruled out before the first is evaluated
        columns.apply_node(a_node(f"other-{number}", [a_device(f"GPU-{number}")]))
    pod = a_pod(name)
    assert not is_chosen(columns, pod)
    assert not fits_by_trial(columns, pod)
    columns.apply_node(example_node(name))
    assert is_chosen(columns, pod)
    assert fits_by_trial(columns, pod)


@pytest.mark.parametrize("name", NAMES)
def test_a_cordon_counts_where_decide_counts_it(name: str) -> None:
    columns = ClusterColumns(VENDORS)
    for number in range(100):
        node = example_node(name)
        node["metadata"]["name"] = f"node-{number}"
        columns.apply_node(node)
    columns.devices["is_cordoned"][:] = True
    pod = a_pod(name)
    assert fits_by_trial(columns, pod) == is_chosen(columns, pod)
    columns.devices["is_healthy"][:] = np.False_
    assert fits_by_trial(columns, pod) == is_chosen(columns, pod)
