"""The recorded vendors' clusters, rebuilt from the states of their nodes: the same pods are decided about alike.

So the states hold all that the rules of each vendor read.
"""

from typing import Any

import numpy as np

from engine.fit.devices.as_of import rebuilt
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision
from tests.conformance.__main__ import SECOND, vendor_of
from tests.conformance.cluster import cluster_of, policy_of
from tests.conformance.difference import Case
from tests.conformance.kinds import KINDS
from tests.conformance.objects import pod_object, quota_object
from tests.support.harness.states_in_memory import states_of
from tests.support.stress import in_make_stress

KIND = KINDS["vendor filter"]


def test_a_share_of_the_vendors_clusters_can_be_rebuilt() -> None:
    """The first eight cases of each vendor."""
    seen: dict[str, int] = {}
    for case in KIND.read(SECOND / KIND.source):
        vendor = vendor_of(case)
        seen[vendor] = seen.get(vendor, 0) + 1
        if seen[vendor] <= 8:
            assert_rebuilt(case)
    assert len(seen) > 20


@in_make_stress
def test_all_of_the_vendors_clusters_can_be_rebuilt() -> None:
    for case in KIND.read(SECOND / KIND.source):
        assert_rebuilt(case)


def assert_rebuilt(case: Case) -> None:
    columns = cluster_of(case)
    again = rebuilt(states_of(columns), columns.vendors)
    # Quotas are no part of a node's state.
    for quota in case.get("quotas") or ():
        again.apply_quota(quota_object(quota))
    again.quotas.used = dict(columns.quotas.used)
    assert outcome(case, again) == outcome(case, columns), case["id"]


def outcome(case: Case, columns: ClusterColumns) -> Any:
    registered = [name for name in case["node_names"] if columns.entry(name) is not None]
    found = decide(columns, pod_object(case["pod"]), registered, policy_of(case))
    if not isinstance(found, Decision):
        return type(found)
    return registered, found.chosen, found.failed_nodes(), np.round(found.score, 4).tolist(), found.annotations
