"""A recorded case as our columns and policy: the cluster as HAMi had seen it when it was asked."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.decision import SchedulingPolicy
from engine.fit.judge.request.pod_request import VendorRequest, list_requests
from tests.conformance.configured import read_vendors
from tests.conformance.difference import Case
from tests.conformance.objects import build_node, build_pod, build_quota


def get_policy(case: Case) -> SchedulingPolicy:
    return SchedulingPolicy(case["node_scheduler_policy"], case["gpu_scheduler_policy"])


def build_requests(case: Case) -> tuple[VendorRequest, ...]:
    return list_requests(build_pod(case["pod"]), read_vendors(case))


def build_cluster(case: Case) -> ClusterColumns:
    """Feed nodes, pods and quotas in the order in which HAMi was fed."""
    columns = ClusterColumns(read_vendors(case), accepts_colon_form=False)
    now = datetime.strptime(case["clock"], "%Y-%m-%dT%H:%M:%SZ")  # noqa: DTZ007 - handshakes carry no zone
    for quota in case.get("quotas") or ():
        columns.apply_quota(build_quota(quota))
    for node in case["nodes"]:
        if node.get("previous"):
            columns.apply_node(build_node(node["name"], node["previous"]), now)
    for node in case["nodes"]:
        columns.apply_node(build_node(node["name"], node), now)
    for pod in map(partial(_rename_earlier_reservation, case["pod"]), case["running_pods"] or ()):
        columns.apply_pod(build_pod(pod))
        if "update" in pod:
            columns.apply_pod(build_pod({**pod, **pod["update"]}))
    return columns


def _rename_earlier_reservation(asking: Mapping[str, Any], running: Mapping[str, Any]) -> Mapping[str, Any]:
    """Rename a running pod with the UID of the asking one, which is its own earlier reservation, as the asking one."""
    return (
        {**running, "name": asking["name"], "namespace": asking["namespace"]}
        if running["uid"] == asking["uid"]
        else running
    )
