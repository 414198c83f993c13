"""A recorded case as our columns and policy: the cluster as HAMi had seen it when it was asked."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.decision import SchedulingPolicy
from engine.fit.judge.request.pod_request import VendorRequest, container_requests
from tests.conformance.configured import vendors_of
from tests.conformance.difference import Case
from tests.conformance.objects import node_object, pod_object, quota_object


def policy_of(case: Case) -> SchedulingPolicy:
    return SchedulingPolicy(case["node_scheduler_policy"], case["gpu_scheduler_policy"])


def requests_of(case: Case) -> tuple[VendorRequest, ...]:
    return container_requests(pod_object(case["pod"]), vendors_of(case))


def cluster_of(case: Case) -> ClusterColumns:
    """Fed in the order in which HAMi was fed."""
    columns = ClusterColumns(vendors_of(case), accepts_colon_form=False)
    now = datetime.strptime(case["clock"], "%Y-%m-%dT%H:%M:%SZ")  # noqa: DTZ007 - handshakes carry no zone
    for quota in case.get("quotas") or ():
        columns.apply_quota(quota_object(quota))
    for node in case["nodes"]:
        if node.get("previous"):
            columns.apply_node(node_object(node["name"], node["previous"]), now)
    for node in case["nodes"]:
        columns.apply_node(node_object(node["name"], node), now)
    for pod in map(partial(_as_it_is_called, case["pod"]), case["running_pods"] or ()):
        columns.apply_pod(pod_object(pod))
        if "update" in pod:
            columns.apply_pod(pod_object({**pod, **pod["update"]}))
    return columns


def _as_it_is_called(asking: Mapping[str, Any], running: Mapping[str, Any]) -> Mapping[str, Any]:
    """A running pod with the UID of the asking one is its own earlier reservation; some cases name it otherwise."""
    return (
        {**running, "name": asking["name"], "namespace": asking["namespace"]}
        if running["uid"] == asking["uid"]
        else running
    )
