"""The recorded vendors' clusters, rebuilt from the states of their nodes: the same pods are decided about alike.

So the states hold all that the rules of each vendor read.
"""

from typing import Any

import numpy as np

from engine.fit.devices.as_of import rebuild_columns
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision
from tests.conformance.__main__ import SECOND, get_vendor
from tests.conformance.cluster import build_cluster, get_policy
from tests.conformance.difference import Case
from tests.conformance.kinds import KINDS
from tests.conformance.objects import build_pod, build_quota
from tests.support.harness.states_in_memory import build_states
from tests.support.stress import run_in_make_stress

KIND = KINDS["vendor filter"]


def test_a_share_of_the_vendors_clusters_can_be_rebuilt() -> None:
    """The first eight cases of each vendor."""
    seen: dict[str, int] = {}
    for case in KIND.read(SECOND / KIND.source):
        vendor = get_vendor(case)
        seen[vendor] = seen.get(vendor, 0) + 1
        if seen[vendor] <= 8:
            assert_rebuilt(case)
    assert len(seen) > 20


@run_in_make_stress
def test_all_of_the_vendors_clusters_can_be_rebuilt() -> None:
    for case in KIND.read(SECOND / KIND.source):
        assert_rebuilt(case)


def assert_rebuilt(case: Case) -> None:
    columns = build_cluster(case)
    again = rebuild_columns(build_states(columns), columns.vendors)
    # Quotas are no part of a node's state.
    for quota in case.get("quotas") or ():
        again.apply_quota(build_quota(quota))
    again.quotas.used = dict(columns.quotas.used)
    assert decide_case(case, again) == decide_case(case, columns), case["id"]


def decide_case(case: Case, columns: ClusterColumns) -> Any:
    registered = [name for name in case["node_names"] if columns.get_entry(name) is not None]
    decision = decide(columns, build_pod(case["pod"]), registered, get_policy(case))
    if not isinstance(decision, Decision):
        return type(decision)
    return (
        registered,
        decision.chosen,
        decision.list_failed_nodes(),
        np.round(decision.score, 4).tolist(),
        decision.annotations,
    )
