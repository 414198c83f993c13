"""Kubernetes events about problems before and after scheduling.

Owners that can't create their pods, pods that a kubelet can't start, and pods for which an autoscaler adds no node.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from ingest.readers.kube.scheduling_events import find_reporter, list_times
from runtime.kubernetes.object_fields import get_object, get_text
from schemas.events import ObjectProblem, Owner, PodObserved, PodRef, WorkloadObserved

_STARTERS: Final = ("kubelet", "attachdetach-controller")
"""Reporters of what keeps a pod with a node from its start."""
_OF_PODS: Final = frozenset(
    (
        "UnexpectedAdmissionError", "Failed", "FailedCreatePodSandBox", "FailedCreatePodContainer", "FailedMount",
        "FailedAttachVolume", "FailedMapVolume", "InspectFailed", "ErrImageNeverPull", "NetworkNotReady",
    )
)  # fmt: skip
"""A kubelet's reasons about a pod that does not start. Probes and restarts come later, and are about its program."""
_OF_AUTOSCALERS: Final = frozenset(
    (("cluster-autoscaler", "NotTriggerScaleUp"), ("cluster-autoscaler", "FailedScaleUp"),
     ("karpenter", "FailedScheduling"))
)  # fmt: skip
"""Reports that no node can be added for a pod, by reporter and reason; some are no warnings."""
_OF_OWNERS: Final = frozenset(("FailedCreate", "FailedCreatePod"))
"""Reasons of the controllers of Kubernetes, Kubeflow and others."""


def parse_problem_event(
    event: Mapping[str, Any], cluster: str, node_of: Callable[[PodRef], str]
) -> PodObserved | WorkloadObserved | None:
    """Parse an event about a problem; None for others. ``node_of``: the node of an existing pod, else empty."""
    regarding = get_object(event, "regarding") or get_object(event, "involvedObject")
    kind, namespace, name = (get_text(regarding, field) for field in ("kind", "namespace", "name"))
    reason, seen_at = get_text(event, "reason"), list_times(event)
    reporter = find_reporter(event)
    is_problem = get_text(event, "type") == "Warning" or (reporter, reason) in _OF_AUTOSCALERS
    if not (namespace and name and seen_at and is_problem):
        return None
    message = get_text(event, "note") or get_text(event, "message")
    problem = ObjectProblem(reason=reason, message=message, at=seen_at[-1], reported_by=reporter) if reason else None
    is_of_pod = (reporter in _STARTERS and reason in _OF_PODS) or (reporter, reason) in _OF_AUTOSCALERS
    if problem and kind == "Pod" and is_of_pod:
        pod = PodRef(namespace=namespace, name=name, uid=get_text(regarding, "uid"))
        # The event says nothing of the phase.
        return PodObserved(
            cluster=cluster, pod=pod, observed_at=problem.at, phase="", node=node_of(pod),
            problems=[problem],
        )  # fmt: skip
    if problem and kind and kind != "Pod" and reason in _OF_OWNERS:
        workload = Owner(kind=kind, name=name, api_version=get_text(regarding, "apiVersion"))
        return WorkloadObserved(
            cluster=cluster, namespace=namespace, workload=workload, observed_at=problem.at, problem=problem
        )
    return None
