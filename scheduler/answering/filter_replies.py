"""The answers to filter calls."""

from collections.abc import Mapping

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, Failed, NotOurs, SchedulingPolicy
from engine.hami.vendors import Vendors
from scheduler.answering.extender_protocol import FilterRequest, filter_reply
from schemas.json_types import Json


def reply_to(request: FilterRequest, decision: Decision, error: str) -> bytes:
    """The chosen node, why none fits, or the ``error``."""
    if error:
        return filter_reply(error=error)
    if decision.chosen is None:
        return filter_reply(failed=decision.list_failed_nodes())
    # HAMi names exactly one node and leaves the refused ones out once a node fits.
    return request.hand_back([decision.chosen])


def simulated(pod: Json, nodes: Mapping[str, Json], policy: SchedulingPolicy, vendors: Vendors) -> bytes:
    """What HAMi answers where kube-scheduler sends whole nodes (docs/decisions/0009)."""
    columns = ClusterColumns(vendors)
    for node in nodes.values():
        columns.apply_node(node)
    answer = decide(columns, pod, list(nodes), policy)
    if isinstance(answer, NotOurs):
        return filter_reply(nodes=list(nodes.values()))
    if isinstance(answer, Failed):
        return filter_reply(error=answer.error)
    if answer.chosen is None:
        return filter_reply(failed=answer.list_failed_nodes())
    return filter_reply(nodes=[nodes[answer.chosen]])
